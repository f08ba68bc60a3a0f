/*
 * segmentation-3.0 (PyanNet; Bredin and Laurent, Interspeech 2021): SincNet, four bidirectional LSTM layers and three
 * linear layers. Sizes, weights, and the functions of its parts. training/kernels/segmentation.py writes the weights in
 * the order of these structures.
 */
#ifndef ROLLCALL_SEGMENTATION_H
#define ROLLCALL_SEGMENTATION_H

#include "product.h"
#include "weights.h"

#define LARGEST 32767

#define MAX_SAMPLES 160000
/* Samples of the first frame: fewer give no frame. */
#define MIN_SAMPLES 991
#define POOL 3
#define TAPS 5

#define FILTER_TAPS 251
#define FILTER_STRIDE 10
#define FILTERS 80
/* Taps of half a filter, 126, rounded up. */
#define HALF_TAPS 128
#define MAX_FILTER_POSITIONS ((MAX_SAMPLES - FILTER_TAPS) / FILTER_STRIDE + 1)
#define MAX_POSITIONS (MAX_FILTER_POSITIONS / POOL)
#define CONV_CHANNELS 60
/* Rows and inputs are rounded up to whole vectors; the additional weights are zeros. */
#define PADDED_CHANNELS 64
#define CONV1_INPUTS (TAPS * FILTERS)
#define CONV2_INPUTS (TAPS * CONV_CHANNELS + 4)

#define MAX_FRAMES 589
#define UNITS 128
#define GATES 4
#define HIDDEN (2 * UNITS)
#define LSTM_LAYERS 4
#define LINEAR 128
#define CLASSES 7
#define PADDED_CLASSES 8

typedef struct {
  float gain[FILTERS], offset[FILTERS];
} FilterNorm;

typedef struct {
  float gain[PADDED_CHANNELS], offset[PADDED_CHANNELS];
} ConvolutionNorm;

/* Even filters from their middle to their end, and then odd ones. */
typedef struct {
  float waveform_gain, waveform_offset, unused[2];
  int16_t rows[2][FILTERS / 2 / 8][HALF_TAPS / PAIR][8][PAIR];
  float scale[FILTERS], response_to_one[FILTERS];
  FilterNorm norm;
} FilterWeights;

typedef struct {
  int16_t rows[PADDED_CHANNELS / 8][CONV1_INPUTS / PAIR][8][PAIR];
  float scale[PADDED_CHANNELS];
  ConvolutionNorm norm;
} Convolution1;

typedef struct {
  int16_t rows[PADDED_CHANNELS / 8][CONV2_INPUTS / PAIR][8][PAIR];
  float scale[PADDED_CHANNELS];
  ConvolutionNorm norm;
} Convolution2;

typedef struct {
  FilterWeights filters;
  Convolution1 conv1;
  Convolution2 conv2;
} SincNetWeights;

/*
 * One direction of a layer. Four units make a group, whose 16 rows are the input, output, forget and cell gates of the
 * units. projection [group, half][inputs / 2][8][2], recurrent [two groups][64][32][2], the others [group][16].
 */
typedef struct {
  int inputs;
  const int16_t *projection, *recurrent;
  const float *projection_scale, *bias, *recurrent_scale;
} Direction;

typedef struct {
  int16_t rows[LINEAR / 8][HIDDEN / PAIR][8][PAIR];
  float scale[LINEAR], bias[LINEAR];
  float linear1[LINEAR][LINEAR], linear1_bias[LINEAR];
  float classifier[LINEAR][PADDED_CLASSES], classifier_bias[PADDED_CLASSES];
} ClassifierWeights;

INLINE Vector leaky_relu(Vector value) { return wasm_f32x4_pmax(value, multiply(value, splat(0.01f))); }

/* sincnet.c: waveform -> [frames, 60] in 16 bits. filter_positions is what compute_filters has to compute. */
int filter_positions(int samples);
int frames_of(int samples);
void normalise_waveform(const float *waveform, int samples, const FilterWeights *weights);
void compute_filters(const FilterWeights *weights, int from, int to);
void convolve(const SincNetWeights *weights, int positions, int16_t *out);

/* lstm.c: [frames, stride] -> [frames, HIDDEN], hidden values in units of 1 / LARGEST; direction 0 is forward. */
void lstm_direction(const Direction *weights, int direction, const int16_t *in, int stride, int frames, int16_t *out);

/* classifier.c: hidden values -> log-probabilities [frames, CLASSES] */
void classify(const ClassifierWeights *weights, const int16_t *hidden, int frames, float *out);

#endif
