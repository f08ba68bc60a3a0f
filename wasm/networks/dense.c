/*
 * CAM++ after its front end: the stem, dense layers with context-aware masking, and the transits between blocks.
 *
 * Activations of a block are [frames, MAX_CHANNELS]; each dense layer appends its GROWTH channels to the rows. The
 * 1 x 1 products of normalised activations take most of the time. They compute CHUNK frames at once, so that their
 * input stays in the cache.
 */
#include <math.h>

#include "campplus.h"

#define CHUNK 48
#define MAX_SEGMENTS ((MAX_FRAMES + SEGMENT_FRAMES - 1) / SEGMENT_FRAMES)

/* [CHUNK / 4][channels / 2][4 frames][2] */
static int16_t normalised[CHUNK * MAX_CHANNELS] ALIGNED;
/* With the frames before and after those of the run. Computed in groups of four: there may be three too many. */
static int16_t bottleneck[(MAX_FRAMES + 2 * BOTTLENECK_PAD + COLUMNS) * BOTTLENECK] ALIGNED;
static float gates[MAX_SEGMENTS][GROWTH] ALIGNED;

/* 16 channels of the stem for frames [0, frames): 5 frames of the front end each, with a stride of two frames. */
static HOT void stem_rows(const StemWeights *weights, int tile, int frames, int16_t *out) {
  const Vector zero = splat(0), limit = splat(WIDE_LIMIT);
  const float *scale = weights->scale + 16 * tile, *offset = weights->offset + 16 * tile;
  for (int frame = 0; frame < frames; frame += 2) {
    Sums16x2 sums;
    clear_16x2(sums);
    add_product_16x2(weights->rows[tile][0][0], front_end_output + 2 * frame * FRONT_END_CHANNELS,
                     2 * FRONT_END_CHANNELS, STEM_TAPS * FRONT_END_CHANNELS / PAIR, sums);
    for (int j = 0; j < 2; j++)
      for (int i = 0; i < 4; i += 2) {
        Vector low = scaled(sums[i][j], scale + 4 * i, offset + 4 * i);
        Vector high = scaled(sums[i + 1][j], scale + 4 * i + 4, offset + 4 * i + 4);
        store(out + (frame + j) * MAX_CHANNELS + 16 * tile + 4 * i,
              round_to_16_bits(clamp(low, zero, limit), clamp(high, zero, limit)));
      }
  }
}

/* The front end's output -> [frames, 128], after a ReLU. Writes one frame more if `frames` is odd. */
void stem(const StemWeights *weights, int frames, int16_t *out) {
  for (int tile = 0; tile < STEM_CHANNELS / 16; tile++) stem_rows(weights, tile, frames, out);
}

INLINE Vector normalise_channels(const int16_t *values, const int16_t *gain, const int16_t *offset) {
  Vector result = wasm_i16x8_add_sat(wasm_i16x8_q15mulr_sat(load(values), load(gain)), load(offset));
  return wasm_i16x8_min(wasm_i16x8_max(result, wasm_i16x8_splat(0)), wasm_i16x8_splat(ACTIVATION_LIMIT));
}

/* Gain, offset and ReLU of `frames` frames, rounded up to four, into `normalised`. */
static HOT void normalise(const NormalisedLinear *linear, const int16_t *activations, int frames) {
  const int channels = linear->channels;
  int16_t *out = normalised;
  for (int frame = 0; frame < frames; frame += COLUMNS) {
    const int16_t *row = activations + frame * MAX_CHANNELS;
    for (int channel = 0; channel < channels; channel += 8, out += 8 * COLUMNS) {
      Vector columns[COLUMNS];
      for (int i = 0; i < COLUMNS; i++)
        columns[i] = normalise_channels(row + i * MAX_CHANNELS + channel, linear->gain + channel,
                                        linear->offset + channel);
      interleave(out, columns[0], columns[1], columns[2], columns[3]);
    }
  }
}

/*
 * Eight outputs of `frames` frames, rounded up to four, from `normalised`. Results are between `lowest` and `highest`;
 * `out` is the eight outputs of the first frame, and the next frame is `stride` values later.
 */
INLINE void linear_rows(const NormalisedLinear *linear, int tile, int frames, float lowest, float highest, int16_t *out,
                        int stride) {
  const int channels = linear->channels;
  const int16_t *rows = linear->rows + tile * 8 * channels, *columns = normalised;
  const float *scale = linear->scale + 8 * tile, *bias = linear->bias + 8 * tile;
  const Vector low = splat(lowest), high = splat(highest);
  for (int frame = 0; frame < frames; frame += COLUMNS, columns += COLUMNS * channels) {
    Sums8x4 sums;
    clear_8x4(sums);
    add_product_8x4(rows, columns, channels / PAIR, sums);
    for (int i = 0; i < COLUMNS; i++, out += stride)
      store(out, round_to_16_bits(clamp(scaled(sums[0][i], scale, bias), low, high),
                                  clamp(scaled(sums[1][i], scale + 4, bias + 4), low, high)));
  }
}

