// Narrow floats in Nacre's own files: bf16 (the range of f32, 8 bits of precision) and f16 (IEEE
// half).
#pragma once

#include <cstdint>
#include <string_view>

#include "nacre/data/native_layout.h"

namespace nacre::native {

bool is_float(Element element);
std::string_view float_name(Element element);  // returns "f32", "bf16" or "f16"
Element parse_float(std::string_view name);    // throws UserError naming --feature-dtype

float widen(Element element, uint16_t bits);
// Returns the number of type `element` that is nearest to `value`; of two that are equally near,
// the one whose last bit is 0. Values beyond the range of f16 become infinite.
uint16_t narrow(Element element, float value);

// Widens `count` elements to f32 in parallel.
void widen(Element element, const void* from, float* to, int64_t count);
// Narrows `count` values. Returns the index of the first value that is finite as f32 but not as
// `element`, or -1.
int64_t narrow(Element element, const float* from, uint16_t* to, int64_t count);

}  // namespace nacre::native
