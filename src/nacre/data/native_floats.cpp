#include "nacre/data/native_floats.h"

#include <cstring>
#include <string>

#include "nacre/base/parallel.h"
#include "nacre/tensor/feature_types.h"
#include "nacre/tensor/narrow_floats.h"

namespace nacre::native {
namespace {

constexpr int64_t kFloatChunk = 1 << 18;

DType type_of(Element element) { return element == Element::f16 ? DType::f16 : DType::bf16; }

}  // namespace

bool is_float(Element element) {
  return element == Element::f32 || element == Element::bf16 || element == Element::f16;
}

std::string_view float_name(Element element) {
  return element == Element::bf16 ? "bf16" : element == Element::f16 ? "f16" : "f32";
}

Element parse_float(std::string_view name) {
  const DType type = parse_feature_type("--feature-dtype", name);
  return type == DType::bf16 ? Element::bf16 : type == DType::f16 ? Element::f16 : Element::f32;
}

float widen(Element element, uint16_t bits) { return nacre::widen(type_of(element), bits); }

uint16_t narrow(Element element, float value) { return nacre::narrow(type_of(element), value); }

void widen(Element element, const void* from, float* to, int64_t count) {
  parallel_for(count, kFloatChunk, [&](int64_t b, int64_t e) {
    if (element == Element::f32) {
      std::memcpy(to + b, static_cast<const float*>(from) + b, static_cast<size_t>(e - b) * sizeof(float));
    } else {
      nacre::widen(type_of(element), static_cast<const uint16_t*>(from) + b, to + b, e - b);
    }
  });
}

int64_t narrow(Element element, const float* from, uint16_t* to, int64_t count) {
  return nacre::narrow(type_of(element), from, to, count);
}

}  // namespace nacre::native
