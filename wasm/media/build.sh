#!/usr/bin/env bash
# Builds media.wasm: FFmpeg's demuxers and audio decoders, for wasm32-wasi, one thread, no system access.
#
# Needs (Debian 12): clang-14, lld-14, llvm-14, wasi-libc, libclang-rt-14-dev-wasm32, make, patch, xz-utils.
# Downloads only Debian's source package of FFmpeg, or nothing if FFMPEG_TARBALL names a copy.
#
#   wasm/media/build.sh
#   FFMPEG_TARBALL=/path/ffmpeg_5.1.9.orig.tar.xz …        offline
#   WORK=/some/folder …                                    keep the build folder (default: a temporary one)
#   OUT=/some/file.wasm …                                  write to this file, not beside this script
#
# Every *.patch beside this script is applied to the source.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
out="${OUT:-$here/media.wasm}"
demuxers=wav,w64,aiff,caf,au,flac,mp3,aac,loas,ac3,eac3,dts,dtshd,amr,ape,wv,tta,mpc,mpc8,dsf
demuxers+=,mov,matroska,ogg,mpegts,mpegps,asf,avi,flv
parsers=aac,aac_latm,ac3,amr,dca,flac,mpegaudio,opus,vorbis
decoders=mp1float,mp2float,mp3float,aac,aac_latm,ac3,eac3,dca,flac,alac,vorbis,opus,speex
decoders+=,wmav1,wmav2,wmapro,wmalossless,wmavoice,ape,wavpack,tta,mpc7,mpc8,amrnb,amrwb,gsm,gsm_ms
decoders+=,dsd_lsbf,dsd_msbf,dsd_lsbf_planar,dsd_msbf_planar
decoders+=,adpcm_ima_wav,adpcm_ms,adpcm_ima_qt,adpcm_swf,adpcm_g722,adpcm_g726,adpcm_g726le,nellymoser
decoders+=,pcm_u8,pcm_s8,pcm_s16le,pcm_s16be,pcm_s24le,pcm_s24be,pcm_s32le,pcm_s32be
decoders+=,pcm_f32le,pcm_f32be,pcm_f64le,pcm_f64be,pcm_alaw,pcm_mulaw,pcm_bluray,pcm_dvd
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
for change in "$here"/*.patch; do
  [ ! -f "$change" ] || patch --quiet --directory "$source" --strip 1 <"$change"
done

# --- configure and compile ------------------------------------------------------------------------------------------
# The target triple is wasm32-wasi; "none" keeps configure from probing an operating system.
cflags=(--target=wasm32-wasi -O3 -msimd128 -fno-math-errno -ffunction-sections -fdata-sections -fvisibility=hidden
  "-ffile-prefix-map=$work=." -D_WASI_EMULATED_SIGNAL)
configure=(
  --target-os=none --arch=wasm32 --enable-cross-compile
  "--cc=clang$llvm" "--ar=llvm-ar$llvm" "--ranlib=llvm-ranlib$llvm" "--nm=llvm-nm$llvm" --strip=true
  --disable-asm --disable-pthreads --disable-autodetect --disable-iconv --disable-everything --disable-programs --disable-doc
  --disable-debug --disable-network --disable-avdevice --disable-avfilter --disable-swscale
  --disable-postproc --disable-runtime-cpudetect --enable-static --disable-shared --enable-avformat --enable-swresample
  "--enable-demuxer=$demuxers" "--enable-parser=$parsers" "--enable-decoder=$decoders"
)
cd "$work/build"
"$source/configure" "${configure[@]}" "--extra-cflags=${cflags[*]}" "--extra-ldflags=--target=wasm32-wasi" \
  >configure.log 2>&1 || { tail -30 configure.log ffbuild/config.log >&2; exit 1; }
# Only the libraries: make's default goal would link test programs. file_open.o needs mkstemp and tempnam, which WASI
# lacks: it is left out, and media.c defines the one function that other objects use.
sed -i 's/\bfile_open\.o\b//' "$source/libavutil/Makefile" "$source/libavformat/Makefile" "$source/libavcodec/Makefile"
libraries=(libavformat/libavformat.a libavcodec/libavcodec.a libswresample/libswresample.a libavutil/libavutil.a)
make -j"${JOBS:-2}" "${libraries[@]}" >make.log 2>&1 ||
  { grep -n -E 'error' make.log >&2 || true; tail -20 make.log >&2; exit 1; }

# --- link -----------------------------------------------------------------------------------------------------------
# Without -O, with which clang 14 would call wasm-opt. The stack is below the data, so that an overflow traps instead of
# overwriting data. A read that throws leaves the stack pointer where it was: it is exported, so that it can be set back.
"clang$llvm" "${cflags[@]}" -mmutable-globals -I. -I"$source" -c "$here/media.c" -o media.o
for own in mp3_window upsampler; do
  "clang$llvm" "${cflags[@]}" -I. -I"$source" -c "$here/../codecs/$own.c" -o "$own.o"
done
"clang$llvm" --target=wasm32-wasi -mexec-model=reactor -o "$out" media.o mp3_window.o upsampler.o \
  -Wl,--wrap=ff_mpadsp_apply_window_float -Wl,--wrap=swri_resample_dsp_init \
  -Wl,--wrap=free -Wl,--wrap=avio_seek -Wl,--wrap=avio_skip -Wl,--export=__stack_pointer \
  "${libraries[@]}" -lm -lwasi-emulated-signal \
  -Wl,--gc-sections -Wl,--strip-all -Wl,-z,stack-size=524288 -Wl,--stack-first -Wl,--max-memory=67108864

echo "configure: ${configure[*]}"
echo "cflags: ${cflags[*]}" | sed "s#$work#WORK#"
chmod 644 "$out"
sha256sum "$out"
ls -l "$out"
