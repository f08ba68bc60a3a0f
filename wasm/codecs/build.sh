#!/usr/bin/env bash
# Builds codecs.wasm: the audio decoders of FFmpeg's libavcodec, for wasm32-wasi, one thread, no system access.
#
# Needs (Debian 12): clang-14, lld-14, llvm-14, wasi-libc, libclang-rt-14-dev-wasm32, make, xz-utils.
# Downloads only Debian's source package of FFmpeg, or nothing if FFMPEG_TARBALL names a copy.
#
#   wasm/codecs/build.sh                                   the full list of decoders
#   DECODERS=mp3float,flac wasm/codecs/build.sh            fewer
#   FFMPEG_TARBALL=/path/ffmpeg_5.1.9.orig.tar.xz …        offline
#   WORK=/some/folder …                                    keep the build folder (default: a temporary one)
#   OUT=/some/file.wasm …                                  write to this file, not beside this script
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
out="${OUT:-$here/codecs.wasm}"
all_decoders=mp3float,mp2float,flac,aac,alac,vorbis,opus,ac3,eac3
all_decoders+=,adpcm_ima_wav,adpcm_ms,adpcm_ima_qt,gsm_ms,amrnb,amrwb
decoders="${DECODERS:-$all_decoders}"
version=5.1.9
debian_version=7:5.1.9-0+deb12u1
tarball_sha256=d9b593bb2ba93d4b50f74177e0cdcd41747e708596367deed0c30348a71dd176

llvm=""
for suffix in -14 ""; do
  if command -v "clang$suffix" >/dev/null && command -v "llvm-ar$suffix" >/dev/null; then llvm="$suffix" && break; fi
done
command -v "clang$llvm" >/dev/null || {
  echo "clang is missing (Debian: apt-get install clang lld llvm wasi-libc libclang-rt-14-dev-wasm32)" >&2
  exit 1
}

if [ -n "${WORK:-}" ]; then
  mkdir -p "$WORK"
  work="$(cd "$WORK" && pwd)"
else
  work="$(mktemp -d)"
  trap 'rm -rf "$work"' EXIT
fi
cd "$work"

# --- the source -----------------------------------------------------------------------------------------------------
tarball="${FFMPEG_TARBALL:-}"
if [ -z "$tarball" ]; then
  tarball="$work/ffmpeg_$version.orig.tar.xz"
  if [ ! -f "$tarball" ]; then
    # Uses this system's package sources in a private apt state, which needs no root and does not change the system.
    mkdir -p apt/lists/partial apt/archives/partial apt/sources
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
      [ ! -f "$list" ] || sed -n 's/^deb /deb-src /p' "$list" >>apt/sources/all.list
    done
    for file in /etc/apt/sources.list.d/*.sources; do
      [ ! -f "$file" ] || sed 's/^Types:.*/Types: deb-src/' "$file" >"apt/sources/$(basename "$file")"
    done
    apt=(apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/apt/sources"
      -o Dir::State::Lists="$work/apt/lists" -o Dir::Cache="$work/apt" -o Debug::NoLocking=1)
    "${apt[@]}" update
    "${apt[@]}" source --download-only --only-source "ffmpeg=$debian_version"
  fi
fi
echo "$tarball_sha256  $tarball" | sha256sum --check --quiet

source="$work/ffmpeg-$version"
rm -rf "$source" "$work/build"
mkdir -p "$source" "$work/build"
tar -xf "$tarball" -C "$source" --strip-components=1

# --- configure and compile ------------------------------------------------------------------------------------------
# The target triple is wasm32-wasi; "none" keeps configure from probing an operating system.
cflags=(--target=wasm32-wasi -O3 -msimd128 -fno-math-errno -ffunction-sections -fdata-sections -fvisibility=hidden
  "-ffile-prefix-map=$work=." -D_WASI_EMULATED_SIGNAL)
configure=(
  --target-os=none --arch=wasm32 --enable-cross-compile
  "--cc=clang$llvm" "--ar=llvm-ar$llvm" "--ranlib=llvm-ranlib$llvm" "--nm=llvm-nm$llvm" --strip=true
  --disable-asm --disable-pthreads --disable-autodetect --disable-everything --disable-programs --disable-doc
  --disable-debug --disable-network --disable-avdevice --disable-avformat --disable-avfilter --disable-swscale
  --disable-postproc --disable-runtime-cpudetect --enable-static --disable-shared --enable-swresample
  "--enable-decoder=$decoders"
)
cd "$work/build"
"$source/configure" "${configure[@]}" "--extra-cflags=${cflags[*]}" "--extra-ldflags=--target=wasm32-wasi" \
  >configure.log 2>&1 || { tail -30 configure.log ffbuild/config.log >&2; exit 1; }
# Only the three libraries: make's default goal would link test programs. file_open.o needs mkstemp and tempnam, which
# WASI lacks: it is left out, and codecs.c defines the one function that other objects use.
sed -i 's/\bfile_open\.o\b//' "$source/libavutil/Makefile"
make -j"${JOBS:-2}" libavcodec/libavcodec.a libavutil/libavutil.a libswresample/libswresample.a >make.log 2>&1 ||
  { grep -n -E 'error' make.log >&2 || true; tail -20 make.log >&2; exit 1; }

# --- link -----------------------------------------------------------------------------------------------------------
# Without -O, with which clang 14 would call wasm-opt. The stack is below the data, so that an overflow traps instead of
# overwriting data. The limit of 32 MiB is for damaged input; normal use is far below (../README.md).
for own in codecs mp3_window upsampler; do
  "clang$llvm" "${cflags[@]}" -I. -I"$source" -c "$here/$own.c" -o "$own.o"
done
"clang$llvm" --target=wasm32-wasi -mexec-model=reactor -o "$out" codecs.o mp3_window.o upsampler.o \
  -Wl,--wrap=ff_mpadsp_apply_window_float -Wl,--wrap=swri_resample_dsp_init \
  libavcodec/libavcodec.a libswresample/libswresample.a libavutil/libavutil.a -lm -lwasi-emulated-signal \
  -Wl,--gc-sections -Wl,--strip-all -Wl,-z,stack-size=524288 -Wl,--stack-first -Wl,--max-memory=33554432

echo "configure: ${configure[*]}"
echo "cflags: ${cflags[*]}" | sed "s#$work#WORK#"
chmod 644 "$out"
sha256sum "$out"
ls -l "$out"
