// The CUDA source of a kernel, written for the exact dimensions at hand. The writers only produce
// text and need no CUDA, so every kernel can be written, read and compiled on any machine.
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
  // Returns a text for messages, for example "MapParams, 3 operands".
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
  std::string name;          // name of the one kernel in the text
  std::string text;          // complete source text without any #include
  int threads = 128;         // threads of a block
  int64_t shared_bytes = 0;  // dynamic shared memory of a block
  Signature takes;           // the parameters that a launch passes
};

// Bytes of the random state of a step in device memory. The state consists of 64-bit words: the
// seed, the step number and, if several ranks share the graph, the addresses of the numbers that
// the rank's vertices (word kStepVertices) and edges (word kStepEdges) have in the whole graph.
inline constexpr int64_t kStepBytes = 32;
inline constexpr int kStepVertices = 2;
inline constexpr int kStepEdges = 3;

// Returns the device functions that most sources begin with: vector loads, sums over groups of
// threads, dropout with Philox.
std::string prelude();

}  // namespace nacre::cuda
