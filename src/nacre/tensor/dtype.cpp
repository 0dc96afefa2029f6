#include "nacre/tensor/dtype.h"

#include "nacre/base/error.h"

namespace nacre {

std::string_view dtype_name(DType t) {
  switch (t) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::u8:
      return "u8";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
  }
  return "?";
}

DType parse_dtype(std::string_view name) {
  for (const DType t : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::u8, DType::i32, DType::i64}) {
    if (dtype_name(t) == name) return t;
  }
  throw UserError("dtype", "unknown element type '" + std::string(name) + "'",
                  "use f32, f64, bf16, f16, u8, i32 or i64");
}

}  // namespace nacre
