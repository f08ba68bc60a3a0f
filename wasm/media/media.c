/*
 * The C interface of media.wasm: the bytes of a recording in, planes of float samples with their times out.
 *
 * An instance reads one recording. The host answers every read at once, or its function throws because it does not have
 * the bytes yet. Then nothing here runs again: the host sets memory and stack pointer back to an earlier copy, fetches
 * the bytes, and repeats the calls since that copy. Hence all state is in linear memory, the break of the heap too.
 *
 * Licence: MIT, as the rest of rollcall. The linked parts of FFmpeg are LGPL-2.1-or-later.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libavcodec/avcodec.h"
#include "libavformat/avformat.h"
#include "libavformat/isom.h"
#include "libavutil/channel_layout.h"
#include "libavutil/intreadwrite.h"
#include "libavutil/log.h"

#define EXPORT(name) __attribute__((visibility("default"), export_name(#name)))

#define PAGE_BYTES 65536
/* The heap never ends above this, so that a damaged file cannot fill the isolate. */
#define MAX_MEMORY_BYTES (64 << 20)
#define IO_BUFFER_BYTES (32 << 10)
/* A frame with more values, over all channels, is damaged. FLAC has at most 65535 × 8. */
#define MAX_FRAME_VALUES (1 << 21)

/* False pages of OGG take milliseconds each. */
#define MAX_VAIN_READS 1024
/* More channels are refused. */
#define MAX_CHANNELS 64
#define MAX_INDEX_BYTES (1 << 14)

/* Results below 0; src/platform/wasm/media.ts has the same numbers. */
enum {
  RM_END = -1,
  RM_UNKNOWN_FORMAT = -2,
  RM_NO_AUDIO = -3,
  RM_NO_DECODER = -4,
  RM_DAMAGED = -5,
  RM_CHANGED = -6,
  RM_NO_MEMORY = -7,
  RM_ENCRYPTED = -8,
};

static struct {
  const AVInputFormat *input;
  AVFormatContext *format;
  AVIOContext *io;
  AVCodecContext *decoder;
  AVPacket *packet;
  AVFrame *frame;
  AVStream *stream;
  int64_t size;
  /* FFmpeg's last error. */
  int error;
  /* Rate in Hz, channels and layout of the first frame. */
  int rate, channels;
  AVChannelLayout layout;
  float *planes;
  int capacity;
  /* Time of the first sample of `planes` in the container's clock, in samples; NaN if unknown. */
  double position;
  /* Their length by the container, in samples; NaN if it does not say. */
  double duration;
  int is_draining;
  /* Attempts to read a packet since the last one. */
  int vain_reads;
  /* Packets without samples, and those of them that are damaged. */
  int lost_packets, damaged_packets;
} media;

/* Copies up to `length` bytes at `position` to `buffer`. Returns their number, 0 at the end of the recording. Throws. */
__attribute__((import_module("rollcall"), import_name("read"))) int host_read(double position, uint8_t *buffer,
                                                                             int length);

/* libavutil's file helpers are left out of the build; no file is opened. */
int avpriv_open(const char *filename, int flags, ...) {
  (void)filename;
  (void)flags;
  return -1;
}

/* WASI has no process clock; FFmpeg uses it only to seed random numbers. */
clock_t clock(void) { return 0; }

/* libavutil would read the colours of a terminal. */
char *getenv(const char *name) {
  (void)name;
  return NULL;
}

/* libc's takes the size of the memory as the break. An instance that was set back has more memory than its copy. */
void *sbrk(intptr_t increment) {
  static uintptr_t end;
  if (end == 0) end = __builtin_wasm_memory_size(0) * PAGE_BYTES;
  if (increment < 0 || increment % PAGE_BYTES != 0) abort();
  uintptr_t from = end, wanted = end + (uintptr_t)increment, present = __builtin_wasm_memory_size(0) * PAGE_BYTES;
  if (wanted > MAX_MEMORY_BYTES ||
      (wanted > present && __builtin_wasm_memory_grow(0, (wanted - present) / PAGE_BYTES) == SIZE_MAX)) {
    errno = ENOMEM;
    return (void *)-1;
  }
  end = wanted;
  return (void *)from;
}

void __real_free(void *pointer);

/* What is not in use is set to 0, so that copies compress well. */
void __wrap_free(void *pointer) {
  if (pointer) memset(pointer, 0, malloc_usable_size(pointer));
  __real_free(pointer);
}

