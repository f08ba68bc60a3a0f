/*
 * Statistics pooling (Snyder et al., 2018) over any number of frames: mean and standard deviation of every channel.
 *
 * Frames arrive in blocks, so that memory does not grow with their number. A block is centred on its own mean before it
 * is squared, and joined to the total by Chan's rule (1979): a difference of two large sums would lose a small
 * variance.
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
static float *block;         /* [3, channels]: mean, and about that mean first and second moment of a block */
static double *total;        /* [2, channels]: mean, second moment about it */
static double count;         /* frames added */
static float *result;        /* [2, channels] */
static int capacity;

/* Starts a new pool. Returns 0 if the number of channels is out of bounds or there is no memory. */
EXPORT(pool_begin) int pool_begin(int wanted) {
  if (wanted < 1 || wanted > MAX_CHANNELS) return 0;
  channels = (wanted + 3) & ~3;
  if (channels > capacity) {
    free(frames_in), free(block), free(total), free(result);
    frames_in = calloc((size_t)ROWS * channels, sizeof(float));
    block = malloc((size_t)3 * channels * sizeof(float));
    total = malloc((size_t)2 * channels * sizeof(double));
    result = malloc((size_t)2 * channels * sizeof(float));
    capacity = frames_in && block && total && result ? channels : 0;
    if (!capacity) return 0;
  }
  memset(total, 0, (size_t)2 * channels * sizeof(double));
  count = 0;
  return 1;
}

EXPORT(pool_rows) int pool_rows(void) { return ROWS; }
EXPORT(pool_stride) int pool_stride(void) { return channels; }
EXPORT(pool_frames) float *pool_frames(void) { return frames_in; }

/* Mean and centred moments of the block. */
static void measure_block(int rows) {
  float *mean = block, *first = block + channels, *second = block + 2 * channels;
  memset(block, 0, (size_t)3 * channels * sizeof(float));
  for (int t = 0; t < rows; t++) {
    const float *x = frames_in + (size_t)t * channels;
    for (int c = 0; c < channels; c += 4) {
      wasm_v128_store(mean + c, wasm_f32x4_add(wasm_v128_load(mean + c), wasm_v128_load(x + c)));
    }
  }
  for (int c = 0; c < channels; c++) mean[c] /= (float)rows;
  for (int t = 0; t < rows; t++) {
    const float *x = frames_in + (size_t)t * channels;
    for (int c = 0; c < channels; c += 4) {
      v128_t distance = wasm_f32x4_sub(wasm_v128_load(x + c), wasm_v128_load(mean + c));
      wasm_v128_store(first + c, wasm_f32x4_add(wasm_v128_load(first + c), distance));
      wasm_v128_store(second + c, wasm_f32x4_add(wasm_v128_load(second + c), wasm_f32x4_mul(distance, distance)));
    }
  }
}

/* Adds the first `rows` frames of the input block. */
EXPORT(pool_add) void pool_add(int rows) {
  if (rows < 1 || rows > ROWS) return;
  measure_block(rows);
  double sum = count + rows;
  for (int c = 0; c < channels; c++) {
    /* The first moment, which is zero but for rounding, corrects the block's mean. */
    double offset = block[channels + c] / rows, mean = block[c] + offset;
    double moment = block[2 * channels + c] - rows * offset * offset;
    double distance = mean - total[c];
    total[c] += distance * rows / sum;
    total[channels + c] += moment + distance * distance * count * rows / sum;
  }
  count = sum;
}

/* Means of all channels, then (from pool_stride on) standard deviations. Needs at least one frame added. */
EXPORT(pool_finish) const float *pool_finish(void) {
  for (int c = 0; c < channels; c++) {
    double variance = total[channels + c] / count;
    result[c] = (float)total[c];
    result[channels + c] = (float)sqrt(variance > VARIANCE_FLOOR ? variance : VARIANCE_FLOOR);
  }
  return result;
}
