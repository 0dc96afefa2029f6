// Names the element types of tensors and of files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nacre {

enum class DType : uint8_t { f32, f64, bf16, f16, u8, i32, i64 };

constexpr int64_t dtype_size(DType t) {
  switch (t) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

std::string_view dtype_name(DType t);      // returns for example "f32"
DType parse_dtype(std::string_view name);  // throws UserError

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::i64;
};

}  // namespace nacre
