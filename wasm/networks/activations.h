/* Hyperbolic tangent and sigmoid of the recurrent layers. Licence: MIT, as the rest of rollcall. */
#ifndef ROLLCALL_ACTIVATIONS_H
#define ROLLCALL_ACTIVATIONS_H

#include "simd.h"

/* Within 1.2e-6, and never above 1: a rational minimax approximation for |x| <= 7, clamped beyond that. */
INLINE Vector hyperbolic_tangent(Vector x) {
  x = clamp(x, splat(-7.0f), splat(7.0f));
  Vector t = multiply(x, x);
  Vector above = add(multiply(t, splat(3.93002945e-06f)), splat(0.00227699279f));
  above = add(multiply(t, above), splat(0.123021874f));
  above = multiply(x, add(multiply(t, above), splat(0.999995687f)));
  Vector below = add(multiply(t, splat(0.000142351249f)), splat(0.0210721984f));
  below = add(multiply(t, below), splat(0.45634036f));
  return wasm_f32x4_div(above, add(multiply(t, below), splat(1.0f)));
}

/* The sigmoid of twice x. */
INLINE Vector sigmoid_of_double(Vector x) {
  return add(multiply(hyperbolic_tangent(x), splat(0.5f)), splat(0.5f));
}

#endif
