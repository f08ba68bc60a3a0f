/*
 * The 3 x 3 convolutions of CAM++'s front end by Winograd's method (Lavin and Gray, "Fast Algorithms for Convolutional
 * Neural Networks", CVPR 2016). Two neighbouring outputs of a filter of three taps need four products, not six:
 * F(2, 3). In integers the method is exact but for the rounding of the transformed weights.
 *
 * A convolution computes two frames at once. Over time all use F(2, 3). Over bands it is used with a stride of one:
 * F(2 x 2, 3 x 3), 16 products for four outputs, not 36. With a stride of two, outputs share no products over bands.
 */
#include "campplus.h"

#define POSITIONS 4          /* products of F(2, 3) */
#define MAX_ROW ((BANDS + 2) * MAP_CHANNELS)
#define MAX_SQUARE_BANDS 40
#define TILE_BANDS 2         /* outputs of a tile over bands */
#define GROUP 4              /* tiles of one product: its columns */
#define GROUP_VALUES (MAP_CHANNELS * GROUP)
#define MAX_GROUPS (MAX_SQUARE_BANDS / TILE_BANDS / GROUP)
#define TILE_PAIRS (MAP_CHANNELS / PAIR)

/* Transformed over time: [position][bands and pads][32]. The last group of tiles reads past the last band. */
static int16_t in_time[POSITIONS * MAX_ROW] ALIGNED;
/* Transformed over time and bands: [position in time, in bands][group][pairs of channels][tile][2]. */
static int16_t transformed[POSITIONS * POSITIONS][MAX_GROUPS * GROUP_VALUES] ALIGNED;

int16_t *map_frame(const Map *map, int frame) {
  return map->frames + ((frame - map->first) & map->mask) * (map->bands + 2 * map->pad) * MAP_CHANNELS;
}

static int16_t *first_band(const Map *map, int frame) { return map_frame(map, frame) + map->pad * MAP_CHANNELS; }

/* Transforms the frames `frame` - 1 to `frame` + 2, including the pads of their bands. */
static HOT void transform_time(const Map *in, int frame) {
  const int16_t *before = map_frame(in, frame - 1), *first = map_frame(in, frame);
  const int16_t *second = map_frame(in, frame + 1), *after = map_frame(in, frame + 2);
  const int row = (in->bands + 2) * MAP_CHANNELS;
  for (int i = 0; i < row; i += 8) {
    Vector a = load(before + i), b = load(first + i), c = load(second + i), d = load(after + i);
    store(in_time + i, wasm_i16x8_sub(a, c));
    store(in_time + row + i, wasm_i16x8_add(b, c));
    store(in_time + 2 * row + i, wasm_i16x8_sub(c, b));
    store(in_time + 3 * row + i, wasm_i16x8_sub(b, d));
  }
}

/* Transforms bands after time, and puts the four tiles of a group side by side. */
static HOT void transform_bands(int bands) {
  const int row = (bands + 2) * MAP_CHANNELS, groups = (bands / TILE_BANDS + GROUP - 1) / GROUP;
  for (int position = 0; position < POSITIONS; position++)
    for (int group = 0; group < groups; group++)
      for (int channel = 0; channel < MAP_CHANNELS; channel += 8) {
        const int16_t *from = in_time + position * row + group * GROUP * TILE_BANDS * MAP_CHANNELS + channel;
        const int to = group * GROUP_VALUES + channel * GROUP;
        Vector band[GROUP * TILE_BANDS + 2];
        for (int i = 0; i < GROUP * TILE_BANDS + 2; i++) band[i] = load(from + i * MAP_CHANNELS);
        Vector tile[POSITIONS][GROUP];
        for (int i = 0; i < GROUP; i++) {
          const Vector *four = band + TILE_BANDS * i;
          tile[0][i] = wasm_i16x8_sub(four[0], four[2]);
          tile[1][i] = wasm_i16x8_add(four[1], four[2]);
          tile[2][i] = wasm_i16x8_sub(four[2], four[1]);
          tile[3][i] = wasm_i16x8_sub(four[1], four[3]);
        }
        for (int i = 0; i < POSITIONS; i++)
          interleave(transformed[position * POSITIONS + i] + to, tile[i][0], tile[i][1], tile[i][2], tile[i][3]);
      }
}