static HOT void bottleneck_rows(const NormalisedLinear *linear, int tile, int frames, int16_t *out) {
  linear_rows(linear, tile, frames, 0, ACTIVATION_LIMIT, out, BOTTLENECK);
}

static HOT void transit_rows(const NormalisedLinear *linear, int tile, int frames, int16_t *out) {
  linear_rows(linear, tile, frames, -WIDE_LIMIT, WIDE_LIMIT, out, MAX_CHANNELS);
}

/* Eight of the trunk's outputs, in floating point. */
static HOT void output_rows(const NormalisedLinear *linear, int tile, int frames, float *out) {
  const int channels = linear->channels;
  const int16_t *rows = linear->rows + tile * 8 * channels, *columns = normalised;
  const float *scale = linear->scale + 8 * tile, *bias = linear->bias + 8 * tile;
  for (int frame = 0; frame < frames; frame += COLUMNS, columns += COLUMNS * channels) {
    Sums8x4 sums;
    clear_8x4(sums);
    add_product_8x4(rows, columns, channels / PAIR, sums);
    for (int i = 0; i < COLUMNS; i++, out += OUT_CHANNELS)
      for (int half = 0; half < 2; half++)
        store(out + 4 * half,
              wasm_f32x4_pmax(scaled(sums[half][i], scale + 4 * half, bias + 4 * half), splat(0)));
  }
}

/* Sums of the bottleneck [BOTTLENECK] over frames [from, to). */
static HOT void sum_frames(int from, int to, float *sums) {
  for (int channel = 0; channel < BOTTLENECK; channel += 8) {
    Vector low = wasm_i32x4_const_splat(0), high = low;
    for (int frame = from; frame < to; frame++) {
      Vector values = load(bottleneck + (frame + BOTTLENECK_PAD) * BOTTLENECK + channel);
      low = wasm_i32x4_add(low, wasm_i32x4_extend_low_i16x8(values));
      high = wasm_i32x4_add(high, wasm_i32x4_extend_high_i16x8(values));
    }
    store(sums + channel, to_float(low));
    store(sums + channel + 4, to_float(high));
  }
}

/* out [outputs] = bias + in [inputs] x weights [inputs, outputs]; `outputs` is a multiple of four. */
INLINE void small_linear(const float *in, int inputs, const float *weights, const float *bias, int outputs,
                         float *out) {
  for (int at = 0; at < outputs; at += 4) {
    Vector sum = load(bias + at);
    for (int i = 0; i < inputs; i++) sum = add(sum, multiply(splat(in[i]), load(weights + i * outputs + at)));
    store(out + at, sum);
  }
}

/* The gate of a segment [GROWTH] from its context [BOTTLENECK]. */
static HOT void compute_gate(const DenseLayerWeights *weights, const float *context, float *gate) {
  float hidden[CONTEXT_CHANNELS], logits[GROWTH];
  small_linear(context, BOTTLENECK, weights->context1[0], weights->context1_bias, CONTEXT_CHANNELS, hidden);
  for (int i = 0; i < CONTEXT_CHANNELS; i++) hidden[i] = hidden[i] > 0 ? hidden[i] : 0;
  small_linear(hidden, CONTEXT_CHANNELS, weights->context2[0], weights->context2_bias, GROWTH, logits);
  for (int i = 0; i < GROWTH; i++) gate[i] = 1 / (1 + expf(-logits[i]));
}

/*
 * Gates of all segments. A context is the mean of all frames plus that of the segment's up to 100 frames. Frames before
 * the run do not count: with those of another speaker, voices of a stream would sound more alike.
 */
static void compute_gates(const DenseLayerWeights *weights, int frames) {
  static float sums[MAX_SEGMENTS][BOTTLENECK] ALIGNED;
  float total[BOTTLENECK] = {0}, context[BOTTLENECK];
  const int segments = (frames + SEGMENT_FRAMES - 1) / SEGMENT_FRAMES;
  for (int segment = 0; segment < segments; segment++) {
    const int from = segment * SEGMENT_FRAMES, to = from + SEGMENT_FRAMES;
    sum_frames(from, to < frames ? to : frames, sums[segment]);
    for (int i = 0; i < BOTTLENECK; i++) total[i] += sums[segment][i];
  }
  for (int segment = 0; segment < segments; segment++) {
    const int left = frames - segment * SEGMENT_FRAMES, count = left < SEGMENT_FRAMES ? left : SEGMENT_FRAMES;
    for (int i = 0; i < BOTTLENECK; i++) context[i] = total[i] / (float)frames + sums[segment][i] / (float)count;
    compute_gate(weights, context, gates[segment]);
  }
}

