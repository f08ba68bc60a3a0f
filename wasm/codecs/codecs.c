/*
 * The C interface of codecs.wasm: packets in, mono float samples out.
 *
 * A single file on top of an unmodified libavcodec, so that a rebuild can replace the decoders (build.sh). All state
 * belongs to the handle that rc_open returns; handles are independent.
 *
 * Licence: MIT, as the rest of rollcall. The linked libavcodec, libavutil and libswresample are LGPL-2.1-or-later.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wasm_simd128.h>

#include "libavcodec/avcodec.h"
#include "libavutil/channel_layout.h"
#include "libavutil/log.h"
#include "libavutil/mem.h"

#define EXPORT(name) __attribute__((visibility("default"), export_name(#name)))

/* A larger packet is damaged (24-bit FLAC, 65535 samples, 8 channels is 1.6 MB). */
#define MAX_PACKET_BYTES (4 << 20)
/* Most samples of a packet; HE-AAC has 2048, FLAC at most 65535. */
#define MAX_OUTPUT_SAMPLES (1 << 18)

typedef struct Decoder {
  AVCodecContext *context;
  AVPacket *packet;
  AVFrame *frame;
  float *output;
  int output_capacity;
  uint8_t *input;
  int input_capacity;
  int sample_rate;
  /* Index of the one channel to decode; -1 for the mean of all. */
  int channel;
} Decoder;

/* libavutil's file helpers are left out of the build; decoders open no files. */
int avpriv_open(const char *filename, int flags, ...) {
  (void)filename;
  (void)flags;
  return -1;
}

/* WASI has no process clock; libavutil uses it only to seed random numbers, which no decoder uses. */
clock_t clock(void) { return 0; }

/* libavutil would read the colours of a terminal. */
char *getenv(const char *name) {
  (void)name;
  return NULL;
}

EXPORT(rc_alloc) void *rc_alloc(int size) { return size > 0 ? av_mallocz((size_t)size) : NULL; }

EXPORT(rc_free) void rc_free(void *pointer) { av_free(pointer); }

EXPORT(rc_close) void rc_close(Decoder *decoder) {
  if (!decoder) return;
  avcodec_free_context(&decoder->context);
  av_packet_free(&decoder->packet);
  av_frame_free(&decoder->frame);
  av_free(decoder->output);
  av_free(decoder->input);
  av_free(decoder);
}

/*
 * Opens libavcodec's decoder `name`. Copies `extra`, the codec's private data (may be NULL).
 * `block_align` and `bits_per_sample` are only for block codecs (ADPCM), 0 for others.
 * Returns a handle, or 0 if the codec is not in this build or refuses the parameters.
 */
EXPORT(rc_open)
Decoder *rc_open(const char *name, int sample_rate, int channels, const uint8_t *extra, int extra_size, int block_align,
                 int bits_per_sample) {
  /* No log: printing a long double aborts in this libc. */
  av_log_set_level(AV_LOG_QUIET);
  av_log_set_callback(NULL);

  const AVCodec *codec = avcodec_find_decoder_by_name(name);
  if (!codec || extra_size < 0 || extra_size > MAX_PACKET_BYTES) return NULL;
  Decoder *decoder = av_mallocz(sizeof(Decoder));
  if (!decoder) return NULL;
  decoder->channel = -1;
  decoder->context = avcodec_alloc_context3(codec);
  decoder->packet = av_packet_alloc();
  decoder->frame = av_frame_alloc();
  if (!decoder->context || !decoder->packet || !decoder->frame) goto failed;

  AVCodecContext *context = decoder->context;
  context->thread_count = 1;
  context->sample_rate = sample_rate;
  context->block_align = block_align;
  context->bits_per_coded_sample = bits_per_sample;
  /* Only the number of channels: the decoder names them, and FFmpeg would guess (three channels as 2.1). */
  if (channels > 0) context->ch_layout = (AVChannelLayout){.order = AV_CHANNEL_ORDER_UNSPEC, .nb_channels = channels};
  /* Trims nothing, because the caller counts the samples. */
  context->flags2 |= AV_CODEC_FLAG2_SKIP_MANUAL;
  if (extra_size > 0) {
    context->extradata = av_mallocz((size_t)extra_size + AV_INPUT_BUFFER_PADDING_SIZE);
    if (!context->extradata) goto failed;
    memcpy(context->extradata, extra, (size_t)extra_size);
    context->extradata_size = extra_size;
  }
  if (avcodec_open2(context, codec, NULL) < 0) goto failed;
  decoder->sample_rate = context->sample_rate > 0 ? context->sample_rate : sample_rate;
  return decoder;

failed:
  rc_close(decoder);
  return NULL;
}

