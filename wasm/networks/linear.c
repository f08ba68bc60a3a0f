/* Products of frames and weights: linear layers, and convolutions over neighbouring frames. */
#include "segmentation_v8.h"

#define CHUNK 32

static int16_t chunk_columns[CHUNK * MAX_INPUTS] ALIGNED;

/* Puts the inputs of a chunk's frames side by side in groups of four. */
static HOT void gather_columns(Rows in, int inputs, int frames) {
  for (int frame = 0; frame < frames; frame += COLUMNS)
    interleave_rows(in.values + frame * in.stride, in.stride, inputs, chunk_columns + frame * inputs);
}

INLINE void finish(Vector low, Vector high, Ending ending, void *out) {
  if (ending & RELU) low = relu(low), high = relu(high);
  if (ending & INTEGERS) {
    store(out, round_to_16_bits(low, high));
    return;
  }
  float *values = out;
  if (ending & ADD) low = add(low, load(values)), high = add(high, load(values + 4));
  store(values, low);
  store(values + 4, high);
}

/* Eight outputs of the frames in `chunk_columns`; `stride` bytes from one frame of the output to the next. */
static HOT void output_rows(const Linear *layer, int tile, float unit, int frames, Ending ending, char *out,
                            int stride) {
  const int16_t *rows = layer->rows + tile * 8 * layer->inputs, *columns = chunk_columns;
  const float *offset = layer->offset + 8 * tile;
  const Vector low_scale = multiply(load(layer->scale + 8 * tile), splat(unit));
  const Vector high_scale = multiply(load(layer->scale + 8 * tile + 4), splat(unit));
  for (int frame = 0; frame < frames; frame += COLUMNS, columns += COLUMNS * layer->inputs) {
    Sums8x4 sums;
    clear_8x4(sums);
    add_product_8x4(rows, columns, layer->inputs / PAIR, sums);
    for (int i = 0; i < COLUMNS; i++, out += stride) {
      Vector low = add(multiply(to_float(sums[0][i]), low_scale), load(offset));
      Vector high = add(multiply(to_float(sums[1][i]), high_scale), load(offset + 4));
      finish(low, high, ending, out);
    }
  }
}

void linear(const Linear *layer, Rows in, int frames, Ending ending, void *out) {
  const int size = ending & INTEGERS ? sizeof(int16_t) : sizeof(float), stride = size * layer->outputs;
  for (int done = 0; done < frames; done += CHUNK) {
    const int count = frames - done < CHUNK ? frames - done : CHUNK;
    gather_columns((Rows){in.values + done * in.stride, in.stride, in.unit}, layer->inputs, count);
    for (int tile = 0; tile < layer->outputs / 8; tile++)
      output_rows(layer, tile, in.unit, count, ending, (char *)out + done * stride + tile * 8 * size, stride);
  }
}

#define BLOCK 256

static HOT Vector largest_of(const float *values, int count, Vector largest) {
  for (int i = 0; i < count; i += 8) {
    largest = wasm_f32x4_pmax(largest, load(values + i));
    largest = wasm_f32x4_pmax(largest, load(values + i + 4));
  }
  return largest;
}

static HOT void quantise_block(const float *values, int count, float scale, int16_t *out) {
  for (int i = 0; i < count; i += 8)
    store(out + i, round_to_16_bits(multiply(relu(load(values + i)), splat(scale)),
                                    multiply(relu(load(values + i + 4)), splat(scale))));
}

float quantise(const float *values, int count, int16_t *out) {
  Vector largest = splat(1e-6f);
  for (int i = 0; i < count; i += BLOCK) largest = largest_of(values + i, count - i < BLOCK ? count - i : BLOCK, largest);
  float limit = wasm_f32x4_extract_lane(largest, 0), lanes[4] ALIGNED;
  store(lanes, largest);
  for (int i = 1; i < 4; i++) limit = lanes[i] > limit ? lanes[i] : limit;
  for (int i = 0; i < count; i += BLOCK)
    quantise_block(values + i, count - i < BLOCK ? count - i : BLOCK, BALANCED_LIMIT / limit, out + i);
  return limit / BALANCED_LIMIT;
}
