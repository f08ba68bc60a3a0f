/*
 * CAM++'s trunk: features [frames, 80], one every 10 ms, to [ceil(frames / 2), 512].
 *
 * The caller checks the size of the weights and writes them once. For each stretch it writes features, calls start, and
 * calls step until it returns 0. A step takes at most a tenth of the time. Between two steps the caller may do other
 * work, but not start another stretch.
 *
 * A stream is computed in runs. For each the caller writes the stream's state (zeros for a new stream) and the features
 * since the last run, and calls resume in place of start. Afterwards it reads the result and the state.
 */
#include "campplus.h"
#include "weights.h"

#define DENSE_LAYERS_PER_STEP 8
#define FRONT_END_PAIRS_PER_STEP 130
/* Frames at the end of a stream's run that need the audio after them. */
#define REPEATED 4
#define WEIGHT_CAPACITY 14700000

static const int block_layers[BLOCKS] = {12, 24, 16}, block_dilation[BLOCKS] = {1, 2, 2};

static char weight_bytes[WEIGHT_CAPACITY] ALIGNED;
static float features[MAX_FEATURE_FRAMES * BANDS] ALIGNED, output[(MAX_FRAMES + 4) * OUT_CHANNELS] ALIGNED;
/* The rows of a block and those of the next one; products of two or four frames may write past the last frame. */
static int16_t activations[2][(MAX_FRAMES + 4) * MAX_CHANNELS] ALIGNED;

static const FrontEndWeights *front_end_weights;
static const StemWeights *stem_weights;
static const DenseLayerWeights *layer_weights[LAYERS];
static NormalisedLinear layer_linear[LAYERS], transit_linear[BLOCKS];

static enum { FRONT_END, STEM, DENSE, DONE } stage = DONE;
static StreamState stream_state ALIGNED;
/* Frames of the run, those of them that the next run of the stream does not compute again, and the next layer. */
static int frames, new_frames, block, layer, layers_of_block;

/* Gain, offset and rows of a product; its scales are elsewhere. */
static NormalisedLinear take_linear(Reader *reader, int channels, int outputs) {
  NormalisedLinear linear = {.channels = channels, .outputs = outputs};
  linear.gain = take_integers(reader, channels);
  linear.offset = take_integers(reader, channels);
  linear.rows = take_integers(reader, channels * outputs);
  return linear;
}

EXPORT(weights) char *weights(void) { return weight_bytes; }

/* The size of the weights in bytes. Also finds their parts; needs no contents. */
EXPORT(weights_size) int weights_size(void) {
  Reader reader = weight_bytes;
  front_end_weights = take_bytes(&reader, sizeof *front_end_weights);
  stem_weights = take_bytes(&reader, sizeof *stem_weights);
  int channels = STEM_CHANNELS, index = 0;
  for (int i = 0; i < BLOCKS; i++) {
    for (int j = 0; j < block_layers[i]; j++, index++, channels += GROWTH) {
      layer_weights[index] = take_bytes(&reader, sizeof **layer_weights);
      layer_linear[index] = take_linear(&reader, channels, BOTTLENECK);
      layer_linear[index].scale = layer_weights[index]->scale;
      layer_linear[index].bias = layer_weights[index]->offset;
    }
    const float *scale = take_floats(&reader, channels / 2), *bias = take_floats(&reader, channels / 2);
    transit_linear[i] = take_linear(&reader, channels, channels / 2);
    transit_linear[i].scale = scale;
    transit_linear[i].bias = bias;
    channels /= 2;
  }
  const int size = (int)(reader - weight_bytes);
  return size <= WEIGHT_CAPACITY ? size : -1;
}

EXPORT(input) float *input(void) { return features; }
EXPORT(result) const float *result(void) { return output; }
EXPORT(input_capacity) int input_capacity(void) { return MAX_FEATURE_FRAMES; }

EXPORT(state) StreamState *state(void) { return &stream_state; }
EXPORT(state_size) int state_size(void) { return sizeof stream_state; }

/* Starts a run on features after those of the state. */
static void begin(int feature_frames) {
  const int first = stream_state.frames;
  frames = (stream_state.front_end.feature_frames + feature_frames + 1) / 2 - first;
  front_end_start(&stream_state.front_end, features, feature_frames, 2 * first, front_end_weights);
  block = layer = layers_of_block = 0;
  stage = FRONT_END;
}

/*
 * Starts a run of a stream: `feature_frames` features at `input`, after those of `state`. Returns the number of frames
 * that `result` will have, perhaps 0; -1 if that many features are not possible. The last REPEATED frames would be
 * computed without the audio after them: the next run returns them.
 */
EXPORT(resume) int resume(int feature_frames) {
  if (feature_frames < 1 || feature_frames > MAX_FEATURE_FRAMES - 2 * REPEATED) return -1;
  begin(feature_frames);
  new_frames = frames > REPEATED ? frames - REPEATED : 0;
  stream_state.frames += new_frames;
  return new_frames;
}

/* Starts a stretch of `feature_frames` frames at `input`. Returns the number of frames that `result` will have, or -1. */
EXPORT(start) int start(int feature_frames) {
  if (feature_frames < 1 || feature_frames > MAX_FEATURE_FRAMES) return -1;
  __builtin_memset(&stream_state, 0, sizeof stream_state);
  begin(feature_frames);
  new_frames = 0;
  return frames;
}

/* Some layers of a block, or after its last layer the transit to the next block. */
static void dense_step(void) {
  int16_t *rows = activations[block % 2];
  if (layers_of_block < block_layers[block]) {
    for (int i = 0; i < DENSE_LAYERS_PER_STEP && layers_of_block < block_layers[block]; i++, layer++, layers_of_block++)
      dense_layer(layer_weights[layer], &layer_linear[layer], stream_state.bottlenecks[layer], block_dilation[block],
                  frames, new_frames, rows);
  } else if (block < BLOCKS - 1) {
    transit(&transit_linear[block], rows, frames, activations[(block + 1) % 2]);
    block++;
    layers_of_block = 0;
  } else {
    last_transit(&transit_linear[block], rows, frames, output);
    stage = DONE;
  }
}

/* Continues the stretch; returns whether more steps are left. */
EXPORT(step) int step(void) {
  if (stage == FRONT_END) {
    if (!front_end_step(FRONT_END_PAIRS_PER_STEP)) stage = STEM;
  } else if (stage == STEM) {
    stem(stem_weights, frames, activations[0]);
    stage = DENSE;
  } else if (stage == DENSE) {
    dense_step();
  }
  return stage != DONE;
}