/* Selects one channel, counted from 0, from the next packet on. A frame without that channel becomes silence. */
EXPORT(rc_select) void rc_select(Decoder *decoder, int channel) { decoder->channel = channel; }

/* Buffer for the next packet of `size` bytes, or 0 if it is too large. Valid until the next call with this handle. */
EXPORT(rc_input) uint8_t *rc_input(Decoder *decoder, int size) {
  if (size < 0 || size > MAX_PACKET_BYTES) return NULL;
  int needed = size + AV_INPUT_BUFFER_PADDING_SIZE;
  if (needed > decoder->input_capacity) {
    av_free(decoder->input);
    decoder->input = av_malloc((size_t)needed);
    decoder->input_capacity = decoder->input ? needed : 0;
    if (!decoder->input) return NULL;
  }
  memset(decoder->input + size, 0, AV_INPUT_BUFFER_PADDING_SIZE);
  return decoder->input;
}

static int reserve_output(Decoder *decoder, int samples) {
  if (samples > MAX_OUTPUT_SAMPLES) return 0;
  if (samples <= decoder->output_capacity) return 1;
  float *grown = av_realloc(decoder->output, (size_t)samples * sizeof(float));
  if (!grown) return 0;
  decoder->output = grown;
  decoder->output_capacity = samples;
  return 1;
}

/* Limits the samples of a damaged frame (1e5 was seen) to -1..1; NaN becomes silence. */
static inline float bounded(float value) {
  return value > 1.0f ? 1.0f : value < -1.0f ? -1.0f : value == value ? value : 0.0f;
}

/*
 * Whether a channel has low-frequency effects, which a down-mix leaves out (ITU-R BS.775). Mono and stereo have none.
 */
static int is_effects(const AVChannelLayout *layout, int channel) {
  if (layout->nb_channels <= 2 || layout->order == AV_CHANNEL_ORDER_UNSPEC) return 0;
  enum AVChannel name = av_channel_layout_channel_from_index(layout, (unsigned)channel);
  return name == AV_CHAN_LOW_FREQUENCY || name == AV_CHAN_LOW_FREQUENCY_2;
}

/* `out[i] (+)= scale * convert(sample)` for one channel of a frame; `convert` is an expression in `sample`. */
#define ADD_CHANNEL(type, convert)                                             \
  do {                                                                         \
    const type *in = (const type *)source + (planar ? 0 : channel);            \
    for (int i = 0; i < count; i++) {                                          \
      float sample = (float)in[(size_t)i * stride];                            \
      float value = (convert) * scale;                                         \
      out[i] = is_first ? value : out[i] + value;                              \
    }                                                                          \
  } while (0)

/* The same for a plane of floats, which most decoders return: four at a time, with the same bits. */
static void add_plane(const float *in, float *out, int count, float scale, int is_first) {
  const v128_t low = wasm_f32x4_splat(-1.0f), high = wasm_f32x4_splat(1.0f), factor = wasm_f32x4_splat(scale);
  int i = 0;
  for (; i + 4 <= count; i += 4) {
    v128_t sample = wasm_v128_load(in + i);
    v128_t within = wasm_v128_and(wasm_f32x4_min(wasm_f32x4_max(sample, low), high), wasm_f32x4_eq(sample, sample));
    v128_t value = wasm_f32x4_mul(within, factor);
    wasm_v128_store(out + i, is_first ? value : wasm_f32x4_add(wasm_v128_load(out + i), value));
  }
  for (; i < count; i++) {
    float value = bounded(in[i]) * scale;
    out[i] = is_first ? value : out[i] + value;
  }
}

