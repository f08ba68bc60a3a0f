/*
 * Self-attention, head by head. For four queries at once: products with all keys, softmax, products of the weights and
 * all values. The weights of a query are 16-bit integers with a sum of LARGEST.
 */
#include "segmentation_v8.h"

#define MAX_KEYS ((MAX_FRAMES + 7) / 8 * 8)

static int16_t keys[MAX_KEYS * HEAD_WIDTH] ALIGNED;   /* [keys / 8][dimensions / 2][8 keys][2] */
static int16_t values[HEAD_WIDTH * MAX_KEYS] ALIGNED; /* [dimensions / 8][keys / 2][8 dimensions][2] */
static int16_t queries[COLUMNS * HEAD_WIDTH] ALIGNED;
static float scores[COLUMNS * MAX_KEYS] ALIGNED;
static int16_t shares[COLUMNS * MAX_KEYS] ALIGNED, share_columns[COLUMNS * MAX_KEYS] ALIGNED;

/* Two to the power of x, for x of at most 0, within 4e-6 of the value. */
INLINE Vector power_of_two(Vector x) {
  x = wasm_f32x4_pmax(x, splat(-126.0f));
  Vector whole = round_to_integers(x);
  Vector part = wasm_f32x4_sub(x, to_float(whole));
  Vector value = add(multiply(part, splat(0.00966636852f)), splat(0.0559219758f));
  value = add(multiply(part, value), splat(0.24022349f));
  value = add(multiply(part, value), splat(0.693121045f));
  value = add(multiply(part, value), splat(1.0f));
  return wasm_i32x4_add(value, wasm_i32x4_shl(whole, 23));
}

/* Eight keys of a head, from their frames. */
static HOT void gather_keys(const int16_t *frames, int16_t *out) {
  for (int half = 0; half < 2; half++)
    for (int dimension = 0; dimension < HEAD_WIDTH; dimension += 8) {
      const int16_t *from = frames + half * 4 * QKV + dimension;
      int16_t block[4 * 4 * PAIR] ALIGNED;
      interleave(block, load(from), load(from + QKV), load(from + 2 * QKV), load(from + 3 * QKV));
      for (int pair = 0; pair < 4; pair++)
        store(out + (dimension / PAIR + pair) * 8 * PAIR + half * 4 * PAIR, load(block + pair * 4 * PAIR));
    }
}

/* Eight dimensions of the values, two frames at a time. */
static HOT void gather_values(const int16_t *from, int padded_frames, int16_t *out) {
  for (int frame = 0; frame < padded_frames; frame += 2, from += 2 * QKV, out += 16) {
    Vector first = load(from), second = load(from + QKV);
    store(out, wasm_i16x8_shuffle(first, second, 0, 8, 1, 9, 2, 10, 3, 11));
    store(out + 8, wasm_i16x8_shuffle(first, second, 4, 12, 5, 13, 6, 14, 7, 15));
  }
}

/* The four queries' products with all keys. */
static HOT void score(float unit, int padded_frames) {
  for (int key = 0; key < padded_frames; key += 8) {
    Sums8x4 sums;
    clear_8x4(sums);
    add_product_8x4(keys + key * HEAD_WIDTH, queries, HEAD_WIDTH / PAIR, sums);
    for (int i = 0; i < COLUMNS; i++) {
      store(scores + i * MAX_KEYS + key, multiply(to_float(sums[0][i]), splat(unit)));
      store(scores + i * MAX_KEYS + key + 4, multiply(to_float(sums[1][i]), splat(unit)));
    }
  }
}

/* Scores of a query -> its shares, those of the frames after the end 0. */
static HOT void softmax(float *row, int frames, int padded_frames, int16_t *out) {
  for (int i = frames; i < padded_frames; i++) row[i] = -1e30f;
  Vector largest = load(row), sum = splat(0.0f), sum1 = sum;
  for (int i = 4; i < padded_frames; i += 4) largest = wasm_f32x4_pmax(largest, load(row + i));
  largest = wasm_f32x4_pmax(largest, wasm_i32x4_shuffle(largest, largest, 2, 3, 0, 1));
  largest = wasm_f32x4_pmax(largest, wasm_i32x4_shuffle(largest, largest, 1, 0, 3, 2));
  for (int i = 0; i < padded_frames; i += 8) {
    Vector low = power_of_two(wasm_f32x4_sub(load(row + i), largest));
    Vector high = power_of_two(wasm_f32x4_sub(load(row + i + 4), largest));
    store(row + i, low);
    store(row + i + 4, high);
    sum = add(sum, low);
    sum1 = add(sum1, high);
  }
  sum = add(sum, sum1);
  sum = add(sum, wasm_i32x4_shuffle(sum, sum, 2, 3, 0, 1));
  sum = add(sum, wasm_i32x4_shuffle(sum, sum, 1, 0, 3, 2));
  const Vector scale = wasm_f32x4_div(splat(LARGEST), sum);
  for (int i = 0; i < padded_frames; i += 8)
    store(out + i, round_to_16_bits(multiply(load(row + i), scale), multiply(load(row + i + 4), scale)));
}

/* Eight dimensions of the four queries' outputs. */
static HOT void mix(const int16_t *from, int padded_frames, int16_t *out) {
  Sums8x4 sums;
  clear_8x4(sums);
  add_product_8x4(from, share_columns, padded_frames / PAIR, sums);
  const Vector scale = splat(1.0f / LARGEST);
  for (int i = 0; i < COLUMNS; i++)
    store(out + i * WIDTH,
          round_to_16_bits(multiply(to_float(sums[0][i]), scale), multiply(to_float(sums[1][i]), scale)));
}

void attend(const int16_t *qkv, const float *score_unit, int frames, int16_t *out) {
  const int padded_frames = (frames + 7) / 8 * 8;
  for (int head = 0; head < HEADS; head++) {
    const int16_t *query = qkv + head * HEAD_WIDTH, *key = query + WIDTH, *value = query + 2 * WIDTH;
    for (int frame = 0; frame < padded_frames; frame += 8)
      gather_keys(key + frame * QKV, keys + frame * HEAD_WIDTH);
    for (int dimension = 0; dimension < HEAD_WIDTH; dimension += 8)
      gather_values(value + dimension, padded_frames, values + dimension * padded_frames);
    for (int frame = 0; frame < frames; frame += COLUMNS) {
      interleave_rows(query + frame * QKV, QKV, HEAD_WIDTH, queries);
      score(score_unit[head], padded_frames);
      for (int i = 0; i < COLUMNS; i++)
        softmax(scores + i * MAX_KEYS, frames, padded_frames, shares + i * MAX_KEYS);
      interleave_rows(shares, MAX_KEYS, padded_frames, share_columns);
      for (int dimension = 0; dimension < HEAD_WIDTH; dimension += 8)
        mix(values + dimension * padded_frames, padded_frames, out + frame * WIDTH + head * HEAD_WIDTH + dimension);
    }
  }
}
