/* Shared by the networks' kernels: exports, four-lane vectors, rounding. Licence: MIT, as the rest of rollcall. */
#ifndef ROLLCALL_SIMD_H
#define ROLLCALL_SIMD_H

#include <stdint.h>
#include <wasm_simd128.h>

#define EXPORT(name) __attribute__((visibility("default"), export_name(#name)))
#define INLINE static inline __attribute__((always_inline))
/*
 * For loops that take most of the time. V8 replaces baseline by optimised code only between two calls of a function, so
 * that a hot loop must be in a function of its own that is called often.
 */
#define HOT __attribute__((noinline))
#define ALIGNED __attribute__((aligned(16)))

typedef v128_t Vector;

INLINE Vector load(const void *from) { return wasm_v128_load(from); }
INLINE void store(void *to, Vector value) { wasm_v128_store(to, value); }
INLINE Vector splat(float value) { return wasm_f32x4_splat(value); }
INLINE Vector add(Vector a, Vector b) { return wasm_f32x4_add(a, b); }
INLINE Vector multiply(Vector a, Vector b) { return wasm_f32x4_mul(a, b); }
INLINE Vector to_float(Vector integers) { return wasm_f32x4_convert_i32x4(integers); }

INLINE Vector clamp(Vector value, Vector low, Vector high) {
  return wasm_f32x4_pmin(wasm_f32x4_pmax(value, low), high);
}

/*
 * The nearest integers, ties to even, of floats within +-2^22. Adding 1.5 * 2^23 leaves no fraction bits; the integer
 * is then the difference of the bit patterns. Two instructions, where rounding and conversion take a dozen.
 */
INLINE Vector round_to_integers(Vector value) {
  const float magic = 12582912.0f;
  return wasm_i32x4_sub(add(value, splat(magic)), splat(magic));
}

/* Eight 16-bit integers, rounded from floats within the range of 16 bits. */
INLINE Vector round_to_16_bits(Vector low, Vector high) {
  return wasm_i16x8_narrow_i32x4(round_to_integers(low), round_to_integers(high));
}

INLINE void fill_zeros(int16_t *values, int count) { __builtin_memset(values, 0, (unsigned)count * sizeof *values); }

#endif