/* Stores eight channels of one band, after a ReLU: sums * scale + offset. */
INLINE void store_channels(Vector low, Vector high, int16_t *out) {
  const Vector zero = splat(0), limit = splat(ACTIVATION_LIMIT);
  store(out, round_to_16_bits(clamp(low, zero, limit), clamp(high, zero, limit)));
}

/* Two frames of a convolution with a stride of two bands: the products over bands are direct. */
static HOT void multiply_strided(const StridedConvolution *weights, int half, int row, int bands, int16_t *first,
                                 int16_t *second) {
  const int pairs = 3 * MAP_CHANNELS / PAIR, stride = 2 * MAP_CHANNELS;
  const float *scale = weights->scales.scale + 16 * half, *offset = weights->scales.offset + 16 * half;
  for (int band = 0; band < bands; band += 2) {
    const int16_t *column = in_time + band * stride;
    const int out = band * MAP_CHANNELS + 16 * half;
    Sums16x2 sum, other, difference;
    clear_16x2(sum);
    clear_16x2(other);
    add_product_16x2(weights->rows[half][1][0][0], column + row, stride, pairs, sum);
    add_product_16x2(weights->rows[half][2][0][0], column + 2 * row, stride, pairs, other);
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 2; j++) {
        difference[i][j] = wasm_i32x4_sub(sum[i][j], other[i][j]);
        sum[i][j] = wasm_i32x4_add(sum[i][j], other[i][j]);
      }
    add_product_16x2(weights->rows[half][0][0][0], column, stride, pairs, sum);
    for (int j = 0; j < 2; j++)
      for (int i = 0; i < 4; i += 2)
        store_channels(scaled(sum[i][j], scale + 4 * i, offset + 4 * i),
                       scaled(sum[i + 1][j], scale + 4 * i + 4, offset + 4 * i + 4),
                       first + out + j * MAP_CHANNELS + 4 * i);
    /* The packer negates the last position, so that its product is added too. */
    add_product_16x2(weights->rows[half][3][0][0], column + 3 * row, stride, pairs, difference);
    for (int j = 0; j < 2; j++)
      for (int i = 0; i < 4; i += 2)
        store_channels(scaled(difference[i][j], scale + 4 * i, offset + 4 * i),
                       scaled(difference[i + 1][j], scale + 4 * i + 4, offset + 4 * i + 4),
                       second + out + j * MAP_CHANNELS + 4 * i);
  }
}

/* Frames `frame` and `frame` + 1 of `out`, which has half of the bands of `in`; `frame` is even. */
void strided_convolution(const StridedConvolution *weights, const Map *in, const Map *out, int frame) {
  transform_time(in, frame);
  for (int half = 0; half < 2; half++)
    multiply_strided(weights, half, (in->bands + 2) * MAP_CHANNELS, out->bands, first_band(out, frame),
                     first_band(out, frame + 1));
}

/* Products of 8 rows and the four tiles of a group: [position in time, in bands][tile][half of the rows]. */
static Vector products[POSITIONS * POSITIONS][GROUP][2];

INLINE void multiply_group(const int16_t *rows, int group) {
#pragma clang loop unroll(disable)
  for (int position = 0; position < POSITIONS * POSITIONS; position++) {
    Sums8x4 sums;
    clear_8x4(sums);
    add_product_8x4(rows + position * TILE_PAIRS * 8 * PAIR, transformed[position] + group * GROUP_VALUES, TILE_PAIRS,
                    sums);
    for (int tile = 0; tile < GROUP; tile++)
      for (int half = 0; half < 2; half++) products[position][tile][half] = sums[half][tile];
  }
}

