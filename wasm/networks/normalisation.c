/*
 * Layer normalisation, and the depthwise convolution that follows one. Of 128 normalised values none is above the square
 * root of 127. Gain and bias before a product are part of its weights.
 */
#include <math.h>

#include "segmentation_v8.h"

#define EPSILON 1e-5f
#define NORM_LIMIT 11.27f
#define PAD (DEPTHWISE_TAPS / 2)

static float padded[(MAX_FRAMES + 2 * PAD + COLUMNS) * WIDTH] ALIGNED;

INLINE float sum_of(Vector value) {
  return (wasm_f32x4_extract_lane(value, 0) + wasm_f32x4_extract_lane(value, 1)) +
         (wasm_f32x4_extract_lane(value, 2) + wasm_f32x4_extract_lane(value, 3));
}

typedef struct {
  float mean, gain;
} Moments;

INLINE Moments moments_of(const float *values) {
  Vector sum = load(values), sum1 = load(values + 4);
  for (int i = 8; i < WIDTH; i += 8) sum = add(sum, load(values + i)), sum1 = add(sum1, load(values + i + 4));
  const float mean = sum_of(add(sum, sum1)) / WIDTH;
  sum = sum1 = splat(0.0f);
  for (int i = 0; i < WIDTH; i += 8) {
    Vector low = wasm_f32x4_sub(load(values + i), splat(mean));
    Vector high = wasm_f32x4_sub(load(values + i + 4), splat(mean));
    sum = add(sum, multiply(low, low));
    sum1 = add(sum1, multiply(high, high));
  }
  return (Moments){mean, 1 / sqrtf(sum_of(add(sum, sum1)) / WIDTH + EPSILON)};
}

static HOT void normalise_frame(const float *values, int16_t *out) {
  const Moments moments = moments_of(values);
  const Vector mean = splat(moments.mean), gain = splat(moments.gain * (LARGEST / NORM_LIMIT));
  for (int i = 0; i < WIDTH; i += 8) {
    Vector low = multiply(wasm_f32x4_sub(load(values + i), mean), gain);
    Vector high = multiply(wasm_f32x4_sub(load(values + i + 4), mean), gain);
    store(out + i, round_to_16_bits(low, high));
  }
}

void normalise(const float *stream, int frames, int16_t *out) {
  for (int frame = 0; frame < frames; frame++) normalise_frame(stream + frame * WIDTH, out + frame * WIDTH);
}

static HOT void normalise_to_floats(const DepthwiseWeights *weights, const float *values, float *out) {
  const Moments moments = moments_of(values);
  for (int i = 0; i < WIDTH; i += 4) {
    Vector value = multiply(wasm_f32x4_sub(load(values + i), splat(moments.mean)), splat(moments.gain));
    store(out + i, add(multiply(value, load(weights->gain + i)), load(weights->bias + i)));
  }
}

/* Eight channels of four frames. */
static HOT void convolve(const DepthwiseWeights *weights, const float *in, int channel, int16_t *out) {
  Vector sums[COLUMNS][2];
  for (int i = 0; i < COLUMNS; i++)
    sums[i][0] = load(weights->offset + channel), sums[i][1] = load(weights->offset + channel + 4);
  const float *taps = weights->taps + channel, *end = taps + DEPTHWISE_TAPS * WIDTH;
#pragma clang loop unroll(disable)
  do {
    Vector low = load(taps), high = load(taps + 4);
    for (int i = 0; i < COLUMNS; i++) {
      sums[i][0] = add(sums[i][0], multiply(low, load(in + i * WIDTH)));
      sums[i][1] = add(sums[i][1], multiply(high, load(in + i * WIDTH + 4)));
    }
    in += WIDTH;
    taps += WIDTH;
  } while (taps != end);
  for (int i = 0; i < COLUMNS; i++) store(out + i * WIDTH, round_to_16_bits(relu(sums[i][0]), relu(sums[i][1])));
}

void depthwise_convolution(const DepthwiseWeights *weights, const float *stream, int frames, int16_t *out) {
  for (int frame = 0; frame < frames; frame++)
    normalise_to_floats(weights, stream + frame * WIDTH, padded + (PAD + frame) * WIDTH);
  __builtin_memset(padded + (PAD + frames) * WIDTH, 0, (PAD + COLUMNS) * WIDTH * sizeof *padded);
  for (int frame = 0; frame < frames; frame += COLUMNS)
    for (int channel = 0; channel < WIDTH; channel += 8)
      convolve(weights, padded + frame * WIDTH + channel, channel, out + frame * WIDTH + channel);
}
