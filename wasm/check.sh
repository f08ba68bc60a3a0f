#!/usr/bin/env bash
# Checks the committed modules: their checksums, and that a rebuild gives the same bytes.
#   wasm/check.sh            checksums, rebuild of dsp.wasm and of the networks' modules (seconds)
#   wasm/check.sh --codecs   also codecs.wasm and media.wasm (minutes; fetches Debian's source of FFmpeg unless FFMPEG_TARBALL is set)
# Only clang 14.0.6 of Debian 12 gives the same bytes; with another compiler the script exits with status 3.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cd "$here"
if command -v sha256sum >/dev/null; then sha256sum -c SHA256SUMS; else shasum -a 256 -c SHA256SUMS; fi

if ! { command -v clang-14 >/dev/null && clang-14 --version | grep -q 'version 14\.0\.6' &&
  [ -e /usr/lib/wasm32-wasi/libc.a ] &&
  [ -e /usr/lib/llvm-14/lib/clang/14.0.6/lib/wasi/libclang_rt.builtins-wasm32.a ]; }; then
  echo "not rebuilt: needs clang 14.0.6, lld, wasi-libc and libclang-rt-14-dev-wasm32 of Debian 12"
  exit 3
fi

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
OUT="$scratch/dsp.wasm" ./dsp/build.sh >/dev/null
cmp "$scratch/dsp.wasm" dsp/dsp.wasm
echo "dsp.wasm: the rebuild is identical"
OUT="$scratch" ./networks/build.sh >/dev/null
for module in networks/*.wasm; do
  cmp "$scratch/$(basename "$module")" "$module"
  echo "$(basename "$module"): the rebuild is identical"
done
if [ "${1:-}" = "--codecs" ]; then
  OUT="$scratch/codecs.wasm" ./codecs/build.sh >/dev/null
  cmp "$scratch/codecs.wasm" codecs/codecs.wasm
  echo "codecs.wasm: the rebuild is identical"
  OUT="$scratch/media.wasm" ./media/build.sh >/dev/null
  cmp "$scratch/media.wasm" media/media.wasm
  echo "media.wasm: the rebuild is identical"
fi
