/*
 * libswresample's filter where the output rate is a whole multiple of the input's, four outputs at a time.
 *
 * Opus decodes speech at 8 to 16 kHz and resamples it to 48 kHz; in scalar C that filter takes a fifth of the decoder's
 * time. The linker replaces the function (--wrap), so that libswresample itself is unmodified. Outputs that are a whole
 * input sample apart have the same coefficients: they are summed in parallel, each in the order of the scalar loop, so
 * that the bits are the same.
 *
 * Licence: MIT, as the rest of rollcall.
 */
#include <wasm_simd128.h>

#include "libswresample/resample.h"

#define LANES 4

static int (*scalar_filter)(ResampleContext *, void *, const void *, int, int);

void __real_swri_resample_dsp_init(ResampleContext *context);

static int whole_filter(ResampleContext *context, void *dest, const void *source, int count, int update) {
  int phases = context->phase_count, begun = context->index;
  /* The phase advances by one with each output if the output rate is `phases` times the input rate. */
  int is_whole = context->dst_incr_div == 1 && context->dst_incr_mod == 0 && context->frac == 0 && begun < phases;
  int together = is_whole ? count / (LANES * phases) * (LANES * phases) : 0;
  const float *in = source;
  float *out = dest;
  for (int i = 0; i < together;) {
    const float *row = (const float *)context->filter_bank + context->filter_alloc * context->index;
    v128_t even = wasm_f32x4_splat(0), odd = even;
    int k = 0;
    for (; k + 1 < context->filter_length; k += 2) {
      even = wasm_f32x4_add(even, wasm_f32x4_mul(wasm_v128_load(in + k), wasm_f32x4_splat(row[k])));
      odd = wasm_f32x4_add(odd, wasm_f32x4_mul(wasm_v128_load(in + k + 1), wasm_f32x4_splat(row[k + 1])));
    }
    if (k < context->filter_length) {
      even = wasm_f32x4_add(even, wasm_f32x4_mul(wasm_v128_load(in + k), wasm_f32x4_splat(row[k])));
    }
    v128_t sum = wasm_f32x4_add(even, odd);
    out[i] = wasm_f32x4_extract_lane(sum, 0);
    out[i + phases] = wasm_f32x4_extract_lane(sum, 1);
    out[i + 2 * phases] = wasm_f32x4_extract_lane(sum, 2);
    out[i + 3 * phases] = wasm_f32x4_extract_lane(sum, 3);
    if (++context->index == phases) {
      context->index = 0;
      in++;
    }
    /* Skips the outputs that the other lanes have made. */
    if (++i % phases == 0) {
      i += (LANES - 1) * phases;
      in += LANES - 1;
    }
  }
  int used = (int)(in - (const float *)source);
  used += scalar_filter(context, out + together, in, count - together, update);
  if (!update) context->index = begun;
  return used;
}

void __wrap_swri_resample_dsp_init(ResampleContext *context) {
  __real_swri_resample_dsp_init(context);
  if (context->format != AV_SAMPLE_FMT_FLTP) return;
  scalar_filter = context->dsp.resample_common;
  context->dsp.resample_common = whole_filter;
}