/* Bytes of linear memory in use, from 0. */
EXPORT(rm_memory) int rm_memory(void) { return (int)(uintptr_t)sbrk(0); }

static int read_bytes(void *opaque, uint8_t *buffer, int length) {
  (void)opaque;
  int got = host_read((double)media.io->pos, buffer, length);
  return got > 0 ? got : AVERROR_EOF;
}

static int64_t seek_to(void *opaque, int64_t offset, int whence) {
  (void)opaque;
  if (whence == AVSEEK_SIZE) return media.size;
  return whence == SEEK_SET ? offset : AVERROR(EINVAL);
}

int64_t __real_avio_seek(AVIOContext *io, int64_t offset, int whence);

/*
 * Demuxers believe that the input cannot seek, so that they read forward and never look for an index at the end. For
 * such an input libavformat reads through what it skips; the host need not.
 */
int64_t __wrap_avio_seek(AVIOContext *io, int64_t offset, int whence) {
  if (io && io == media.io && (whence == SEEK_SET || whence == SEEK_CUR)) {
    int64_t at = io->pos - (io->buf_end - io->buf_ptr);
    int64_t target = whence == SEEK_SET ? offset : offset > INT64_MAX - at ? INT64_MAX : at + offset;
    if (target > io->pos) {
      int64_t reached = target < media.size ? target : media.size;
      io->buf_end = io->buf_ptr = io->buf_ptr_max = io->checksum_ptr = io->buffer;
      io->pos = reached;
      io->eof_reached = target > reached;
      return target > reached ? AVERROR_EOF : target;
    }
  }
  return __real_avio_seek(io, offset, whence);
}

int64_t __wrap_avio_skip(AVIOContext *io, int64_t offset) { return __wrap_avio_seek(io, offset, SEEK_CUR); }

static int failed(int error, int code) {
  media.error = error;
  return error == AVERROR(ENOMEM) ? RM_NO_MEMORY : code;
}

/* Skips the packets of pictures, and if `index` is not below 0 those of all streams but that one. */
static void discard_all_but(int index) {
  for (unsigned i = 0; i < media.format->nb_streams; i++) {
    AVStream *stream = media.format->streams[i];
    int is_video = stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO;
    if (index < 0 ? is_video : (int)i != index) stream->discard = AVDISCARD_ALL;
  }
}

static int is_mp4(void) { return !strncmp(media.input->name, "mov", 3); }

static int is_encrypted(const AVStream *stream) {
  static const char tags[][5] = {"enca", "drms", "aavd"};
  if (is_mp4()) {
    for (int i = 0; i < 3; i++) {
      if (stream->codecpar->codec_tag == AV_RL32(tags[i])) return 1;
    }
    const MOVStreamContext *track = stream->priv_data;
    return track->cenc.default_encrypted_sample || track->cenc.encryption_index;
  }
  /* Of Matroska. */
  return av_dict_get(stream->metadata, "enc_key_id", NULL, 0) != NULL;
}

static int open_decoder(void) {
  const AVCodec *codec = NULL;
  int index = av_find_best_stream(media.format, AVMEDIA_TYPE_AUDIO, -1, -1, &codec, 0);
  int has_decoder = index != AVERROR_DECODER_NOT_FOUND;
  if (!has_decoder) index = av_find_best_stream(media.format, AVMEDIA_TYPE_AUDIO, -1, -1, NULL, 0);
  if (index < 0) return failed(index, RM_NO_AUDIO);
  media.stream = media.format->streams[index];
  if (is_encrypted(media.stream)) return failed(AVERROR(EACCES), RM_ENCRYPTED);
  if (!has_decoder) return failed(AVERROR_DECODER_NOT_FOUND, RM_NO_DECODER);
  discard_all_but(index);
  media.decoder = avcodec_alloc_context3(codec);
  media.packet = av_packet_alloc();
  media.frame = av_frame_alloc();
  if (!media.decoder || !media.packet || !media.frame) return failed(AVERROR(ENOMEM), RM_NO_MEMORY);
  int error = avcodec_parameters_to_context(media.decoder, media.stream->codecpar);
  if (error < 0) return failed(error, RM_DAMAGED);
  media.decoder->pkt_timebase = media.stream->time_base;
  media.decoder->thread_count = 1;
  error = avcodec_open2(media.decoder, codec, NULL);
  return error < 0 ? failed(error, RM_NO_DECODER) : 0;
}

/*
 * Recognises the format and opens the best audio stream. `can_seek` is for containers whose index is at the end and
 * that look for it only if the input can seek. Once per instance. Returns 0 or a code below 0.
 */
