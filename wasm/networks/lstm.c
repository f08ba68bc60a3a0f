/*
 * One direction of a bidirectional LSTM layer (Hochreiter and Schmidhuber, 1997). The products with the layer's input
 * do not depend on each other and are computed for a chunk of frames at once. Those with the hidden values of the
 * previous frame follow frame by frame.
 *
 * Rows are ordered such that the four gates of four units are together, see Direction. A sigmoid is a hyperbolic
 * tangent: s(x) = t(x / 2) / 2 + 1 / 2. The scales of the sigmoid gates contain the half of x.
 */
#include "activations.h"
#include "segmentation.h"

#define CHUNK 32
#define GROUP_UNITS 4
#define GROUP_ROWS (GROUP_UNITS * GATES)
#define GROUPS (UNITS / GROUP_UNITS)
#define ROWS (UNITS * GATES)
#define PRODUCT_GROUPS 2 /* eight vectors of sums */

static float projections[CHUNK * ROWS] ALIGNED; /* [frame][group][gate][unit] */
static int16_t chunk_columns[CHUNK * HIDDEN] ALIGNED;
static float cells[UNITS] ALIGNED;
static const int16_t initial_hidden[UNITS] ALIGNED;

/* Eight rows of the projections of `frames` frames, rounded up to four, from `chunk_columns`. */
static HOT void project_rows(const Direction *weights, int tile, int frames) {
  const int inputs = weights->inputs;
  const int16_t *rows = weights->projection + tile * 8 * inputs, *columns = chunk_columns;
  const float *scale = weights->projection_scale + 8 * tile, *bias = weights->bias + 8 * tile;
  float *out = projections + 8 * tile;
  for (int frame = 0; frame < frames; frame += COLUMNS, columns += COLUMNS * inputs) {
    Sums8x4 sums;
    clear_8x4(sums);
    add_product_8x4(rows, columns, inputs / PAIR, sums);
    for (int i = 0; i < COLUMNS; i++, out += ROWS)
      for (int half = 0; half < 2; half++)
        store(out + 4 * half, scaled(sums[half][i], scale + 4 * half, bias + 4 * half));
  }
}

/* Puts the inputs of a chunk's frames side by side in groups of four. */
static HOT void gather_columns(const int16_t *in, int stride, int inputs, int frames) {
  for (int frame = 0; frame < frames; frame += COLUMNS)
    interleave_rows(in + frame * stride, stride, inputs, chunk_columns + frame * inputs);
}

/* Adds the 32 rows of two groups times the hidden values of one frame. rows [64 pairs][32][2] */
INLINE void add_recurrent_product(const int16_t *rows, const int16_t *hidden, Vector sums[PRODUCT_GROUPS * GATES]) {
  const int16_t *end = hidden + UNITS;
#pragma clang loop unroll(disable)
  do {
    Vector values = wasm_v128_load32_splat(hidden);
    for (int i = 0; i < PRODUCT_GROUPS * GATES; i++)
      sums[i] = add_product(sums[i], load(rows + i * GROUP_UNITS * PAIR), values);
    hidden += PAIR;
    rows += PRODUCT_GROUPS * GROUP_ROWS * PAIR;
  } while (hidden != end);
}

/* Four units of one frame: hidden values from the sums of their gates; updates their cells. */
INLINE void compute_units(const Vector sums[GATES], const float *scale, const float *projection, float *cell,
                          int16_t *hidden) {
  Vector gates[GATES];
  for (int gate = 0; gate < GATES; gate++)
    gates[gate] = scaled(sums[gate], scale + GROUP_UNITS * gate, projection + GROUP_UNITS * gate);
  Vector in = sigmoid_of_double(gates[0]), out = sigmoid_of_double(gates[1]), forget = sigmoid_of_double(gates[2]);
  Vector state = add(multiply(forget, load(cell)), multiply(in, hyperbolic_tangent(gates[3])));
  store(cell, state);
  Vector value = round_to_integers(multiply(multiply(out, hyperbolic_tangent(state)), splat(LARGEST)));
  wasm_v128_store64_lane(hidden, wasm_i16x8_narrow_i32x4(value, value), 0);
}

/* One frame: hidden values [UNITS] from those of the previous frame. */
static HOT void compute_frame(const Direction *weights, const float *projection, const int16_t *previous,
                              int16_t *hidden) {
  for (int group = 0; group < GROUPS; group += PRODUCT_GROUPS) {
    Vector sums[PRODUCT_GROUPS * GATES];
    for (int i = 0; i < PRODUCT_GROUPS * GATES; i++) sums[i] = wasm_i32x4_const_splat(0);
    add_recurrent_product(weights->recurrent + group * GROUP_ROWS * UNITS, previous, sums);
    for (int i = 0; i < PRODUCT_GROUPS; i++) {
      const int row = (group + i) * GROUP_ROWS, unit = (group + i) * GROUP_UNITS;
      compute_units(sums + i * GATES, weights->recurrent_scale + row, projection + row, cells + unit, hidden + unit);
    }
  }
}

/* One direction of a layer: `in` [frames, stride] -> its half of `out` [frames, HIDDEN]. */
void lstm_direction(const Direction *weights, int direction, const int16_t *in, int stride, int frames, int16_t *out) {
  const int16_t *previous = initial_hidden;
  __builtin_memset(cells, 0, sizeof cells);
  for (int done = 0; done < frames; done += CHUNK) {
    const int count = frames - done < CHUNK ? frames - done : CHUNK;
    const int first = direction ? frames - done - count : done;
    gather_columns(in + first * stride, stride, weights->inputs, count);
    for (int tile = 0; tile < ROWS / 8; tile++) project_rows(weights, tile, count);
    for (int i = 0; i < count; i++) {
      const int frame = direction ? count - 1 - i : i;
      int16_t *hidden = out + (first + frame) * HIDDEN + direction * UNITS;
      compute_frame(weights, projections + frame * ROWS, previous, hidden);
      previous = hidden;
    }
  }
}
