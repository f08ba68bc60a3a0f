/*
 * segmentation-v8: mel powers of a window of up to ten seconds, [frames, 64] at 100 Hz, to log-probabilities [frames, 7]
 * of the powerset's classes at 50 Hz. The caller's side is that of campplus.c.
 */
#include "segmentation_v8.h"

#define MIN_POWER_FRAMES 4
#define WEIGHT_CAPACITY 1700000

static char weight_bytes[WEIGHT_CAPACITY] ALIGNED;
static float powers[MAX_POWER_FRAMES * BANDS] ALIGNED, output[MAX_FINE_FRAMES * CLASSES] ALIGNED;

/* Integers that a product reads. Convolutions read frames before the first and after the last one. */
static int16_t features[(CONV1_PAD + MAX_POWER_FRAMES + 2 * COLUMNS + CONV1_TAPS) * BANDS] ALIGNED;
static int16_t fine_integers[(1 + MAX_FINE_FRAMES + 2 * COLUMNS + 1) * WIDTH] ALIGNED;
static int16_t rows[(MAX_FRAMES + 2 * COLUMNS) * WIDTH] ALIGNED, wide_rows[(MAX_FRAMES + 2 * COLUMNS) * QKV] ALIGNED;
/* In floating point: at 50 Hz, and the residual stream at 25 Hz. */
static float fine[(MAX_FINE_FRAMES + COLUMNS) * WIDTH] ALIGNED, stream[(MAX_FRAMES + COLUMNS) * WIDTH] ALIGNED;
static float projections[(MAX_FRAMES + COLUMNS) * DIRECTIONS * GRU_ROWS] ALIGNED;

static Linear conv1, conv2, down, skip, up, conv3;
static AttentionWeights attention[PAIRS_OF_BLOCKS];
static GruWeights gru[PAIRS_OF_BLOCKS];
static OutputWeights output_weights;

static int power_frames, frames;
/* The next pair of blocks. */
static int pair = PAIRS_OF_BLOCKS;
/* Unit of `fine_integers`. */
static float fine_unit;

static Linear take_linear(Reader *reader, int inputs, int outputs) {
  Linear layer = {.inputs = inputs, .outputs = outputs};
  layer.rows = take_integers(reader, inputs * outputs);
  layer.scale = take_floats(reader, outputs);
  layer.offset = take_floats(reader, outputs);
  return layer;
}

static AttentionWeights take_attention(Reader *reader) {
  AttentionWeights block;
  block.depthwise.gain = take_floats(reader, WIDTH);
  block.depthwise.bias = take_floats(reader, WIDTH);
  block.depthwise.taps = take_floats(reader, DEPTHWISE_TAPS * WIDTH);
  block.depthwise.offset = take_floats(reader, WIDTH);
  block.pointwise = take_linear(reader, WIDTH, WIDTH);
  block.qkv = take_linear(reader, WIDTH, QKV);
  block.score_unit = take_floats(reader, HEADS);
  block.out = take_linear(reader, WIDTH, WIDTH);
  block.widen = take_linear(reader, WIDTH, FEED_FORWARD);
  block.narrow = take_linear(reader, FEED_FORWARD, WIDTH);
  return block;
}

static GruWeights take_gru(Reader *reader) {
  GruWeights block = {.projection = take_linear(reader, WIDTH, DIRECTIONS * GRU_ROWS)};
  for (int direction = 0; direction < DIRECTIONS; direction++) {
    block.recurrent[direction] = take_integers(reader, GRU_ROWS * UNITS);
    block.scale[direction] = take_floats(reader, GRU_ROWS);
    block.bias[direction] = take_floats(reader, UNITS);
  }
  return block;
}

EXPORT(weights) char *weights(void) { return weight_bytes; }

/* The size of the weights in bytes. Also finds their parts; needs no contents. */
EXPORT(weights_size) int weights_size(void) {
  Reader reader = weight_bytes;
  conv1 = take_linear(&reader, CONV1_TAPS * BANDS, WIDTH);
  conv2 = take_linear(&reader, TAPS * WIDTH, WIDTH);
  down = take_linear(&reader, 2 * WIDTH, WIDTH);
  for (int i = 0; i < PAIRS_OF_BLOCKS; i++) {
    attention[i] = take_attention(&reader);
    gru[i] = take_gru(&reader);
  }
  up = take_linear(&reader, WIDTH, 2 * SKIP);
  skip = take_linear(&reader, WIDTH, SKIP);
  conv3 = take_linear(&reader, TAPS * SKIP, LAST_WIDTH);
  output_weights.weights = take_floats(&reader, LAST_WIDTH * PADDED_CLASSES);
  output_weights.bias = take_floats(&reader, PADDED_CLASSES);
  const int size = (int)(reader - weight_bytes);
  return size <= WEIGHT_CAPACITY ? size : -1;
}

