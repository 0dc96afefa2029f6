// CUDA source of kernels, made for the exact dimensions at hand. Generators are plain text writers: they need no CUDA,
// so every kernel can be written out, read and compiled on any machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nacre::cuda {

// The structs and operands that a kernel takes, in order (params.h).
class Signature {
 public:
  void add(std::string_view params, size_t fields);
  void add_operands(size_t count);
  // For messages: "MapParams, 3 operands".
  std::string text() const;
  bool operator==(const Signature&) const = default;

 private:
  struct Part {
    std::string_view params;
    size_t fields;
    bool operator==(const Part&) const = default;
  };
  std::vector<Part> parts_;
};

struct Source {
  std::string name;          // of the one entry function, extern "C"
  std::string text;          // complete: includes nothing
  int threads = 128;         // a block
  int64_t shared_bytes = 0;  // dynamic, a block
  Signature takes;           // the parameters that a launch passes
};

// The step's random state as kernels read it: two 64-bit words, seed and step.
inline constexpr int64_t kStepBytes = 16;

// Common device functions, put at the head of a source that uses them: vector loads, group reductions, Philox dropout.
std::string prelude();

}  // namespace nacre::cuda
