/*
 * Attentive statistics pooling (Okabe et al., 2018) over any number of frames: per channel a softmax of the logits over time, then the
 * weighted mean and standard deviation.
 *
 * Frames come in blocks, so memory does not grow with their number. A block is centred on its own mean before it is squared and
 * joined to the total by Chan's rule (1979): a difference of two large sums would lose a small variance. The running maximum of
 * the logits is kept per channel, and the total shrinks when it rises.
 */
#include <math.h>
#include <string.h>

#include "dsp.h"

/* Frames in one block. */
#define ROWS 64
#define MAX_CHANNELS 4096
#define VARIANCE_FLOOR 1e-5

static int channels;         /* rounded up to a multiple of 4 */
static float *frames_in;     /* [ROWS, channels] */
static float *logits_in;     /* [ROWS, channels] */
static float *maximum;       /* [channels] */
static float *block;         /* [4, channels]: weight, mean, and about that mean first and second moment of a block */
static double *total;        /* [3, channels]: weight, mean, second moment about it */
static float *result;        /* [2, channels] */
static int capacity;

/* exp for x <= 0: 2^n times a polynomial on [-ln2/2, ln2/2]; relative error below 3e-7, zero below -87. */
static v128_t exp_of_negative(v128_t x) {
  v128_t clamped = wasm_f32x4_pmax(wasm_f32x4_splat(-87.0f), x);
  v128_t n = wasm_f32x4_nearest(wasm_f32x4_mul(clamped, wasm_f32x4_splat(1.44269504088896341f)));
  v128_t r = wasm_f32x4_sub(clamped, wasm_f32x4_mul(n, wasm_f32x4_splat(0.693359375f)));
  r = wasm_f32x4_sub(r, wasm_f32x4_mul(n, wasm_f32x4_splat(-2.12194440e-4f)));
  static const float coefficients[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                       4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
  v128_t p = wasm_f32x4_splat(coefficients[0]);
  for (int i = 1; i < 6; i++) p = wasm_f32x4_add(wasm_f32x4_mul(p, r), wasm_f32x4_splat(coefficients[i]));
  p = wasm_f32x4_add(wasm_f32x4_add(wasm_f32x4_mul(p, wasm_f32x4_mul(r, r)), r), wasm_f32x4_splat(1.0f));
  v128_t exponent = wasm_i32x4_shl(wasm_i32x4_add(wasm_i32x4_trunc_sat_f32x4(n), wasm_i32x4_splat(127)), 23);
  return wasm_v128_and(wasm_f32x4_mul(p, exponent), wasm_f32x4_ge(x, wasm_f32x4_splat(-87.0f)));
}

/* Starts a new pool. Returns 0 when `count` channels are out of bounds or there is no memory. */
EXPORT(pool_begin) int pool_begin(int count) {
  if (count < 1 || count > MAX_CHANNELS) return 0;
  channels = (count + 3) & ~3;
  if (channels > capacity) {
    free(frames_in), free(logits_in), free(maximum), free(block), free(total), free(result);
    frames_in = calloc((size_t)ROWS * channels, sizeof(float));
    logits_in = calloc((size_t)ROWS * channels, sizeof(float));
    maximum = malloc((size_t)channels * sizeof(float));
    block = malloc((size_t)4 * channels * sizeof(float));
    total = malloc((size_t)3 * channels * sizeof(double));
    result = malloc((size_t)2 * channels * sizeof(float));
    capacity = frames_in && logits_in && maximum && block && total && result ? channels : 0;
    if (!capacity) return 0;
  }
  for (int c = 0; c < channels; c++) maximum[c] = -INFINITY;
  memset(total, 0, (size_t)3 * channels * sizeof(double));
  return 1;
}

EXPORT(pool_rows) int pool_rows(void) { return ROWS; }
EXPORT(pool_stride) int pool_stride(void) { return channels; }
EXPORT(pool_frames) float *pool_frames(void) { return frames_in; }
EXPORT(pool_logits) float *pool_logits(void) { return logits_in; }

/* Raises the maxima to those of the block and shrinks the total's weights accordingly. */
static void raise_maximum(int rows) {
  for (int c = 0; c < channels; c += 4) {
    v128_t old = wasm_v128_load(maximum + c), high = old;
    for (int t = 0; t < rows; t++) high = wasm_f32x4_pmax(high, wasm_v128_load(logits_in + (size_t)t * channels + c));
    wasm_v128_store(maximum + c, high);
    float factor[4];
    wasm_v128_store(factor, exp_of_negative(wasm_f32x4_sub(old, high))); /* 0 at first: old is -infinity */
    for (int lane = 0; lane < 4; lane++) {
      total[c + lane] *= factor[lane];
      total[2 * channels + c + lane] *= factor[lane];
    }
  }
}

/* Weight, mean and centred moments of the block; the logits are replaced by their weights. */
static void measure_block(int rows) {
  float *weight = block, *mean = block + channels, *first = block + 2 * channels, *second = block + 3 * channels;
  memset(block, 0, (size_t)4 * channels * sizeof(float));
  for (int t = 0; t < rows; t++) {
    const float *x = frames_in + (size_t)t * channels;
    float *logit = logits_in + (size_t)t * channels;
    for (int c = 0; c < channels; c += 4) {
      v128_t e = exp_of_negative(wasm_f32x4_sub(wasm_v128_load(logit + c), wasm_v128_load(maximum + c)));
      wasm_v128_store(logit + c, e);
      wasm_v128_store(weight + c, wasm_f32x4_add(wasm_v128_load(weight + c), e));
      wasm_v128_store(mean + c, wasm_f32x4_add(wasm_v128_load(mean + c), wasm_f32x4_mul(e, wasm_v128_load(x + c))));
    }
  }
  for (int c = 0; c < channels; c++) mean[c] = weight[c] > 0 ? mean[c] / weight[c] : 0;
  for (int t = 0; t < rows; t++) {
    const float *x = frames_in + (size_t)t * channels, *e = logits_in + (size_t)t * channels;
    for (int c = 0; c < channels; c += 4) {
      v128_t distance = wasm_f32x4_sub(wasm_v128_load(x + c), wasm_v128_load(mean + c));
      v128_t weighted = wasm_f32x4_mul(wasm_v128_load(e + c), distance);
      wasm_v128_store(first + c, wasm_f32x4_add(wasm_v128_load(first + c), weighted));
      wasm_v128_store(second + c, wasm_f32x4_add(wasm_v128_load(second + c), wasm_f32x4_mul(weighted, distance)));
    }
  }
}

/* Adds the `rows` frames that lie in the two input blocks (the logits are overwritten); `uniform` gives all the same weight. */
EXPORT(pool_add) void pool_add(int rows, int uniform) {
  if (rows < 1 || rows > ROWS) return;
  if (uniform) memset(logits_in, 0, (size_t)rows * channels * sizeof(float));
  raise_maximum(rows);
  measure_block(rows);
  for (int c = 0; c < channels; c++) {
    double weight = block[c];
    if (weight <= 0) continue;
    /* What rounding left of the first moment corrects the block's mean. */
    double offset = block[2 * channels + c] / weight, mean = block[channels + c] + offset;
    double moment = block[3 * channels + c] - weight * offset * offset;
    double sum = total[c] + weight, distance = mean - total[channels + c];
    total[channels + c] += distance * weight / sum;
    total[2 * channels + c] += moment + distance * distance * total[c] * weight / sum;
    total[c] = sum;
  }
}

/* Means of all channels, then (from pool_stride on) standard deviations. Needs at least one frame added. */
EXPORT(pool_finish) const float *pool_finish(void) {
  for (int c = 0; c < channels; c++) {
    double variance = total[2 * channels + c] / total[c];
    result[c] = (float)total[channels + c];
    result[channels + c] = (float)sqrt(variance > VARIANCE_FLOOR ? variance : VARIANCE_FLOOR);
  }
  return result;
}
