#!/usr/bin/env bash
# Builds dsp.wasm: resampler, filterbank, mel powers and pooling. No imports, no network.
# Needs (Debian 12): clang-14, lld-14, wasi-libc (for sin, log, malloc), libclang-rt-14-dev-wasm32.
# OUT names another file.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
out="${OUT:-$here/dsp.wasm}"
clang=clang-14
command -v "$clang" >/dev/null || clang=clang
command -v "$clang" >/dev/null || {
  echo "clang is missing (Debian: apt-get install clang lld wasi-libc libclang-rt-14-dev-wasm32)" >&2
  exit 1
}
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# -ffp-contract=off: multiplications and additions round separately, as in the references of the tests.
cflags=(--target=wasm32-wasi -O3 -msimd128 -ffp-contract=off -fno-math-errno -Wall -Wextra -Werror -fvisibility=hidden
  "-ffile-prefix-map=$here=.")
objects=()
for part in resampler filterbank melpower pooling; do
  "$clang" "${cflags[@]}" -c "$here/$part.c" -o "$work/$part.o"
  objects+=("$work/$part.o")
done
# Without -O, with which clang 14 would call wasm-opt. The limit of 16 MiB is for faults of the caller.
"$clang" --target=wasm32-wasi -mexec-model=reactor -o "$out" "${objects[@]}" -lm \
  -Wl,--gc-sections -Wl,--strip-all -Wl,-z,stack-size=131072 -Wl,--stack-first -Wl,--max-memory=16777216
chmod 644 "$out"
sha256sum "$out"
ls -l "$out"
