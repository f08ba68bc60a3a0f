/*
 * SincNet (Ravanelli and Bengio, SLT 2018): band-pass filters on the waveform and two convolutions, each followed by
 * max-pooling, instance normalisation and a leaky ReLU.
 *
 * Pooling takes the maximum of three neighbouring positions. Four pooled positions are computed at once, by three
 * products. Product `shift` has the positions 3 * i + shift of i = 0..3 as columns, so that pooling is the maximum of
 * the three products' sums.
 */
#include <math.h>

#include "segmentation.h"

#define WAVEFORM_LIMIT 16383 /* the sum of two samples has 16 bits */
#define FRONT_PAD 8          /* folding reads two samples before the first one */
#define FOLDED (HALF_TAPS * COLUMNS)
#define NORM_EPSILON 1e-5f
/* Samples whose sum is exact enough in floating point; blocks are summed in double precision. */
#define SUM_BLOCK 256

static int16_t samples_16[FRONT_PAD + MAX_SAMPLES + 512] ALIGNED;
/* Pooled values before normalisation, [positions, 80] or [positions, 64]; groups of four write three too many. */
static float pooled[(MAX_POSITIONS + COLUMNS) * FILTERS] ALIGNED;
/* Normalised values, [positions, 80] or [positions, 60]. The last convolution reads past the end. */
static int16_t normalised[(MAX_POSITIONS + COLUMNS * POOL + TAPS) * FILTERS] ALIGNED;
/* Columns of three products: folded samples [even, odd][shift], or inputs of a convolution [shift]. */
static int16_t folded[2][POOL][FOLDED] ALIGNED, columns[POOL][CONV1_INPUTS * COLUMNS] ALIGNED;

/* The scale of the filters' sums, and what the waveform's offset adds to them. */
static float filter_scale[FILTERS] ALIGNED, filter_offset[FILTERS] ALIGNED;

int filter_positions(int samples) { return ((samples - FILTER_TAPS) / FILTER_STRIDE + 1) / POOL; }

static int pooled_positions(int positions) { return (positions - TAPS + 1) / POOL; }

int frames_of(int samples) { return pooled_positions(pooled_positions(filter_positions(samples))); }

static float sum_of_lanes(Vector value) {
  return wasm_f32x4_extract_lane(value, 0) + wasm_f32x4_extract_lane(value, 1) + wasm_f32x4_extract_lane(value, 2) +
         wasm_f32x4_extract_lane(value, 3);
}

static HOT float sum_block(const float *values, int count) {
  Vector sum = splat(0);
  int i = 0;
  for (; i + 4 <= count; i += 4) sum = add(sum, load(values + i));
  float total = sum_of_lanes(sum);
  for (; i < count; i++) total += values[i];
  return total;
}

/* The sum of squared distances from `mean`; raises `peak` to the largest distance. */
static HOT float spread_block(const float *values, int count, float mean, float *peak) {
  float sum = 0;
  for (int i = 0; i < count; i++) {
    float distance = values[i] - mean, magnitude = fabsf(distance);
    sum += distance * distance;
    if (magnitude > *peak) *peak = magnitude;
  }
  return sum;
}

static HOT void quantise_block(const float *values, int count, float mean, float scale, int16_t *out) {
  const Vector low = splat(-WAVEFORM_LIMIT), high = splat(WAVEFORM_LIMIT);
  for (int i = 0; i < count; i += 8) {
    Vector a = multiply(wasm_f32x4_sub(load(values + i), splat(mean)), splat(scale));
    Vector b = multiply(wasm_f32x4_sub(load(values + i + 4), splat(mean)), splat(scale));
    store(out + i, round_to_16_bits(clamp(a, low, high), clamp(b, low, high)));
  }
}

/*
 * Normalises a window into 16 bits, relative to its peak. Instance normalisation also adds an offset, larger than quiet
 * speech: the filters' responses to it are added after the product, so that the 16 bits hold the signal alone.
 */
void normalise_waveform(const float *waveform, int samples, const FilterWeights *weights) {
  double sum = 0, squares = 0;
  float peak = 0;
  for (int from = 0; from < samples; from += SUM_BLOCK)
    sum += sum_block(waveform + from, samples - from < SUM_BLOCK ? samples - from : SUM_BLOCK);
  const float mean = (float)(sum / samples);
  for (int from = 0; from < samples; from += SUM_BLOCK)
    squares += spread_block(waveform + from, samples - from < SUM_BLOCK ? samples - from : SUM_BLOCK, mean, &peak);
  const float gain = weights->waveform_gain / sqrtf((float)(squares / samples) + NORM_EPSILON);
  const float scale = peak > 1e-30f ? WAVEFORM_LIMIT / peak : 0, unit = gain * peak / WAVEFORM_LIMIT;
  for (int from = 0; from < samples; from += SUM_BLOCK)
    quantise_block(waveform + from, samples - from < SUM_BLOCK ? samples - from : SUM_BLOCK, mean, scale,
                   samples_16 + FRONT_PAD + from);
  for (int i = 0; i < FILTERS; i++) {
    filter_scale[i] = weights->scale[i] * unit;
    filter_offset[i] = weights->response_to_one[i] * weights->waveform_offset;
  }
}