EXPORT(rm_open) int rm_open(double size, int can_seek) {
  /* No log: printing a long double aborts in this libc. */
  av_log_set_level(AV_LOG_QUIET);
  av_log_set_callback(NULL);
  media.size = (int64_t)size;
  uint8_t *buffer = av_malloc(IO_BUFFER_BYTES);
  media.format = avformat_alloc_context();
  if (!buffer || !media.format) return failed(AVERROR(ENOMEM), RM_NO_MEMORY);
  media.io = avio_alloc_context(buffer, IO_BUFFER_BYTES, 0, NULL, read_bytes, NULL, seek_to);
  if (!media.io) return failed(AVERROR(ENOMEM), RM_NO_MEMORY);
  media.io->seekable = can_seek ? AVIO_SEEKABLE_NORMAL : 0;
  media.format->pb = media.io;
  /* The frame rate of pictures is of no interest; an index of what was read would only make copies larger. */
  media.format->fps_probe_size = 0;
  media.format->max_index_size = MAX_INDEX_BYTES;
  int error = av_probe_input_buffer2(media.io, &media.input, "", NULL, 0, 0);
  if (error < 0) return failed(error, RM_UNKNOWN_FORMAT);
  error = avformat_open_input(&media.format, "", media.input, NULL);
  if (error < 0) return failed(error, RM_DAMAGED);
  discard_all_but(-1);
  error = avformat_find_stream_info(media.format, NULL);
  if (error < 0) return failed(error, RM_DAMAGED);
  return open_decoder();
}

/* Decoders exceed 1 only for damaged frames; NaN becomes silence. */
static inline float bounded(float value) {
  return value > 1.0f ? 1.0f : value < -1.0f ? -1.0f : value == value ? value : 0.0f;
}

/* PCM may be scaled otherwise; NaN and infinity become silence. */
static inline float finite_or_zero(float value) { return value - value == 0.0f ? value : 0.0f; }

static int is_pcm(void) {
  enum AVCodecID id = media.decoder->codec_id;
  return id >= AV_CODEC_ID_FIRST_AUDIO && id < AV_CODEC_ID_ADPCM_IMA_QT;
}

#define CONVERT(type, expression)                                              \
  do {                                                                         \
    const type *in = (const type *)source;                                     \
    for (int i = 0; i < count; i++) {                                          \
      type sample = in[(size_t)i * stride];                                    \
      out[i] = (expression);                                                   \
    }                                                                          \
  } while (0)

static int convert(const AVFrame *frame, int channel, float *out) {
  enum AVSampleFormat format = (enum AVSampleFormat)frame->format;
  int planar = av_sample_fmt_is_planar(format), count = frame->nb_samples;
  size_t stride = planar ? 1 : (size_t)media.channels;
  const uint8_t *source = planar ? frame->extended_data[channel]
                                 : frame->extended_data[0] + (size_t)channel * (size_t)av_get_bytes_per_sample(format);
  switch (av_get_packed_sample_fmt(format)) {
    case AV_SAMPLE_FMT_FLT:
      if (is_pcm()) CONVERT(float, finite_or_zero(sample));
      else CONVERT(float, bounded(sample));
      return 1;
    case AV_SAMPLE_FMT_DBL:
      if (is_pcm()) CONVERT(double, finite_or_zero((float)sample));
      else CONVERT(double, bounded((float)sample));
      return 1;
    case AV_SAMPLE_FMT_S16:
      CONVERT(int16_t, (float)sample / 32768.0f);
      return 1;
    case AV_SAMPLE_FMT_S32:
      CONVERT(int32_t, (float)sample / 2147483648.0f);
      return 1;
    case AV_SAMPLE_FMT_U8:
      CONVERT(uint8_t, ((float)sample - 128.0f) / 128.0f);
      return 1;
    default:
      return 0;
  }
}

/* A time in ticks of the stream's clock, in samples. */
static double samples_of(double ticks) {
  return ticks * media.stream->time_base.num * media.rate / media.stream->time_base.den;
}

