/* Shared by the parts of dsp.wasm: exports, memory, four-lane vectors. Licence: MIT, as the rest of rollcall. */
#ifndef ROLLCALL_DSP_H
#define ROLLCALL_DSP_H

#include <stdint.h>
#include <stdlib.h>
#include <wasm_simd128.h>

#define EXPORT(name) __attribute__((visibility("default"), export_name(#name)))

#define PI 3.14159265358979323846

#endif
