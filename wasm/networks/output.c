/* The last layer: 64 channels -> log-probabilities of the powerset's classes. */
#include <math.h>

#include "segmentation_v8.h"

static HOT void log_probabilities(const OutputWeights *weights, const float *in, float *out) {
  Vector low = load(weights->bias), high = load(weights->bias + 4);
  for (int input = 0; input < LAST_WIDTH; input++) {
    const float *row = weights->weights + input * PADDED_CLASSES;
    low = add(low, multiply(load(row), splat(in[input])));
    high = add(high, multiply(load(row + 4), splat(in[input])));
  }
  float logits[PADDED_CLASSES] ALIGNED, sum = 0;
  store(logits, low);
  store(logits + 4, high);
  float largest = logits[0];
  for (int i = 1; i < CLASSES; i++) largest = logits[i] > largest ? logits[i] : largest;
  for (int i = 0; i < CLASSES; i++) sum += expf(logits[i] - largest);
  const float total = largest + logf(sum);
  for (int i = 0; i < CLASSES; i++) out[i] = logits[i] - total;
}

void output_layer(const OutputWeights *weights, const float *in, int frames, float *out) {
  for (int frame = 0; frame < frames; frame++)
    log_probabilities(weights, in + frame * LAST_WIDTH, out + frame * CLASSES);
}
