/*
 * CAM++'s front end: a residual network over bands and time, features [frames, 80] -> [frames, 10, 32].
 *
 * Its maps would take 20 MB. Each is therefore a ring of eight frames. In every step each layer computes two frames, at
 * least two frames behind the layer before it, so that a convolution always finds the frame after its own two.
 */
#include "campplus.h"

#define FRAMES_PER_STEP 2
/* Feature units a nat: 16 bits hold +-64 nats. */
#define FEATURE_SCALE 512.0f
#define LAST_LAG 9

int16_t front_end_output[(MAX_FEATURE_FRAMES + 2 * STEM_PAD + FRAMES_PER_STEP) * FRONT_END_CHANNELS] ALIGNED;

/*
 * [frames, bands] with a band of zeros on each side: the kept frames, those of the run, two frames of zeros. The last
 * column reads two values past the end.
 */
static int16_t features_16[(KEPT_FEATURES + MAX_FEATURE_FRAMES + 2) * FEATURE_ROW + 8] ALIGNED;
static Rings rings ALIGNED;

#define RING(values, band_count) {.frames = values, .bands = band_count, .pad = 1, .mask = RING_FRAMES - 1}

static const Map conv1 = RING(rings.maps_80[0], 80);
static const Map strided1_shortcut = RING(rings.maps_40[0], 40), strided1_middle = RING(rings.maps_40[1], 40);
static const Map strided1 = RING(rings.maps_40[2], 40), square1_middle = RING(rings.maps_40[3], 40), square1 = RING(rings.maps_40[4], 40);
static const Map strided2_shortcut = RING(rings.maps_20[0], 20), strided2_middle = RING(rings.maps_20[1], 20);
static const Map strided2 = RING(rings.maps_20[2], 20), square2_middle = RING(rings.maps_20[3], 20), square2 = RING(rings.maps_20[4], 20);
static Map output = {
    .frames = front_end_output, .bands = OUT_BANDS, .pad = 0, .mask = -1};

static const FrontEndWeights *weights;
static FrontEndState *state;
static int frames_before, frame_count, next_step;

/* 16 of the 32 channels of one frame of the first convolution. */
static HOT void first_convolution_rows(int half, int frame) {
  const float *scale = weights->conv1.scales.scale + 16 * half, *offset = weights->conv1.scales.offset + 16 * half;
  const Vector zero = splat(0), limit = splat(ACTIVATION_LIMIT);
  const int16_t *column = features_16 + (frame - frames_before + KEPT_FEATURES - 1) * FEATURE_ROW;
  int16_t *out = map_frame(&conv1, frame) + MAP_CHANNELS + 16 * half;
  for (int band = 0; band < BANDS; band += 2, column += 2, out += 2 * MAP_CHANNELS) {
    Sums16x2 sums;
    clear_16x2(sums);
    for (int tap = 0; tap < 3; tap++)
      add_product_16x2(weights->conv1.rows[half][tap * 2][0], column + tap * FEATURE_ROW, 1, 2, sums);
    for (int j = 0; j < 2; j++)
      for (int i = 0; i < 4; i += 2) {
        Vector low = scaled(sums[i][j], scale + 4 * i, offset + 4 * i);
        Vector high = scaled(sums[i + 1][j], scale + 4 * i + 4, offset + 4 * i + 4);
        store(out + j * MAP_CHANNELS + 4 * i, round_to_16_bits(clamp(low, zero, limit), clamp(high, zero, limit)));
      }
  }
}

/* 16 of the 32 channels of one frame of a shortcut: a product for every second band, without a ReLU. */
static HOT void shortcut_rows(const Shortcut *shortcut, int half, const int16_t *in, int bands, int16_t *out) {
  const float *scale = shortcut->scales.scale + 16 * half, *offset = shortcut->scales.offset + 16 * half;
  const Vector low_limit = splat(-WIDE_LIMIT), high_limit = splat(WIDE_LIMIT);
  for (int band = 0; band < bands; band += 2) {
    Sums16x2 sums;
    clear_16x2(sums);
    add_product_16x2(shortcut->rows[half][0][0], in + 2 * band * MAP_CHANNELS, 2 * MAP_CHANNELS, MAP_CHANNELS / PAIR,
                     sums);
    for (int j = 0; j < 2; j++)
      for (int i = 0; i < 4; i += 2) {
        Vector low = scaled(sums[i][j], scale + 4 * i, offset + 4 * i);
        Vector high = scaled(sums[i + 1][j], scale + 4 * i + 4, offset + 4 * i + 4);
        store(out + (band + j) * MAP_CHANNELS + 16 * half + 4 * i,
              round_to_16_bits(clamp(low, low_limit, high_limit), clamp(high, low_limit, high_limit)));
      }
  }
}

