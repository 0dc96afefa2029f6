// FunctionKey: collects everything that the text of a kernel depends on into a string of bytes,
// which is the key of its function in GpuCompiler.
#pragma once

#include <string>
#include <type_traits>

#include "nacre/kernel/cuda/rows.h"

namespace nacre {

class FunctionKey {
 public:
  explicit FunctionKey(const char* kernel) : bytes_(kernel) {}
  template <class T>
  FunctionKey& add(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);  // they have no padding
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  FunctionKey& add(const RowProgram& program);
  FunctionKey& add(const cuda::ReduceSpec& spec);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace nacre
