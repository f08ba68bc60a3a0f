/*
 * One direction of a bidirectional GRU layer (Cho et al., 2014; the reset gate after the product, as in cuDNN). The
 * scales of the sigmoid gates contain the half of their argument, see activations.h.
 */
#include "activations.h"
#include "segmentation_v8.h"

#define GROUP_UNITS 4
#define GROUP_ROWS (GROUP_UNITS * GATES)
#define PRODUCT_GROUPS 2
#define PRODUCT_SUMS (PRODUCT_GROUPS * GATES)

static float hidden[UNITS] ALIGNED;
static int16_t rounded_hidden[2][UNITS] ALIGNED;

/* Adds the 24 rows of two groups times the hidden values. rows [32 pairs][24][2] */
INLINE void add_recurrent_product(const int16_t *rows, const int16_t *values, Vector sums[PRODUCT_SUMS]) {
  const int16_t *end = values + UNITS;
#pragma clang loop unroll(disable)
  do {
    Vector pair = wasm_v128_load32_splat(values);
    for (int i = 0; i < PRODUCT_SUMS; i++) sums[i] = add_product(sums[i], load(rows + i * GROUP_UNITS * PAIR), pair);
    values += PAIR;
    rows += PRODUCT_GROUPS * GROUP_ROWS * PAIR;
  } while (values != end);
}

/* Four units of one frame from the sums of their update, reset and new gates. */
INLINE void compute_units(const Vector sums[GATES], const float *scale, const float *bias, const float *projection,
                          float *state, int16_t *rounded, float *stream) {
  Vector update = sigmoid_of_double(scaled(sums[0], scale, projection));
  Vector reset = sigmoid_of_double(scaled(sums[1], scale + GROUP_UNITS, projection + GROUP_UNITS));
  Vector recurrent = multiply(reset, scaled(sums[2], scale + 2 * GROUP_UNITS, bias));
  Vector new = hyperbolic_tangent(add(load(projection + 2 * GROUP_UNITS), recurrent));
  Vector value = add(new, multiply(update, wasm_f32x4_sub(load(state), new)));
  store(state, value);
  store(stream, add(load(stream), value));
  Vector integers = round_to_integers(multiply(value, splat(LARGEST)));
  wasm_v128_store64_lane(rounded, wasm_i16x8_narrow_i32x4(integers, integers), 0);
}

static HOT void compute_frame(const GruWeights *weights, int direction, const float *projection,
                              const int16_t *previous, int16_t *next, float *stream) {
  const int16_t *recurrent = weights->recurrent[direction];
  const float *scale = weights->scale[direction], *bias = weights->bias[direction];
  for (int unit = 0; unit < UNITS; unit += PRODUCT_GROUPS * GROUP_UNITS) {
    Vector sums[PRODUCT_SUMS];
    for (int i = 0; i < PRODUCT_SUMS; i++) sums[i] = wasm_i32x4_const_splat(0);
    add_recurrent_product(recurrent + unit * GATES * UNITS, previous, sums);
    for (int group = 0; group < PRODUCT_GROUPS; group++) {
      const int first = unit + group * GROUP_UNITS, row = first * GATES;
      compute_units(sums + group * GATES, scale + row, bias + first, projection + row, hidden + first, next + first,
                    stream + first);
    }
  }
}

void gru_direction(const GruWeights *weights, int direction, const float *projections, int frames, float *stream) {
  __builtin_memset(hidden, 0, sizeof hidden);
  fill_zeros(rounded_hidden[0], UNITS);
  for (int i = 0; i < frames; i++) {
    const int frame = direction ? frames - 1 - i : i;
    compute_frame(weights, direction, projections + (frame * DIRECTIONS + direction) * GRU_ROWS, rounded_hidden[i % 2],
                  rounded_hidden[(i + 1) % 2], stream + frame * WIDTH + direction * UNITS);
  }
}
