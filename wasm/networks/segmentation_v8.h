/*
 * segmentation-v8 (training/segmentation/model.py): log-mel features, convolutions to 25 Hz, three pairs of an attention
 * block and a bidirectional GRU, and back to 50 Hz. Sizes, weights, and the functions of its parts.
 * training/kernels/segmentation_v8.py writes the weights in the order in which segmentation_v8.c takes them.
 *
 * The residual stream is in floating point. The inputs of products are 16-bit integers: after a layer normalisation in
 * the unit of the largest possible value, after the convolutions in that of the window's largest value.
 */
#ifndef ROLLCALL_SEGMENTATION_V8_H
#define ROLLCALL_SEGMENTATION_V8_H

#include "product.h"
#include "weights.h"

#define BANDS 64
#define MAX_POWER_FRAMES 1000                    /* at 100 Hz */
#define MAX_FINE_FRAMES (MAX_POWER_FRAMES / 2)   /* at 50 Hz */
#define MAX_FRAMES (MAX_FINE_FRAMES / 2)         /* at 25 Hz */

#define CONV1_TAPS 6
#define CONV1_PAD 2
#define TAPS 3
#define WIDTH 128
#define PAIRS_OF_BLOCKS 3
#define DEPTHWISE_TAPS 15
#define HEADS 4
#define HEAD_WIDTH (WIDTH / HEADS)
#define QKV (3 * WIDTH)
#define FEED_FORWARD 192
#define UNITS 64
#define GATES 3
#define DIRECTIONS 2
#define GRU_ROWS (GATES * UNITS)
#define SKIP 96
#define LAST_WIDTH 64
#define CLASSES 7
#define PADDED_CLASSES 8
#define MAX_INPUTS (CONV1_TAPS * BANDS)

/* Largest integer where the sum of the weights' magnitudes limits the precision, and with any sum of squares. */
#define BALANCED_LIMIT 8191
#define LARGEST 32767
/* No log feature is above: 0.4 times the logarithm of the power's range, 64000 / 1e-7. */
#define FEATURE_LIMIT 10.9f

/* rows [outputs / 8][inputs / 2][8][2], scale and offset [outputs] */
typedef struct {
  int inputs, outputs;
  const int16_t *rows;
  const float *scale, *offset;
} Linear;

/* Inputs of frames, `stride` values apart, in units of `unit`. */
typedef struct {
  const int16_t *values;
  int stride;
  float unit;
} Rows;

/* taps [DEPTHWISE_TAPS][WIDTH], the others [WIDTH] */
typedef struct {
  const float *gain, *bias, *taps, *offset;
} DepthwiseWeights;

typedef struct {
  DepthwiseWeights depthwise;
  Linear pointwise, qkv, out, widen, narrow;
  const float *score_unit; /* [HEADS], for powers of two */
} AttentionWeights;

/*
 * Four units make a group, whose 12 rows are the update, reset and new gates of the units. recurrent
 * [two groups][32 pairs][24][2], scale [GRU_ROWS], bias of the new gate [UNITS]
 */
typedef struct {
  Linear projection;
  const int16_t *recurrent[DIRECTIONS];
  const float *scale[DIRECTIONS], *bias[DIRECTIONS];
} GruWeights;

/* weights [LAST_WIDTH][PADDED_CLASSES], bias [PADDED_CLASSES] */
typedef struct {
  const float *weights, *bias;
} OutputWeights;

INLINE Vector relu(Vector value) { return wasm_f32x4_pmax(value, splat(0.0f)); }

/* log_mel.c: powers [frames, BANDS] -> features; overwrites the powers. */
void log_features(float *powers, int frames, int16_t *out);

/* linear.c */
typedef enum { STORE = 0, RELU = 1, ADD = 2, INTEGERS = 4 } Ending;

/* `out` [frames, outputs] in floating point, or 16-bit integers with INTEGERS; rounds frames up to four. */
void linear(const Linear *layer, Rows in, int frames, Ending ending, void *out);
/* The positive values as integers up to BALANCED_LIMIT; returns their unit. */
float quantise(const float *values, int count, int16_t *out);

/* normalisation.c: layer normalisation of [frames, WIDTH] */
void normalise(const float *stream, int frames, int16_t *out);
/* Layer normalisation, convolution over time, ReLU. */
void depthwise_convolution(const DepthwiseWeights *weights, const float *stream, int frames, int16_t *out);

/* attention.c: queries, keys and values [frames, QKV] -> [frames, WIDTH] */
void attend(const int16_t *qkv, const float *score_unit, int frames, int16_t *out);

/* gru.c: projections [frames, 2 GRU_ROWS] -> adds the hidden values to the stream. */
void gru_direction(const GruWeights *weights, int direction, const float *projections, int frames, float *stream);

/* output.c: [frames, LAST_WIDTH] -> log-probabilities [frames, CLASSES] */
void output_layer(const OutputWeights *weights, const float *in, int frames, float *out);

#endif
