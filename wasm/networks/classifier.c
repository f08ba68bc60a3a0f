/* The three linear layers after the LSTM: hidden values -> log-probabilities of the powerset's classes. */
#include <math.h>

#include "segmentation.h"

#define CHUNK 32

static int16_t chunk_columns[CHUNK * HIDDEN] ALIGNED;
static float linear0[CHUNK * LINEAR] ALIGNED, linear1[CHUNK * LINEAR] ALIGNED;
static float logits[CHUNK * PADDED_CLASSES] ALIGNED;

/* Eight outputs of the first layer, from the hidden values in `chunk_columns`. */
static HOT void linear0_rows(const ClassifierWeights *weights, int tile, int frames) {
  const float *scale = weights->scale + 8 * tile, *bias = weights->bias + 8 * tile;
  const int16_t *columns = chunk_columns;
  float *out = linear0 + 8 * tile;
  for (int frame = 0; frame < frames; frame += COLUMNS, columns += COLUMNS * HIDDEN) {
    Sums8x4 sums;
    clear_8x4(sums);
    add_product_8x4(weights->rows[tile][0][0], columns, HIDDEN / PAIR, sums);
    for (int i = 0; i < COLUMNS; i++, out += LINEAR)
      for (int half = 0; half < 2; half++)
        store(out + 4 * half, leaky_relu(scaled(sums[half][i], scale + 4 * half, bias + 4 * half)));
  }
}

/* Eight outputs of four frames in floating point: in [4, LINEAR], weights [LINEAR, stride] -> out [4, stride]. */
static HOT void float_linear(const float *in, const float *weights, const float *bias, int stride, float *out) {
  Vector sums[COLUMNS][2];
  for (int i = 0; i < COLUMNS; i++) sums[i][0] = load(bias), sums[i][1] = load(bias + 4);
#pragma clang loop unroll(disable)
  for (int input = 0; input < LINEAR; input++, weights += stride) {
    Vector low = load(weights), high = load(weights + 4);
    for (int i = 0; i < COLUMNS; i++) {
      Vector value = splat(in[i * LINEAR + input]);
      sums[i][0] = add(sums[i][0], multiply(low, value));
      sums[i][1] = add(sums[i][1], multiply(high, value));
    }
  }
  for (int i = 0; i < COLUMNS; i++) {
    store(out + i * stride, sums[i][0]);
    store(out + i * stride + 4, sums[i][1]);
  }
}

/* logits [PADDED_CLASSES] -> log-probabilities [CLASSES] */
static HOT void log_softmax(const float *from, float *out) {
  float largest = from[0], sum = 0;
  for (int i = 1; i < CLASSES; i++) largest = from[i] > largest ? from[i] : largest;
  for (int i = 0; i < CLASSES; i++) sum += expf(from[i] - largest);
  const float total = largest + logf(sum);
  for (int i = 0; i < CLASSES; i++) out[i] = from[i] - total;
}

void classify(const ClassifierWeights *weights, const int16_t *hidden, int frames, float *out) {
  for (int from = 0; from < frames; from += CHUNK) {
    const int count = frames - from < CHUNK ? frames - from : CHUNK;
    for (int frame = 0; frame < count; frame += COLUMNS)
      interleave_rows(hidden + (from + frame) * HIDDEN, HIDDEN, HIDDEN, chunk_columns + frame * HIDDEN);
    for (int tile = 0; tile < LINEAR / 8; tile++) linear0_rows(weights, tile, count);
    for (int frame = 0; frame < count; frame += COLUMNS) {
      for (int output = 0; output < LINEAR; output += 8)
        float_linear(linear0 + frame * LINEAR, weights->linear1[0] + output, weights->linear1_bias + output, LINEAR,
                     linear1 + frame * LINEAR + output);
      for (int i = frame * LINEAR; i < (frame + COLUMNS) * LINEAR; i += 4)
        store(linear1 + i, leaky_relu(load(linear1 + i)));
      float_linear(linear1 + frame * LINEAR, weights->classifier[0], weights->classifier_bias, PADDED_CLASSES,
                   logits + frame * PADDED_CLASSES);
    }
    for (int frame = 0; frame < count; frame++)
      log_softmax(logits + frame * PADDED_CLASSES, out + (from + frame) * CLASSES);
  }
}