/*
 * Folds the samples around the middles of four filter positions, POOL positions apart. Filters are exactly even or odd,
 * so that half of the products do: of sums, or of differences, of the samples at equal distances from the middle.
 */
static HOT void fold_columns(int position, int16_t *even, int16_t *odd) {
  const int16_t *middle = samples_16 + FRONT_PAD + position * FILTER_STRIDE + FILTER_TAPS / 2;
  for (int i = 0; i < HALF_TAPS; i += 8, even += 8 * COLUMNS, odd += 8 * COLUMNS) {
    Vector sums[COLUMNS], differences[COLUMNS];
    for (int j = 0; j < COLUMNS; j++) {
      const int16_t *centre = middle + j * POOL * FILTER_STRIDE;
      Vector after = load(centre + i), before = load(centre - i - 7);
      before = wasm_i16x8_shuffle(before, before, 7, 6, 5, 4, 3, 2, 1, 0);
      sums[j] = wasm_i16x8_add(after, before);
      differences[j] = wasm_i16x8_sub(after, before);
    }
    interleave(even, sums[0], sums[1], sums[2], sums[3]);
    interleave(odd, differences[0], differences[1], differences[2], differences[3]);
  }
}

/* Magnitudes of eight filters at four pooled positions, whose rows in `out` are FILTERS apart. */
static HOT void filter_rows(const int16_t *rows, const int16_t (*shifts)[FOLDED], const float *scale,
                            const float *offset, float *out) {
  Vector largest[2][COLUMNS];
  for (int i = 0; i < COLUMNS; i++) largest[0][i] = largest[1][i] = splat(0);
#pragma clang loop unroll(disable)
  for (int shift = 0; shift < POOL; shift++) {
    Sums8x4 sums;
    clear_8x4(sums);
    add_product_8x4(rows, shifts[shift], HALF_TAPS / PAIR, sums);
    for (int half = 0; half < 2; half++)
      for (int i = 0; i < COLUMNS; i++) {
        Vector magnitude = wasm_f32x4_abs(scaled(sums[half][i], scale + 4 * half, offset + 4 * half));
        largest[half][i] = wasm_f32x4_pmax(largest[half][i], magnitude);
      }
  }
  for (int i = 0; i < COLUMNS; i++)
    for (int half = 0; half < 2; half++) store(out + i * FILTERS + 4 * half, largest[half][i]);
}

/* Pooled positions [from, to), rounded up to four. */
void compute_filters(const FilterWeights *weights, int from, int to) {
  for (int position = from; position < to; position += COLUMNS) {
    for (int shift = 0; shift < POOL; shift++)
      fold_columns(position * POOL + shift, folded[0][shift], folded[1][shift]);
    for (int parity = 0; parity < 2; parity++)
      for (int tile = 0; tile < FILTERS / 2 / 8; tile++) {
        const int filter = parity * FILTERS / 2 + tile * 8;
        filter_rows(weights->rows[parity][tile][0][0], folded[parity], filter_scale + filter, filter_offset + filter,
                    pooled + position * FILTERS + filter);
      }
  }
}

/* Eight channels of a convolution at four pooled positions, whose rows in `out` are PADDED_CHANNELS apart. */
static HOT void convolution_rows(const int16_t *rows, int inputs, const float *scale, float *out) {
  Vector largest[2][COLUMNS];
  for (int i = 0; i < COLUMNS; i++) largest[0][i] = largest[1][i] = wasm_i32x4_const_splat(INT32_MIN);
#pragma clang loop unroll(disable)
  for (int shift = 0; shift < POOL; shift++) {
    Sums8x4 sums;
    clear_8x4(sums);
    add_product_8x4(rows, columns[shift], inputs / PAIR, sums);
    for (int half = 0; half < 2; half++)
      for (int i = 0; i < COLUMNS; i++) largest[half][i] = wasm_i32x4_max(largest[half][i], sums[half][i]);
  }
  for (int i = 0; i < COLUMNS; i++)
    for (int half = 0; half < 2; half++)
      store(out + i * PADDED_CHANNELS + 4 * half, multiply(to_float(largest[half][i]), load(scale + 4 * half)));
}