static int is_heard(const Decoder *decoder, int channel) {
  if (decoder->channel >= 0) return channel == decoder->channel;
  return !is_effects(&decoder->frame->ch_layout, channel);
}

/*
 * Appends at `position` the selected channel, or the mean of the frame's channels without low-frequency effects.
 * Returns the sample count, or -1 for an unknown format.
 */
static int append_mono(Decoder *decoder, int position) {
  const AVFrame *frame = decoder->frame;
  int count = frame->nb_samples, channels = frame->ch_layout.nb_channels;
  if (count <= 0 || channels <= 0 || !reserve_output(decoder, position + count)) return -1;
  enum AVSampleFormat format = (enum AVSampleFormat)frame->format;
  int planar = av_sample_fmt_is_planar(format);
  int stride = planar ? 1 : channels;
  float *out = decoder->output + position;
  int heard = 0, is_first = 1;
  for (int channel = 0; channel < channels; channel++) heard += is_heard(decoder, channel);
  if (heard == 0 && decoder->channel < 0) return -1;
  if (heard == 0) memset(out, 0, (size_t)count * sizeof(float));
  for (int channel = 0; channel < channels; channel++) {
    if (!is_heard(decoder, channel)) continue;
    const void *source = planar ? frame->extended_data[channel] : frame->extended_data[0];
    float scale = 1.0f / (float)heard;
    switch (format) {
      case AV_SAMPLE_FMT_FLTP:
        add_plane(source, out, count, scale, is_first);
        break;
      case AV_SAMPLE_FMT_FLT:
        ADD_CHANNEL(float, bounded(sample));
        break;
      case AV_SAMPLE_FMT_DBL:
      case AV_SAMPLE_FMT_DBLP:
        ADD_CHANNEL(double, bounded(sample));
        break;
      case AV_SAMPLE_FMT_S16:
      case AV_SAMPLE_FMT_S16P:
        scale /= 32768.0f;
        ADD_CHANNEL(int16_t, sample);
        break;
      case AV_SAMPLE_FMT_S32:
      case AV_SAMPLE_FMT_S32P:
        scale /= 2147483648.0f;
        ADD_CHANNEL(int32_t, sample);
        break;
      case AV_SAMPLE_FMT_U8:
      case AV_SAMPLE_FMT_U8P:
        scale /= 128.0f;
        ADD_CHANNEL(uint8_t, sample - 128.0f);
        break;
      default:
        return -1;
    }
    is_first = 0;
  }
  return count;
}

/*
 * Decodes the first `size` bytes of the input buffer. Returns the number of mono samples at rc_output, 0 for a packet
 * without samples, -1 for a damaged packet (the decoder can still be used).
 */
EXPORT(rc_decode) int rc_decode(Decoder *decoder, int size) {
  if (!decoder->input || size <= 0 || size + AV_INPUT_BUFFER_PADDING_SIZE > decoder->input_capacity) return -1;
  decoder->packet->data = decoder->input;
  decoder->packet->size = size;
  int total = 0;
  int sent = avcodec_send_packet(decoder->context, decoder->packet);
  decoder->packet->data = NULL;
  decoder->packet->size = 0;
  if (sent < 0) return -1;
  for (;;) {
    int received = avcodec_receive_frame(decoder->context, decoder->frame);
    if (received == AVERROR(EAGAIN) || received == AVERROR_EOF) return total;
    if (received < 0) return total > 0 ? total : -1;
    decoder->sample_rate = decoder->frame->sample_rate;
    int count = append_mono(decoder, total);
    av_frame_unref(decoder->frame);
    if (count < 0) return -1;
    total += count;
  }
}

/* Mono samples of the last rc_decode, in -1..1. */
EXPORT(rc_output) const float *rc_output(const Decoder *decoder) { return decoder->output; }

/* Rate of these samples in Hz, from the decoder; for implicit HE-AAC it is twice the container's. */
EXPORT(rc_rate) int rc_rate(const Decoder *decoder) { return decoder->sample_rate; }

/* Clears the state of earlier packets, after a jump in the stream. */
EXPORT(rc_flush) void rc_flush(Decoder *decoder) { avcodec_flush_buffers(decoder->context); }
