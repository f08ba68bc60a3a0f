/*
 * segmentation-3.0: a window of up to 160000 samples at 16 kHz to log-probabilities [frames, 7] of the powerset's
 * classes; ten seconds give 589 frames. The caller's side is that of campplus.c.
 */
#include "segmentation.h"

/* Filter positions of a step, out of 5325. */
#define POSITIONS_PER_STEP 2664
#define WEIGHT_CAPACITY 3100000

static char weight_bytes[WEIGHT_CAPACITY] ALIGNED;
static float waveform[MAX_SAMPLES + 8] ALIGNED, output[MAX_FRAMES * CLASSES] ALIGNED;
/* The output of a layer and the input of the next one. The front end's output has rows of CONV_CHANNELS. */
static int16_t hidden[2][(MAX_FRAMES + COLUMNS) * HIDDEN] ALIGNED;

static const SincNetWeights *sincnet_weights;
static Direction directions[LSTM_LAYERS][2];
static const ClassifierWeights *classifier_weights;

static enum { FILTERING, CONVOLUTIONS, LSTM, CLASSIFIER, DONE } stage = DONE;
static int positions, positions_done, frames, layer;

static Direction take_direction(Reader *reader, int inputs) {
  Direction direction = {.inputs = inputs};
  const int rows = GATES * UNITS;
  direction.projection = take_integers(reader, rows * inputs);
  direction.projection_scale = take_floats(reader, rows);
  direction.bias = take_floats(reader, rows);
  direction.recurrent = take_integers(reader, rows * UNITS);
  direction.recurrent_scale = take_floats(reader, rows);
  return direction;
}

EXPORT(weights) char *weights(void) { return weight_bytes; }

/* The size of the weights in bytes. Also finds their parts; needs no contents. */
EXPORT(weights_size) int weights_size(void) {
  Reader reader = weight_bytes;
  sincnet_weights = take_bytes(&reader, sizeof *sincnet_weights);
  for (int i = 0; i < LSTM_LAYERS; i++)
    for (int j = 0; j < 2; j++) directions[i][j] = take_direction(&reader, i == 0 ? PADDED_CHANNELS : HIDDEN);
  classifier_weights = take_bytes(&reader, sizeof *classifier_weights);
  const int size = (int)(reader - weight_bytes);
  return size <= WEIGHT_CAPACITY ? size : -1;
}

EXPORT(input) float *input(void) { return waveform; }
EXPORT(result) const float *result(void) { return output; }
EXPORT(input_capacity) int input_capacity(void) { return MAX_SAMPLES; }

/* Starts a window of `samples` samples at `input`. Returns the number of frames that `result` will have, or -1. */
EXPORT(start) int start(int samples) {
  if (samples < MIN_SAMPLES || samples > MAX_SAMPLES) return -1;
  positions = filter_positions(samples);
  frames = frames_of(samples);
  positions_done = layer = 0;
  stage = FILTERING;
  normalise_waveform(waveform, samples, &sincnet_weights->filters);
  return frames;
}

static void filtering_step(void) {
  const int end = positions_done + POSITIONS_PER_STEP < positions ? positions_done + POSITIONS_PER_STEP : positions;
  compute_filters(&sincnet_weights->filters, positions_done, end);
  positions_done = end;
  if (positions_done == positions) stage = CONVOLUTIONS;
}

/* Both directions of a layer. */
static void lstm_step(void) {
  const int16_t *in = hidden[layer % 2];
  int16_t *out = hidden[(layer + 1) % 2];
  for (int direction = 0; direction < 2; direction++)
    lstm_direction(&directions[layer][direction], direction, in, layer == 0 ? CONV_CHANNELS : HIDDEN, frames, out);
  layer++;
  if (layer == LSTM_LAYERS) stage = CLASSIFIER;
}

/* Continues the window; returns whether more steps are left. */
EXPORT(step) int step(void) {
  if (stage == FILTERING) {
    filtering_step();
  } else if (stage == CONVOLUTIONS) {
    convolve(sincnet_weights, positions, hidden[0]);
    stage = LSTM;
  } else if (stage == LSTM) {
    lstm_step();
  } else if (stage == CLASSIFIER) {
    classify(classifier_weights, hidden[LSTM_LAYERS % 2], frames, output);
    stage = DONE;
  }
  return stage != DONE;
}
