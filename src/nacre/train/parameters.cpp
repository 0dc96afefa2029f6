#include "nacre/train/parameters.h"

#include <algorithm>
#include <cmath>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"

namespace nacre {
namespace {

uint64_t hash_name(const std::string& name) {
  uint64_t h = name.size();
  for (const char c : name) h = mix_key(h, static_cast<unsigned char>(c));
  return h;
}

// Returns half the width of the uniform distribution from which a parameter is drawn.
float init_bound(const Node& node) {
  const Dims& d = node.type.dims;
  const double fan_out = d.empty() ? 1 : static_cast<double>(d.back());
  const double fan_in = d.size() >= 2 ? static_cast<double>(d[d.size() - 2]) : 1;
  if (node.init == Init::glorot) return static_cast<float>(std::sqrt(6 / (fan_in + fan_out)));
  return static_cast<float>(1 / std::sqrt(d.size() >= 2 ? fan_in : fan_out));
}

void initialise(const Node& node, uint64_t seed, float* out, int64_t size) {
  switch (node.init) {
    case Init::zeros:
      std::fill(out, out + size, 0.0F);
      return;
    case Init::ones:
      std::fill(out, out + size, 1.0F);
      return;
    case Init::constant:
      std::fill(out, out + size, static_cast<float>(node.alpha));
      return;
    case Init::glorot:
    case Init::uniform_fan_in:
      break;
  }
  const float bound = init_bound(node);
  const uint64_t key = mix_key(seed, hash_name(node.name));
  parallel_for((size + 3) / 4, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const PhiloxBlock block = philox(key, 0, static_cast<uint64_t>(b));
      for (int64_t i = 4 * b; i < std::min(4 * b + 4, size); ++i) out[i] = (2 * uniform01(block[i % 4]) - 1) * bound;
    }
  });
}

}  // namespace

Parameters::Parameters(const Dfg& dfg, const Blocks& blocks, uint64_t seed) {
  std::vector<NodeRef> leaves;
  for (const bool state : {false, true}) {
    for (NodeRef i = 0; i < dfg.size(); ++i) {
      if (dfg[i].op == Op::param && dfg[i].state == state) leaves.push_back(i);
    }
  }
  int64_t offset = 0;
  for (const NodeRef i : leaves) {
    const Node& node = dfg[i];
    Parameter p;
    p.name = node.name;
    p.shape = node.type.dims;
    if (node.type.space != Space::param()) p.shape.insert(p.shape.begin(), blocks.rows(node.type.space));
    p.offset = offset;
    p.size = num_elements(p.shape);
    p.trained = !node.state;
    offset += (p.size + 15) / 16 * 16;  // every parameter starts on a cache line
    if (p.trained) trained_size_ = offset;
    list_.push_back(std::move(p));
  }
  values_ = Tensor::zeros(DType::f32, {offset});
  for (size_t k = 0; k < leaves.size(); ++k) initialise(dfg[leaves[k]], seed, data(list_[k]), list_[k].size);
}

}  // namespace nacre