/* Writes the frame to `planes`. Returns its samples a channel, or a code below 0. */
static int deliver(void) {
  const AVFrame *frame = media.frame;
  int count = frame->nb_samples, channels = frame->ch_layout.nb_channels;
  if (count <= 0 || channels <= 0 || frame->sample_rate <= 0) return 0;
  if (media.rate == 0) {
    media.rate = frame->sample_rate;
    media.channels = channels;
    if (av_channel_layout_copy(&media.layout, &frame->ch_layout) < 0) return failed(AVERROR(ENOMEM), RM_NO_MEMORY);
  }
  if (frame->sample_rate != media.rate || channels != media.channels) return failed(AVERROR_INPUT_CHANGED, RM_CHANGED);
  if ((int64_t)count * channels > MAX_FRAME_VALUES) return failed(AVERROR_INVALIDDATA, RM_DAMAGED);
  if (count * channels > media.capacity) {
    av_free(media.planes);
    media.planes = av_malloc((size_t)count * (size_t)channels * sizeof(float));
    media.capacity = media.planes ? count * channels : 0;
    if (!media.planes) return failed(AVERROR(ENOMEM), RM_NO_MEMORY);
  }
  for (int channel = 0; channel < channels; channel++) {
    if (!convert(frame, channel, media.planes + (size_t)channel * (size_t)count)) {
      return failed(AVERROR_PATCHWELCOME, RM_NO_DECODER);
    }
  }
  /* FFmpeg counts a packet of GSM in WAV, with many blocks, as one block. */
  int has_time = frame->pts != AV_NOPTS_VALUE && media.decoder->codec_id != AV_CODEC_ID_GSM_MS;
  media.position = has_time ? samples_of((double)frame->pts) : __builtin_nan("");
  media.duration = is_mp4() && frame->pkt_duration > 0 ? samples_of((double)frame->pkt_duration) : __builtin_nan("");
  return count;
}

static void count_lost(void) {
  enum AVCodecID id = media.decoder->codec_id;
  media.lost_packets++;
  /* The pauses of AMR are packets that FFmpeg refuses. */
  if (id != AV_CODEC_ID_AMR_NB && id != AV_CODEC_ID_AMR_WB) media.damaged_packets++;
}

/*
 * Decodes on: reads at most one packet. Returns the number of samples a channel at rm_planes, 0 if there are none yet,
 * RM_END, or another code below 0, after which no further call is useful.
 */
EXPORT(rm_step) int rm_step(void) {
  int error = avcodec_receive_frame(media.decoder, media.frame);
  if (error == 0) {
    int count = deliver();
    av_frame_unref(media.frame);
    return count;
  }
  if (error == AVERROR_EOF || (media.is_draining && error == AVERROR(EAGAIN))) return RM_END;
  if (error != AVERROR(EAGAIN)) {
    if (error == AVERROR(ENOMEM)) return failed(error, RM_NO_MEMORY);
    count_lost();
    /* While it is drained, a decoder that fails would fail for ever. */
    if (media.is_draining) return RM_END;
  }
  if (media.is_draining) return 0;
  error = av_read_frame(media.format, media.packet);
  media.vain_reads = error == AVERROR(EAGAIN) ? media.vain_reads + 1 : 0;
  if (media.vain_reads > MAX_VAIN_READS) error = AVERROR_INVALIDDATA;
  if (error == AVERROR(EAGAIN)) return 0;
  if (error == AVERROR(ENOMEM)) return failed(error, RM_NO_MEMORY);
  if (error < 0) {
    if (error != AVERROR_EOF) media.error = error;
    media.is_draining = 1;
    avcodec_send_packet(media.decoder, NULL);
    return 0;
  }
  int is_audio = media.packet->stream_index == media.stream->index;
  error = is_audio ? avcodec_send_packet(media.decoder, media.packet) : 0;
  av_packet_unref(media.packet);
  if (error == AVERROR(ENOMEM)) return failed(error, RM_NO_MEMORY);
  if (error < 0) count_lost();
  return 0;
}

/* Samples of the last rm_step, one channel after the other. */
EXPORT(rm_planes) const float *rm_planes(void) { return media.planes; }

/*
 * Whether a channel has low-frequency effects, which a down-mix leaves out (ITU-R BS.775). Mono and stereo have none.
 */
static int is_effects(int channel) {
  if (media.layout.nb_channels <= 2 || media.layout.order == AV_CHANNEL_ORDER_UNSPEC) return 0;
  enum AVChannel name = av_channel_layout_channel_from_index(&media.layout, (unsigned)channel);
  return name == AV_CHAN_LOW_FREQUENCY || name == AV_CHAN_LOW_FREQUENCY_2;
}

/*
 * Mixes the last `count` samples to mono, in the first plane: one channel, or the mean of those without low-frequency
 * effects if `channel` is below 0. Once per step.
 */
