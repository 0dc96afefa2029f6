#include "nacre/tensor/feature_types.h"

#include "nacre/base/error.h"

namespace nacre {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};

}  // namespace

std::vector<std::string> feature_type_names() {
  std::vector<std::string> names;
  for (const DType type : kTypes) names.emplace_back(dtype_name(type));
  return names;
}

DType parse_feature_type(const std::string& option, std::string_view name) {
  for (const DType type : kTypes) {
    if (dtype_name(type) == name) return type;
  }
  throw UserError(option, "unknown type '" + std::string(name) + "'", "choose " + listed(feature_type_names()));
}

std::vector<Synonym> float_synonyms() {
  return {{"float32", "f32"}, {"fp32", "f32"}, {"bfloat16", "bf16"}, {"float16", "f16"}, {"fp16", "f16"}};
}

}  // namespace nacre
