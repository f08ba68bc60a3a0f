/*
 * CAM++'s trunk (Wang et al., "CAM++: A Fast and Efficient Network for Speaker Verification Using Context-Aware
 * Masking", Interspeech 2023): sizes, weights, and the functions of its parts. training/kernels/campplus.py writes the
 * weights in the order of these structures.
 *
 * Activations are 16-bit integers with a scale for each channel, from ranges on recordings. After a ReLU they are at
 * most ACTIVATION_LIMIT, 8 times the largest value seen: clipping would cost far more accuracy than rounding.
 */
#ifndef ROLLCALL_CAMPPLUS_H
#define ROLLCALL_CAMPPLUS_H

#include "product.h"

#define BANDS 80
#define MAX_FEATURE_FRAMES 1000                /* of 10 ms */
#define MAX_FRAMES (MAX_FEATURE_FRAMES / 2)    /* of 20 ms */
/* 2^13 - 1: the Winograd transform of a map adds four of its values in 16 bits. */
#define ACTIVATION_LIMIT 8191
#define WIDE_LIMIT 32767

/* Front end */
#define MAP_CHANNELS 32
#define OUT_BANDS 10
#define FRONT_END_CHANNELS (OUT_BANDS * MAP_CHANNELS)
/* Frames before the first one in the front end's output: zeros for the stem. */
#define STEM_PAD 2

/* Dense blocks */
#define BLOCKS 3
#define LAYERS 52
#define STEM_CHANNELS 128
#define STEM_TAPS 5
#define MAX_CHANNELS 1024
#define OUT_CHANNELS 512
#define BOTTLENECK 128
#define GROWTH 32
#define TAPS 3
#define CONTEXT_CHANNELS 64
#define SEGMENT_FRAMES 100
/* Frames of the bottleneck on each side of a frame, for the largest dilation. */
#define BOTTLENECK_PAD 2

typedef struct {
  float scale[MAP_CHANNELS], offset[MAP_CHANNELS];
} MapScales;

/* 3 x 3 on features: of each of three frames three bands and a zero. */
typedef struct {
  int16_t rows[2][3 * 4 / PAIR][16][PAIR];
  MapScales scales;
} FirstConvolution;

/* 1 x 1, every second band. */
typedef struct {
  int16_t rows[2][MAP_CHANNELS / PAIR][16][PAIR];
  MapScales scales;
} Shortcut;

/* 3 x 3, every second band; [half of the rows][position in time]. */
typedef struct {
  int16_t rows[2][4][3 * MAP_CHANNELS / PAIR][16][PAIR];
  MapScales scales;
} StridedConvolution;

/* 3 x 3; [quarter of the rows][position in time][position in bands]. The scale of the residual may be unused. */
typedef struct {
  int16_t rows[4][4][4][MAP_CHANNELS / PAIR][8][PAIR];
  MapScales scales;
  float residual_scale[MAP_CHANNELS];
} SquareConvolution;

typedef struct {
  Shortcut shortcut;
  StridedConvolution conv1;
  SquareConvolution conv2;
} StridedBlock;

typedef struct {
  SquareConvolution conv1, conv2;
} SquareBlock;

typedef struct {
  FirstConvolution conv1;
  struct {
    StridedBlock strided;
    SquareBlock square;
  } layers[2];
  StridedConvolution conv2;
} FrontEndWeights;

typedef struct {
  int16_t rows[STEM_CHANNELS / 16][STEM_TAPS * FRONT_END_CHANNELS / PAIR][16][PAIR];
  float scale[STEM_CHANNELS], offset[STEM_CHANNELS];
} StemWeights;

/* In the file the parts follow whose size depends on the number of input channels, see NormalisedLinear. */
typedef struct {
  float scale[BOTTLENECK], offset[BOTTLENECK];
  float context1[BOTTLENECK][CONTEXT_CHANNELS], context1_bias[CONTEXT_CHANNELS];
  float context2[CONTEXT_CHANNELS][GROWTH], context2_bias[GROWTH];
  int16_t local[GROWTH / 16][TAPS * BOTTLENECK / PAIR][16][PAIR];
  float local_scale[GROWTH];
} DenseLayerWeights;

/* Batch normalisation, ReLU, product: gain in Q15 and offset [channels], rows [outputs / 8][channels / 2][8][2]. */
typedef struct {
  int channels, outputs;
  const int16_t *gain, *offset, *rows;
  const float *scale, *bias;
} NormalisedLinear;

/* What a run needs of the audio before it: zeros at the start of a stretch or a stream. Frames count from there. */
#define RING_FRAMES 8
#define RING_VALUES(bands) (RING_FRAMES * ((bands) + 2) * MAP_CHANNELS)
#define FEATURE_ROW (BANDS + 2)
/* Features before the next one that the first convolution may read. */
#define KEPT_FEATURES 3

typedef struct {
  int16_t maps_80[1][RING_VALUES(80)], maps_40[5][RING_VALUES(40)], maps_20[5][RING_VALUES(20)];
} Rings;

typedef struct {
  Rings rings;
  int16_t features[KEPT_FEATURES * FEATURE_ROW];
  int feature_frames, steps;
} FrontEndState;

typedef struct {
  FrontEndState front_end;
  /* The last frames of each layer's bottleneck. */
  int16_t bottlenecks[LAYERS][BOTTLENECK_PAD * BOTTLENECK];
  /* Frames that are not computed again. */
  int frames;
} StreamState;

/* front_end.c: features [frames, 80] -> [frames, 10 bands, 32], from frame `first` - STEM_PAD on. */
extern int16_t front_end_output[];
void front_end_start(FrontEndState *state, const float *features, int frames, int first,
                     const FrontEndWeights *weights);
int front_end_step(int pairs);

/* winograd.c */
typedef struct {
  int16_t *frames;          /* [mask + 1][pad + bands + pad][32] */
  int bands, pad, mask;     /* frame t is at (t - first) & mask */
  int first;
} Map;

int16_t *map_frame(const Map *map, int frame);
void strided_convolution(const StridedConvolution *weights, const Map *in, const Map *out, int frame);
void square_convolution(const SquareConvolution *weights, const Map *in, const Map *out, int frame);
void residual_convolution(const SquareConvolution *weights, const Map *in, const Map *residual, const Map *out,
                          int frame);

/* dense.c; activations [frames, MAX_CHANNELS] in 16 bits */
void stem(const StemWeights *weights, int frames, int16_t *out);
void dense_layer(const DenseLayerWeights *weights, const NormalisedLinear *linear, int16_t *before, int dilation,
                 int frames, int new_frames, int16_t *activations);
void transit(const NormalisedLinear *linear, const int16_t *activations, int frames, int16_t *out);
void last_transit(const NormalisedLinear *linear, const int16_t *activations, int frames, float *out);

#endif
