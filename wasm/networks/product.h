/*
 * Products of 16-bit matrices: rows of weights times columns of activations, with sums in 32 bits.
 *
 * The instruction i32x4.dot_i16x8_s multiplies four pairs of values and adds each pair, so that weights and activations
 * are stored in pairs of neighbours along the summed dimension. A tile holds eight vectors of sums in registers; more
 * would spill. The packer limits the absolute sum or the norm of each row of weights, so that no total overflows. A partial
 * sum may overflow, which does no harm, since additions wrap around.
 *
 * Each iteration multiplies one pair. V8 moves all loads of a loop's body to its start: with two pairs, a body has more
 * values than there are registers.
 */
#ifndef ROLLCALL_PRODUCT_H
#define ROLLCALL_PRODUCT_H

#include "simd.h"

#define PAIR 2
/* Products compute groups of four columns, so that there may be three frames too many. */
#define COLUMNS 4

/* Sums of 8 rows and 4 columns: [half of the rows][column]. */
typedef Vector Sums8x4[2][4];
/* Sums of 16 rows and 2 columns: [quarter of the rows][column]. */
typedef Vector Sums16x2[4][2];

INLINE void clear_8x4(Sums8x4 sums) {
  for (int column = 0; column < 4; column++) sums[0][column] = sums[1][column] = wasm_i32x4_const_splat(0);
}

INLINE void clear_16x2(Sums16x2 sums) {
  for (int quarter = 0; quarter < 4; quarter++) sums[quarter][0] = sums[quarter][1] = wasm_i32x4_const_splat(0);
}

INLINE Vector add_product(Vector sums, Vector weights, Vector values) {
  return wasm_i32x4_add(sums, wasm_i32x4_dot_i16x8(weights, values));
}

/*
 * Adds 8 rows times 4 columns. weights [pairs][8 rows][2], columns [pairs][4 columns][2].
 * Each column has a load: shuffles of a common one would take the units that multiply and add. All loads are at fixed
 * distances from two addresses, since engines that check bounds in code, such as workerd's, are slow with more.
 */
INLINE void add_product_8x4(const int16_t *weights, const int16_t *columns, int pairs, Sums8x4 sums) {
  const int16_t *end = columns + pairs * 4 * PAIR;
#pragma clang loop unroll(disable)
  do {
    Vector upper = load(weights), lower = load(weights + 4 * PAIR);
    Vector column0 = wasm_v128_load32_splat(columns + 0 * PAIR);
    sums[0][0] = add_product(sums[0][0], upper, column0);
    sums[1][0] = add_product(sums[1][0], lower, column0);
    Vector column1 = wasm_v128_load32_splat(columns + 1 * PAIR);
    sums[0][1] = add_product(sums[0][1], upper, column1);
    sums[1][1] = add_product(sums[1][1], lower, column1);
    Vector column2 = wasm_v128_load32_splat(columns + 2 * PAIR);
    sums[0][2] = add_product(sums[0][2], upper, column2);
    sums[1][2] = add_product(sums[1][2], lower, column2);
    Vector column3 = wasm_v128_load32_splat(columns + 3 * PAIR);
    sums[0][3] = add_product(sums[0][3], upper, column3);
    sums[1][3] = add_product(sums[1][3], lower, column3);
    columns += 4 * PAIR;
    weights += 8 * PAIR;
  } while (columns != end);
}

/* Adds 16 rows times 2 columns, of which the second is `stride` values after the first. weights [pairs][16 rows][2] */
INLINE void add_product_16x2(const int16_t *weights, const int16_t *column, int stride, int pairs, Sums16x2 sums) {
  const int16_t *second = column + stride, *end = column + pairs * PAIR;
#pragma clang loop unroll(disable)
  do {
    Vector values0 = wasm_v128_load32_splat(column), values1 = wasm_v128_load32_splat(second);
#pragma clang loop unroll(full)
    for (int quarter = 0; quarter < 4; quarter++) {
      Vector rows = load(weights + quarter * 4 * PAIR);
      sums[quarter][0] = add_product(sums[quarter][0], rows, values0);
      sums[quarter][1] = add_product(sums[quarter][1], rows, values1);
    }
    column += PAIR;
    second += PAIR;
    weights += 16 * PAIR;
  } while (column != end);
}

/* Four columns of 8 values, side by side as add_product_8x4 reads them: [4 pairs][4 columns][2]. */
INLINE void interleave(int16_t *out, Vector a, Vector b, Vector c, Vector d) {
  Vector ab_low = wasm_i32x4_shuffle(a, b, 0, 4, 1, 5), ab_high = wasm_i32x4_shuffle(a, b, 2, 6, 3, 7);
  Vector cd_low = wasm_i32x4_shuffle(c, d, 0, 4, 1, 5), cd_high = wasm_i32x4_shuffle(c, d, 2, 6, 3, 7);
  store(out, wasm_i64x2_shuffle(ab_low, cd_low, 0, 2));
  store(out + 8, wasm_i64x2_shuffle(ab_low, cd_low, 1, 3));
  store(out + 16, wasm_i64x2_shuffle(ab_high, cd_high, 0, 2));
  store(out + 24, wasm_i64x2_shuffle(ab_high, cd_high, 1, 3));
}

/* Interleaves four rows of `count` values, `stride` values apart: [count / 2][4 rows][2]. `count` has whole vectors. */
INLINE void interleave_rows(const int16_t *rows, int stride, int count, int16_t *out) {
  for (int i = 0; i < count; i += 8, out += 8 * COLUMNS)
    interleave(out, load(rows + i), load(rows + stride + i), load(rows + 2 * stride + i), load(rows + 3 * stride + i));
}

/* What becomes of four sums: sums * scale + offset. */
INLINE Vector scaled(Vector sums, const float *scale, const float *offset) {
  return add(multiply(to_float(sums), load(scale)), load(offset));
}

#endif
