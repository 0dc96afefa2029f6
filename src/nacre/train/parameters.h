// Parameters: the parameters of a model as one flat f32 block, so that optimisers and checkpoints
// walk a single array.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/kernel/blocks.h"
#include "nacre/tensor/tensor.h"

namespace nacre {

struct Parameter {
  std::string name;
  // The shape, with a leading dimension if the parameter has one row for each edge type or vertex.
  Shape shape;
  int64_t offset = 0;  // offset into the flat block, in elements
  int64_t size = 0;
  bool trained = true;  // false for state such as running statistics
};

class Parameters {
 public:
  // Holds every parameter leaf of `dfg`, the trained ones first. The same name and seed draw the
  // same numbers.
  Parameters(const Dfg& dfg, const Blocks& blocks, uint64_t seed);

  const std::vector<Parameter>& list() const { return list_; }
  float* data() { return values_.data<float>(); }
  const float* data() const { return values_.data<float>(); }
  float* data(const Parameter& p) { return data() + p.offset; }
  const float* data(const Parameter& p) const { return data() + p.offset; }
  int64_t size() const { return values_.size(); }
  int64_t trained_size() const { return trained_size_; }
  int64_t bytes() const { return values_.bytes(); }

 private:
  std::vector<Parameter> list_;
  Tensor values_;
  int64_t trained_size_ = 0;
};

}  // namespace nacre
