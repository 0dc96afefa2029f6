#include "nacre/device/precision.h"

#include <algorithm>
#include <iterator>

#include "nacre/base/error.h"

namespace nacre {
namespace {

constexpr std::string_view kNames[] = {"f32", "tf32", "bf16"};  // names in the order of GemmType

}  // namespace

std::string_view precision_name(GemmType type) { return kNames[static_cast<size_t>(type)]; }

std::vector<std::string> precision_names() { return {std::begin(kNames), std::end(kNames)}; }

GemmType parse_precision(std::string_view name) {
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames))
    throw UserError("--precision", "unknown precision '" + std::string(name) + "'", "choose f32, tf32 or bf16");
  return static_cast<GemmType>(found - std::begin(kNames));
}

}  // namespace nacre