/* 16 channels of the local convolution of one segment: three frames of the bottleneck, `dilation` apart. */
static HOT void local_rows(const int16_t *rows, const float *scale, int dilation, int first, int frames, int16_t *out) {
  const Vector low_limit = splat(-WIDE_LIMIT), high_limit = splat(WIDE_LIMIT);
  const int16_t *column = bottleneck + (first + BOTTLENECK_PAD - dilation) * BOTTLENECK;
  for (int frame = 0; frame < frames; frame += 2, column += 2 * BOTTLENECK) {
    Sums16x2 sums;
    clear_16x2(sums);
#pragma clang loop unroll(disable)
    for (int tap = 0; tap < TAPS; tap++)
      add_product_16x2(rows + tap * BOTTLENECK * 16, column + tap * dilation * BOTTLENECK, BOTTLENECK,
                       BOTTLENECK / PAIR, sums);
    for (int j = 0; j < 2; j++)
      for (int i = 0; i < 4; i += 2) {
        Vector low = multiply(to_float(sums[i][j]), load(scale + 4 * i));
        Vector high = multiply(to_float(sums[i + 1][j]), load(scale + 4 * i + 4));
        store(out + (frame + j) * MAX_CHANNELS + 4 * i,
              round_to_16_bits(clamp(low, low_limit, high_limit), clamp(high, low_limit, high_limit)));
      }
  }
}

/*
 * Appends GROWTH channels to the rows of `activations`, from the `linear->channels` channels before them. `before` holds
 * the bottleneck of the frames before this run, and on return that of the frames before the next run of the stream,
 * which starts at frame `new_frames`.
 */
void dense_layer(const DenseLayerWeights *weights, const NormalisedLinear *linear, int16_t *before, int dilation,
                 int frames, int new_frames, int16_t *activations) {
  const unsigned kept_bytes = BOTTLENECK_PAD * BOTTLENECK * sizeof *bottleneck;
  __builtin_memcpy(bottleneck, before, kept_bytes);
  for (int from = 0; from < frames; from += CHUNK) {
    const int count = frames - from < CHUNK ? frames - from : CHUNK;
    normalise(linear, activations + from * MAX_CHANNELS, count);
    for (int tile = 0; tile < BOTTLENECK / 8; tile++)
      bottleneck_rows(linear, tile, count, bottleneck + (from + BOTTLENECK_PAD) * BOTTLENECK + 8 * tile);
  }
  /* The pad after the last frame: a longer stretch, or a group of four, has left values there. */
  fill_zeros(bottleneck + (frames + BOTTLENECK_PAD) * BOTTLENECK, BOTTLENECK_PAD * BOTTLENECK);
  compute_gates(weights, frames);
  for (int segment = 0; segment * SEGMENT_FRAMES < frames; segment++) {
    const int first = segment * SEGMENT_FRAMES, left = frames - first;
    float scale[GROWTH];
    for (int i = 0; i < GROWTH; i++) scale[i] = weights->local_scale[i] * gates[segment][i];
    for (int tile = 0; tile < GROWTH / 16; tile++)
      local_rows(weights->local[tile][0][0], scale + 16 * tile, dilation, first,
                 left < SEGMENT_FRAMES ? left : SEGMENT_FRAMES,
                 activations + first * MAX_CHANNELS + linear->channels + 16 * tile);
  }
  __builtin_memcpy(before, bottleneck + new_frames * BOTTLENECK, kept_bytes);
}

/* The rows of `activations` with half of their channels. */
void transit(const NormalisedLinear *linear, const int16_t *activations, int frames, int16_t *out) {
  for (int from = 0; from < frames; from += CHUNK) {
    const int count = frames - from < CHUNK ? frames - from : CHUNK;
    normalise(linear, activations + from * MAX_CHANNELS, count);
    for (int tile = 0; tile < linear->outputs / 8; tile++)
      transit_rows(linear, tile, count, out + from * MAX_CHANNELS + 8 * tile);
  }
}

/* The trunk's output [frames, OUT_CHANNELS], after a ReLU. */
void last_transit(const NormalisedLinear *linear, const int16_t *activations, int frames, float *out) {
  for (int from = 0; from < frames; from += CHUNK) {
    const int count = frames - from < CHUNK ? frames - from : CHUNK;
    normalise(linear, activations + from * MAX_CHANNELS, count);
    for (int tile = 0; tile < linear->outputs / 8; tile++)
      output_rows(linear, tile, count, out + from * OUT_CHANNELS + 8 * tile);
  }
}