EXPORT(rm_mix) void rm_mix(int channel, int count) {
  float *out = media.planes;
  const float *heard[MAX_CHANNELS];
  int number = 0;
  for (int c = 0; c < media.channels && c < MAX_CHANNELS; c++) {
    if (channel < 0 ? !is_effects(c) : c == channel) heard[number++] = out + (size_t)c * (size_t)count;
  }
  if (number == 0) {
    memset(out, 0, (size_t)count * sizeof(float));
  } else if (number == 1) {
    if (heard[0] != out) memcpy(out, heard[0], (size_t)count * sizeof(float));
  } else if (number == 2) {
    /* The same bits as in double precision. */
    for (int i = 0; i < count; i++) out[i] = (heard[0][i] + heard[1][i]) * 0.5f;
  } else {
    for (int i = 0; i < count; i++) {
      double sum = 0;
      for (int c = 0; c < number; c++) sum += heard[c][i];
      out[i] = (float)(sum / number);
    }
  }
}

/* Time of their first sample, in samples from the start of the container's clock; NaN if it states none. */
EXPORT(rm_position) double rm_position(void) { return media.position; }

/* Length of these samples by an MP4 file, which rounds it to its clock. NaN for others. */
EXPORT(rm_duration) double rm_duration(void) { return media.duration; }

/* Samples of one tick of the clock of these times. */
EXPORT(rm_tick) double rm_tick(void) { return samples_of(1); }

EXPORT(rm_rate) int rm_rate(void) { return media.rate; }

EXPORT(rm_channels) int rm_channels(void) { return media.channels; }

EXPORT(rm_lost_packets) int rm_lost_packets(void) { return media.lost_packets; }

EXPORT(rm_damaged_packets) int rm_damaged_packets(void) { return media.damaged_packets; }

/*
 * Start and length in ticks from the comment that iTunes writes instead of an edit list. FFmpeg uses only the start,
 * and for HE-AAC half of it.
 */
static int read_gapless(double *start, double *length) {
  const AVDictionaryEntry *entry = av_dict_get(media.format->metadata, "iTunSMPB", NULL, 0);
  if (!is_mp4() || !entry || ((const MOVStreamContext *)media.stream->priv_data)->elst_count > 0) return 0;
  char *rest = entry->value;
  strtoull(rest, &rest, 16);
  *start = (double)strtoull(rest, &rest, 16);
  strtoull(rest, &rest, 16);
  *length = (double)strtoull(rest, &rest, 16);
  return *length > 0;
}

/* Time at which an MP4 file starts to play, as rm_position. NaN for others, which start with their first samples. */
EXPORT(rm_start) double rm_start(void) {
  double start, length;
  if (!is_mp4()) return __builtin_nan("");
  return read_gapless(&start, &length) ? samples_of(start) : 0;
}

/*
 * Time at which an MP4 file ends; if it is in fragments, known after the last one. NaN for others, whose durations are
 * estimates.
 */
EXPORT(rm_end) double rm_end(void) {
  double start, length;
  if (!is_mp4()) return __builtin_nan("");
  if (read_gapless(&start, &length)) return samples_of(start + length);
  const AVStream *stream = media.stream;
  const MOVStreamContext *track = stream->priv_data;
  if (((const MOVContext *)media.format->priv_data)->trex_data) {
    return media.is_draining ? samples_of((double)(track->track_end - track->time_offset)) : __builtin_nan("");
  }
  if (stream->duration <= 0 || stream->start_time == AV_NOPTS_VALUE) return __builtin_nan("");
  return samples_of((double)stream->start_time + (double)stream->duration);
}

/* Samples of one tick of the clock in which that end is stated; 0 if there is none. */
EXPORT(rm_end_tick) double rm_end_tick(void) {
  int scale = is_mp4() ? ((const MOVContext *)media.format->priv_data)->time_scale : 0;
  return scale > 0 ? (double)media.rate / scale : 0;
}

/* A text that ends with 0: 0 the name of the format, 1 that of the codec, 2 FFmpeg's last error; may be empty. */
EXPORT(rm_text) const char *rm_text(int which) {
  static char text[AV_ERROR_MAX_STRING_SIZE];
  text[0] = 0;
  if (which == 0) return media.input ? media.input->name : text;
  if (which == 1) return media.stream ? avcodec_get_name(media.stream->codecpar->codec_id) : text;
  if (media.error < 0) av_strerror(media.error, text, sizeof(text));
  return text;
}
