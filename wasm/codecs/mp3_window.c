/*
 * The windowing of MPEG audio's polyphase synthesis, four output samples at a time.
 *
 * libavcodec has this loop in scalar C, and in assembler for other machines; it takes a quarter of the time of an MP3.
 * The linker replaces the function (--wrap), so that libavcodec itself is unmodified. Every sample is summed in the
 * order of the scalar loop, so that the bits are the same.
 *
 * Method: ISO/IEC 11172-3, annex 3-B, "Build 512 values vector U; window by 512 coefficients; calculate 32 samples".
 * `window` is libavcodec's: 512 coefficients with their signs.
 *
 * Licence: MIT, as the rest of rollcall.
 */
#include <stddef.h>
#include <string.h>
#include <wasm_simd128.h>

#define SUBBANDS 32
#define HISTORY 512
#define ROW 64
#define ROWS 8

void __real_ff_mpadsp_apply_window_float(float *history, float *window, int *dither, float *samples, ptrdiff_t step);

/* The four floats at `p`, last first. */
static inline v128_t load_reversed(const float *p) {
  v128_t v = wasm_v128_load(p);
  return wasm_i32x4_shuffle(v, v, 3, 2, 1, 0);
}

static inline v128_t add_product(v128_t sum, v128_t a, v128_t b) { return wasm_f32x4_add(sum, wasm_f32x4_mul(a, b)); }

static inline v128_t subtract_product(v128_t sum, v128_t a, v128_t b) {
  return wasm_f32x4_sub(sum, wasm_f32x4_mul(a, b));
}

/*
 * history: 512 values and space for 32 more, in the order of libavcodec's ring buffer; window [512]; samples: 32,
 * `step` apart. Sample j (0..15) and sample 32 - j use the same history: values 16 + j and 48 - j of every row of 64.
 */
void __wrap_ff_mpadsp_apply_window_float(float *history, float *window, int *dither, float *samples, ptrdiff_t step) {
  if (step != 1) {
    __real_ff_mpadsp_apply_window_float(history, window, dither, samples, step);
    return;
  }
  memcpy(history + HISTORY, history, SUBBANDS * sizeof(*history));
  for (int j = 0; j < 16; j += 4) {
    const float *after = history + 16 + j, *before = history + 48 - j - 3;
    v128_t early = wasm_f32x4_splat(0), late = early;
    for (int k = 0; k < ROWS * ROW; k += ROW) {
      v128_t value = wasm_v128_load(after + k);
      early = add_product(early, wasm_v128_load(window + j + k), value);
      late = subtract_product(late, load_reversed(window + 32 - j - 3 + k), value);
    }
    for (int k = 0; k < ROWS * ROW; k += ROW) {
      v128_t value = load_reversed(before + k);
      early = subtract_product(early, wasm_v128_load(window + 32 + j + k), value);
      late = subtract_product(late, load_reversed(window + 64 - j - 3 + k), value);
    }
    wasm_v128_store(samples + j, early);
    v128_t turned = wasm_i32x4_shuffle(late, late, 3, 2, 1, 0);
    if (j > 0) {
      wasm_v128_store(samples + 32 - j - 3, turned);
    } else { /* there is no sample 32 */
      samples[29] = wasm_f32x4_extract_lane(turned, 0);
      samples[30] = wasm_f32x4_extract_lane(turned, 1);
      samples[31] = wasm_f32x4_extract_lane(turned, 2);
    }
  }
  float middle = 0;
  for (int k = 0; k < ROWS * ROW; k += ROW) middle -= window[48 + k] * history[32 + k];
  samples[16] = middle;
}
