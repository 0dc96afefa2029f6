// Narrow floats of Nacre's own files: bf16 (f32's range, 8 bits of precision) and f16 (IEEE half).
#pragma once

#include <cstdint>
#include <string_view>

#include "nacre/data/native_layout.h"

namespace nacre::native {

bool is_float(Element element);
std::string_view float_name(Element element);  // "f32", "bf16", "f16"
Element parse_float(std::string_view name);    // throws UserError naming --feature-dtype

float widen(Element element, uint16_t bits);
// Rounded to the nearest, ties to even; beyond f16's range infinity.
uint16_t narrow(Element element, float value);

// In parallel. `to` is f32; `from` holds `count` elements.
void widen(Element element, const void* from, float* to, int64_t count);
// The index of the first value that is finite as f32 but not as `element`, or -1.
int64_t narrow(Element element, const float* from, uint16_t* to, int64_t count);

}  // namespace nacre::native
