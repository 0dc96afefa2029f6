// Converts floats of 16 bits: bf16 (the range of f32, 8 bits of precision) and f16 (IEEE half).
#pragma once

#include <cstdint>

#include "nacre/tensor/dtype.h"

namespace nacre {

// Returns whether elements of this type are floats of 16 bits.
constexpr bool is_narrow_float(DType type) { return type == DType::bf16 || type == DType::f16; }

// In all functions below, `type` is bf16 or f16.
float widen(DType type, uint16_t bits);
// Returns the number of type `type` that is nearest to `value`; of two that are equally near, the
// one whose last bit is 0. Values beyond the range of f16 become infinite.
uint16_t narrow(DType type, float value);
// Widens `count` elements to f32 on the calling thread.
void widen(DType type, const uint16_t* from, float* to, int64_t count);
// Narrows `count` values with all threads. Returns the index of the first value that is finite as
// f32 but not as `type`, or -1 if there is none.
int64_t narrow(DType type, const float* from, uint16_t* to, int64_t count);

}  // namespace nacre
