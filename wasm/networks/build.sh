#!/usr/bin/env bash
# Builds a module for each network: campplus.wasm, segmentation.wasm, segmentation-v8.wasm. No imports, no network access.
# Needs (Debian 12): clang-14, lld-14, wasi-libc (for expf and logf), libclang-rt-14-dev-wasm32.
# OUT names another folder.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
out="${OUT:-$here}"
clang=clang-14
command -v "$clang" >/dev/null || clang=clang
command -v "$clang" >/dev/null || {
  echo "clang is missing (Debian: apt-get install clang lld wasi-libc libclang-rt-14-dev-wasm32)" >&2
  exit 1
}
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# -ffp-contract=off: multiplications and additions round separately, whatever the compiler.
cflags=(--target=wasm32-wasi -O3 -msimd128 -mbulk-memory -ffp-contract=off -fno-math-errno
  -Wall -Wextra -Werror -fvisibility=hidden "-ffile-prefix-map=$here=.")

# build NAME PAGES PART... : memory never grows, so that its size is the number of pages of 64 KiB.
build() {
  local name="$1" pages="$2" objects=()
  shift 2
  for part in "$@"; do
    "$clang" "${cflags[@]}" -c "$here/$part.c" -o "$work/$part.o"
    objects+=("$work/$part.o")
  done
  # Without -O, with which clang 14 would call wasm-opt.
  "$clang" --target=wasm32-wasi -mexec-model=reactor -o "$out/$name.wasm" "${objects[@]}" -lm \
    -Wl,--gc-sections -Wl,--strip-all -Wl,-z,stack-size=65536 -Wl,--stack-first \
    "-Wl,--initial-memory=$((pages * 65536))" "-Wl,--max-memory=$((pages * 65536))"
  chmod 644 "$out/$name.wasm"
  sha256sum "$out/$name.wasm"
  ls -l "$out/$name.wasm"
}

build campplus 320 campplus front_end winograd dense
build segmentation 140 segmentation sincnet lstm classifier
build segmentation-v8 56 segmentation_v8 log_mel linear normalisation attention gru output
