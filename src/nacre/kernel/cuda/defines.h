// Writes the constants at the head of a source: the dimensions that a kernel is made for.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

namespace nacre::cuda {

inline std::string defines(std::initializer_list<std::pair<const char*, int64_t>> values) {
  std::string text;
  for (const auto& [name, value] : values) text += "#define " + std::string(name) + " " + std::to_string(value) + "\n";
  return text;
}

}  // namespace nacre::cuda