static HOT void convolution_columns(int position, int channels, int inputs) {
  for (int shift = 0; shift < POOL; shift++)
    interleave_rows(normalised + (position * POOL + shift) * channels, POOL * channels, inputs, columns[shift]);
}

/* `normalised` [*, channels] -> `pooled` [positions, PADDED_CHANNELS]. Instance normalisation cancels a bias. */
static void convolution(const int16_t *rows, int channels, int inputs, const float *scale, int positions) {
  for (int position = 0; position < positions; position += COLUMNS) {
    convolution_columns(position, channels, inputs);
    for (int tile = 0; tile < PADDED_CHANNELS / 8; tile++)
      convolution_rows(rows + tile * 8 * inputs, inputs, scale + 8 * tile,
                       pooled + position * PADDED_CHANNELS + 8 * tile);
  }
}

/* Gain and offset of 16 channels of `pooled` [positions, stride], such that they get the norm's scale and offset. */
static HOT void measure_channels(int positions, int stride, int channel, const float *norm_gain,
                                 const float *norm_offset, float *gain, float *offset) {
  Vector mean[4], square[4];
  for (int i = 0; i < 4; i++) mean[i] = square[i] = splat(0);
  for (int position = 0; position < positions; position++)
    for (int i = 0; i < 4; i++) mean[i] = add(mean[i], load(pooled + position * stride + channel + 4 * i));
  for (int i = 0; i < 4; i++) mean[i] = multiply(mean[i], splat(1.0f / (float)positions));
  for (int position = 0; position < positions; position++)
    for (int i = 0; i < 4; i++) {
      Vector distance = wasm_f32x4_sub(load(pooled + position * stride + channel + 4 * i), mean[i]);
      square[i] = add(square[i], multiply(distance, distance));
    }
  for (int i = 0; i < 4; i++) {
    Vector variance = multiply(square[i], splat(1.0f / (float)positions));
    Vector deviation = wasm_f32x4_sqrt(add(variance, splat(NORM_EPSILON)));
    Vector factor = wasm_f32x4_div(load(norm_gain + channel + 4 * i), deviation);
    store(gain + channel + 4 * i, factor);
    store(offset + channel + 4 * i, wasm_f32x4_sub(load(norm_offset + channel + 4 * i), multiply(mean[i], factor)));
  }
}

/*
 * One position: gain, offset, leaky ReLU, 16 bits. Channels are rounded up to eight. The packer's units are such that
 * the largest possible value of a normalised channel has 16 bits, so that nothing is clipped.
 */
static HOT void normalise_position(const float *values, int channels, const float *gain, const float *offset,
                                   int16_t *out) {
  for (int i = 0; i < channels; i += 8) {
    Vector a = add(multiply(load(values + i), load(gain + i)), load(offset + i));
    Vector b = add(multiply(load(values + i + 4), load(gain + i + 4)), load(offset + i + 4));
    store(out + i, round_to_16_bits(leaky_relu(a), leaky_relu(b)));
  }
}

/*
 * Instance normalisation and leaky ReLU: `pooled` [positions, stride] -> `out` [positions, channels]. Four channels too
 * many of a position are overwritten by the next position.
 */
static void normalise(int positions, int stride, int channels, const float *norm_gain, const float *norm_offset,
                      int16_t *out) {
  static float gain[FILTERS] ALIGNED, offset[FILTERS] ALIGNED;
  for (int channel = 0; channel < stride; channel += 16)
    measure_channels(positions, stride, channel, norm_gain, norm_offset, gain, offset);
  for (int position = 0; position < positions; position++)
    normalise_position(pooled + position * stride, channels, gain, offset, out + position * channels);
}

/* The filters' magnitudes at `positions` positions -> [frames, CONV_CHANNELS]; writes four values more. */
void convolve(const SincNetWeights *weights, int positions, int16_t *out) {
  const FilterNorm *filter_norm = &weights->filters.norm;
  normalise(positions, FILTERS, FILTERS, filter_norm->gain, filter_norm->offset, normalised);
  positions = pooled_positions(positions);
  convolution(weights->conv1.rows[0][0][0], FILTERS, CONV1_INPUTS, weights->conv1.scale, positions);
  const ConvolutionNorm *norm1 = &weights->conv1.norm, *norm2 = &weights->conv2.norm;
  normalise(positions, PADDED_CHANNELS, CONV_CHANNELS, norm1->gain, norm1->offset, normalised);
  positions = pooled_positions(positions);
  convolution(weights->conv2.rows[0][0][0], CONV_CHANNELS, CONV2_INPUTS, weights->conv2.scale, positions);
  normalise(positions, PADDED_CHANNELS, CONV_CHANNELS, norm2->gain, norm2->offset, out);
}