/* The inverse transform of one tile: four sums of four channels, [frame][band]. */
INLINE void inverse_transform(int tile, int half, Vector sums[2][2]) {
  Vector in_bands[POSITIONS][2];
  for (int i = 0; i < POSITIONS; i++) {
    const int at = i * POSITIONS;
    Vector b = products[at + 1][tile][half], c = products[at + 2][tile][half];
    in_bands[i][0] = wasm_i32x4_add(products[at][tile][half], wasm_i32x4_add(b, c));
    in_bands[i][1] = wasm_i32x4_sub(wasm_i32x4_sub(b, c), products[at + 3][tile][half]);
  }
  for (int band = 0; band < 2; band++) {
    Vector b = in_bands[1][band], c = in_bands[2][band];
    sums[0][band] = wasm_i32x4_add(in_bands[0][band], wasm_i32x4_add(b, c));
    sums[1][band] = wasm_i32x4_sub(wasm_i32x4_sub(b, c), in_bands[3][band]);
  }
}

/*
 * Eight channels of two frames: inverse transforms, the residual if `residual` is not null, ReLU. Positions are those
 * of the first band; `out` and `residual` hold both frames.
 */
INLINE void square_rows(const SquareConvolution *weights, int quarter, int bands, int16_t *const out[2],
                        int16_t *const residual[2]) {
  const int channel = 8 * quarter;
  const float *scale = weights->scales.scale + channel, *offset = weights->scales.offset + channel;
  const float *residual_scale = weights->residual_scale + channel;
  for (int group = 0; group * GROUP * TILE_BANDS < bands; group++) {
    multiply_group(weights->rows[quarter][0][0][0][0], group);
    const int left = bands / TILE_BANDS - group * GROUP, tiles = left < GROUP ? left : GROUP;
#pragma clang loop unroll(disable)
    for (int tile = 0; tile < tiles; tile++) {
      Vector low[2][2], high[2][2];
      inverse_transform(tile, 0, low);
      inverse_transform(tile, 1, high);
      for (int frame = 0; frame < 2; frame++)
        for (int band = 0; band < 2; band++) {
          const int at = ((group * GROUP + tile) * TILE_BANDS + band) * MAP_CHANNELS + channel;
          Vector a = scaled(low[frame][band], scale, offset), b = scaled(high[frame][band], scale + 4, offset + 4);
          if (residual) {
            Vector kept = load(residual[frame] + at);
            a = add(a, multiply(to_float(wasm_i32x4_extend_low_i16x8(kept)), load(residual_scale)));
            b = add(b, multiply(to_float(wasm_i32x4_extend_high_i16x8(kept)), load(residual_scale + 4)));
          }
          store_channels(a, b, out[frame] + at);
        }
    }
  }
}

static HOT void plain_rows(const SquareConvolution *weights, int quarter, int bands, int16_t *const out[2]) {
  square_rows(weights, quarter, bands, out, 0);
}

static HOT void residual_rows(const SquareConvolution *weights, int quarter, int bands, int16_t *const out[2],
                              int16_t *const residual[2]) {
  square_rows(weights, quarter, bands, out, residual);
}

/* Frames `frame` and `frame` + 1 of `out`, which has the bands of `in`; `frame` is even. */
void square_convolution(const SquareConvolution *weights, const Map *in, const Map *out, int frame) {
  int16_t *const frames[2] = {first_band(out, frame), first_band(out, frame + 1)};
  transform_time(in, frame);
  transform_bands(in->bands);
  for (int quarter = 0; quarter < 4; quarter++) plain_rows(weights, quarter, in->bands, frames);
}

/* The same, with `residual` added before the ReLU. */
void residual_convolution(const SquareConvolution *weights, const Map *in, const Map *residual, const Map *out,
                          int frame) {
  int16_t *const frames[2] = {first_band(out, frame), first_band(out, frame + 1)};
  int16_t *const kept[2] = {first_band(residual, frame), first_band(residual, frame + 1)};
  transform_time(in, frame);
  transform_bands(in->bands);
  for (int quarter = 0; quarter < 4; quarter++) residual_rows(weights, quarter, in->bands, frames, kept);
}
