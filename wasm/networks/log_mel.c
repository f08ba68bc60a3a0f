/* Mel powers of a window -> the network's features: frontend.log_features in training/segmentation. */
#include "segmentation_v8.h"

#define POWER_FLOOR 1e-7f
#define FEATURE_SCALE 0.4f

/* The natural logarithm of positive normal numbers: of the mantissa 2 artanh((m - 1) / (m + 1)), within 1e-8. */
INLINE Vector logarithm(Vector x) {
  const Vector offset = wasm_i32x4_const_splat(0x3f3504f3); /* bits of the square root of 1 / 2 */
  Vector exponent = wasm_i32x4_shr(wasm_i32x4_sub(x, offset), 23);
  Vector mantissa = wasm_i32x4_sub(x, wasm_i32x4_shl(exponent, 23));
  Vector t = wasm_f32x4_div(wasm_f32x4_sub(mantissa, splat(1.0f)), add(mantissa, splat(1.0f)));
  Vector square = multiply(t, t);
  Vector series = add(multiply(square, splat(2.0f / 9)), splat(2.0f / 7));
  series = add(multiply(square, series), splat(2.0f / 5));
  series = add(multiply(square, series), splat(2.0f / 3));
  series = add(multiply(square, series), splat(2.0f));
  return add(multiply(to_float(exponent), splat(0.693147181f)), multiply(t, series));
}

static HOT float frame_sum(const float *powers) {
  Vector sum = load(powers);
  for (int band = 4; band < BANDS; band += 4) sum = add(sum, load(powers + band));
  return wasm_f32x4_extract_lane(sum, 0) + wasm_f32x4_extract_lane(sum, 1) + wasm_f32x4_extract_lane(sum, 2) +
         wasm_f32x4_extract_lane(sum, 3);
}

static HOT void frame_logarithms(float *powers, float gain, float *sums) {
  for (int band = 0; band < BANDS; band += 4) {
    Vector value = logarithm(add(multiply(load(powers + band), splat(gain)), splat(POWER_FLOOR)));
    store(powers + band, value);
    store(sums + band, add(load(sums + band), value));
  }
}

static HOT void frame_features(const float *logarithms, const float *mean, int16_t *out) {
  const Vector scale = splat(FEATURE_SCALE * BALANCED_LIMIT / FEATURE_LIMIT);
  for (int band = 0; band < BANDS; band += 8) {
    Vector low = wasm_f32x4_sub(load(logarithms + band), load(mean + band));
    Vector high = wasm_f32x4_sub(load(logarithms + band + 4), load(mean + band + 4));
    store(out + band, round_to_16_bits(multiply(low, scale), multiply(high, scale)));
  }
}

void log_features(float *powers, int frames, int16_t *out) {
  float mean[BANDS] ALIGNED = {0};
  double sum = 0;
  for (int frame = 0; frame < frames; frame++) sum += frame_sum(powers + frame * BANDS);
  const float gain = 1 / ((float)(sum / (frames * BANDS)) + POWER_FLOOR);
  for (int frame = 0; frame < frames; frame++) frame_logarithms(powers + frame * BANDS, gain, mean);
  for (int band = 0; band < BANDS; band++) mean[band] /= (float)frames;
  for (int frame = 0; frame < frames; frame++) frame_features(powers + frame * BANDS, mean, out + frame * BANDS);
}