static void shortcut_convolution(const Shortcut *shortcut, const Map *in, const Map *out, int frame) {
  for (int i = 0; i < FRAMES_PER_STEP; i++)
    for (int half = 0; half < 2; half++)
      shortcut_rows(shortcut, half, map_frame(in, frame + i) + MAP_CHANNELS, out->bands,
                    map_frame(out, frame + i) + MAP_CHANNELS);
}

/* Clears those of two frames that are after the last frame: they are the pad of the next convolution. */
static void clear_after_end(const Map *out, int frame) {
  const int values = (out->bands + 2 * out->pad) * MAP_CHANNELS;
  for (int i = frame; i < frame + FRAMES_PER_STEP; i++)
    if (i >= frame_count) fill_zeros(map_frame(out, i), values);
}

/* Executes `compute` for the two frames of a layer that lags `lag` steps behind the first layer. */
#define LAYER(out, lag, compute)                                         \
  do {                                                                   \
    const int frame = (next_step - (lag)) * FRAMES_PER_STEP;             \
    if (frame >= 0 && frame >= (out).first &&                            \
        frame < frame_count + FRAMES_PER_STEP) {                         \
      if (frame < frame_count) compute;                                  \
      clear_after_end(&(out), frame);                                    \
    }                                                                    \
  } while (0)

/* The strided block of a stage starts at `lag`, its square block two steps later. */
static void strided_block(const StridedBlock *block, int lag, const Map *in, const Map *shortcut, const Map *middle,
                          const Map *out) {
  LAYER(*shortcut, lag, shortcut_convolution(&block->shortcut, in, shortcut, frame));
  LAYER(*middle, lag, strided_convolution(&block->conv1, in, middle, frame));
  LAYER(*out, lag + 1, residual_convolution(&block->conv2, middle, shortcut, out, frame));
}

static void square_block(const SquareBlock *block, int lag, const Map *in, const Map *middle, const Map *out) {
  LAYER(*middle, lag, square_convolution(&block->conv1, in, middle, frame));
  LAYER(*out, lag + 1, residual_convolution(&block->conv2, middle, in, out, frame));
}

static void two_frames(int frame) {
  for (int i = 0; i < FRAMES_PER_STEP; i++)
    for (int half = 0; half < 2; half++) first_convolution_rows(half, frame + i);
}

static void step(void) {
  LAYER(conv1, 0, two_frames(frame));
  strided_block(&weights->layers[0].strided, 1, &conv1, &strided1_shortcut, &strided1_middle, &strided1);
  square_block(&weights->layers[0].square, 3, &strided1, &square1_middle, &square1);
  strided_block(&weights->layers[1].strided, 5, &square1, &strided2_shortcut, &strided2_middle, &strided2);
  square_block(&weights->layers[1].square, 7, &strided2, &square2_middle, &square2);
  LAYER(output, LAST_LAG, strided_convolution(&weights->conv2, &square2, &output, frame));
}

static HOT void quantise_frame(const float *features, int16_t *out) {
  const Vector scale = splat(FEATURE_SCALE), low = splat(-WIDE_LIMIT), high = splat(WIDE_LIMIT);
  out[0] = out[BANDS + 1] = 0;
  for (int band = 0; band < BANDS; band += 8) {
    Vector a = multiply(load(features + band), scale), b = multiply(load(features + band + 4), scale);
    store(out + 1 + band, round_to_16_bits(clamp(a, low, high), clamp(b, low, high)));
  }
}

/* Starts a run on the features [frames, 80] after those of `state`; they are not needed after this call. */
void front_end_start(FrontEndState *front_end_state, const float *features, int frames, int first,
                     const FrontEndWeights *front_end_weights) {
  weights = front_end_weights;
  state = front_end_state;
  frames_before = state->feature_frames;
  frame_count = frames_before + frames;
  next_step = state->steps;
  output.first = first - STEM_PAD;
  rings = state->rings;
  fill_zeros(front_end_output, STEM_PAD * FRONT_END_CHANNELS);
  __builtin_memcpy(features_16, state->features, sizeof state->features);
  for (int frame = 0; frame < frames; frame++)
    quantise_frame(features + frame * BANDS, features_16 + (KEPT_FEATURES + frame) * FEATURE_ROW);
  fill_zeros(features_16 + (KEPT_FEATURES + frames) * FEATURE_ROW, 2 * FEATURE_ROW);
  __builtin_memcpy(state->features, features_16 + frames * FEATURE_ROW, sizeof state->features);
  state->feature_frames = frame_count;
}

/* Computes at most `steps` times two frames; returns whether more are left. */
int front_end_step(int steps) {
  const int end = (frame_count + 1) / FRAMES_PER_STEP + 1 + LAST_LAG;
  for (; steps > 0 && next_step < end; steps--, next_step++) {
    /* From here on steps have zeros in place of features that are still to come: the next run computes them again. */
    if (next_step == (frame_count - 1) / FRAMES_PER_STEP) {
      state->rings = rings;
      state->steps = next_step;
    }
    step();
  }
  return next_step < end;
}