EXPORT(input) float *input(void) { return powers; }
EXPORT(result) const float *result(void) { return output; }
EXPORT(input_capacity) int input_capacity(void) { return MAX_POWER_FRAMES; }

/* Starts a window of `count` frames at `input`. Returns the number of frames that `result` will have, or -1. */
EXPORT(start) int start(int count) {
  if (count < MIN_POWER_FRAMES || count > MAX_POWER_FRAMES) return -1;
  power_frames = count;
  frames = count / 4;
  pair = 0;
  return 2 * frames;
}

/* Rounds the maps at 50 Hz to `fine_integers`, followed by a frame of zeros. Returns the first frame. */
static const int16_t *round_fine(int count, int channels) {
  fine_unit = quantise(fine, count * channels, fine_integers + channels);
  fill_zeros(fine_integers, channels);
  fill_zeros(fine_integers + (1 + count) * channels, channels);
  return fine_integers + channels;
}

static void front_end(void) {
  const int fine_frames = power_frames / 2;
  log_features(powers, power_frames, features + CONV1_PAD * BANDS);
  fill_zeros(features + (CONV1_PAD + power_frames) * BANDS, CONV1_TAPS * BANDS);
  linear(&conv1, (Rows){features, 2 * BANDS, FEATURE_LIMIT / BALANCED_LIMIT}, fine_frames, RELU, fine);
  round_fine(fine_frames, WIDTH);
  linear(&conv2, (Rows){fine_integers, WIDTH, fine_unit}, fine_frames, RELU | ADD, fine);
  const int16_t *first = round_fine(fine_frames, WIDTH);
  linear(&down, (Rows){first, 2 * WIDTH, fine_unit}, frames, STORE, stream);
}

static void attention_block(const AttentionWeights *block) {
  depthwise_convolution(&block->depthwise, stream, frames, rows);
  linear(&block->pointwise, (Rows){rows, WIDTH, 1}, frames, ADD, stream);
  normalise(stream, frames, rows);
  linear(&block->qkv, (Rows){rows, WIDTH, 1}, frames, INTEGERS, wide_rows);
  attend(wide_rows, block->score_unit, frames, rows);
  linear(&block->out, (Rows){rows, WIDTH, 1}, frames, ADD, stream);
  normalise(stream, frames, rows);
  linear(&block->widen, (Rows){rows, WIDTH, 1}, frames, RELU | INTEGERS, wide_rows);
  linear(&block->narrow, (Rows){wide_rows, FEED_FORWARD, 1}, frames, ADD, stream);
}

static void gru_block(const GruWeights *block) {
  normalise(stream, frames, rows);
  linear(&block->projection, (Rows){rows, WIDTH, 1}, frames, STORE, projections);
  for (int direction = 0; direction < DIRECTIONS; direction++)
    gru_direction(block, direction, projections, frames, stream);
}

static void end(void) {
  linear(&skip, (Rows){fine_integers + WIDTH, WIDTH, fine_unit}, 2 * frames, STORE, fine);
  normalise(stream, frames, rows);
  linear(&up, (Rows){rows, WIDTH, 1}, frames, ADD, fine);
  round_fine(2 * frames, SKIP);
  linear(&conv3, (Rows){fine_integers, SKIP, fine_unit}, 2 * frames, RELU, projections);
  output_layer(&output_weights, projections, 2 * frames, output);
}

/* Continues the window by a pair of blocks; returns whether more steps are left. */
EXPORT(step) int step(void) {
  if (pair == PAIRS_OF_BLOCKS) return 0;
  if (pair == 0) front_end();
  attention_block(&attention[pair]);
  gru_block(&gru[pair]);
  pair++;
  if (pair < PAIRS_OF_BLOCKS) return 1;
  end();
  return 0;
}
