#include "nacre/kernel/ref/interpreter.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nacre/base/error.h"
#include "nacre/kernel/ref/ref_op.h"

namespace nacre::ref {
namespace {

// Converts bound values to integers. Throws UserError for a value that is no integer of the type:
// 1.5 is not a label.
template <class T>
std::vector<T> to_integers(const std::vector<double>& values, const std::string& name) {
  std::vector<T> out;
  out.reserve(values.size());
  for (const double v : values) {
    const bool fits = v >= std::numeric_limits<T>::min() && v <= std::numeric_limits<T>::max() && std::floor(v) == v;
    if (!fits) throw UserError(name, "value " + std::to_string(v) + " does not fit the leaf's integer type");
    out.push_back(static_cast<T>(v));
  }
  return out;
}

const std::vector<double>& bound_value(const Node& leaf, const Bindings& bindings, int64_t rows) {
  const auto bound = bindings.find(leaf.name);
  if (bound == bindings.end()) throw UserError(leaf.name, "the leaf has no value", "bind a value of that name");
  const auto n = static_cast<size_t>(rows * leaf.type.row_size());
  if (bound->second.size() != n) {
    throw UserError(leaf.name, std::to_string(bound->second.size()) + " elements bound where " + type_text(leaf.type) +
                                   " has " + std::to_string(n));
  }
  return bound->second;
}

}  // namespace

Interpreter::Interpreter(const Dfg& dfg, Blocks blocks) : dfg_(dfg), blocks_(std::move(blocks)) {
  NACRE_CHECK(blocks_.num_layers() > 0 && blocks_.fit(dfg), "the DFG has layers for which there are no blocks");
  // The blocks of a rank are not checked in this way, because it receives sources that are not its
  // own destinations from other ranks.
  for (int l = 0; l + 1 < blocks_.num_layers() && blocks_.links() == nullptr; ++l) {
    NACRE_CHECK(blocks_.layer(l).num_dst() == blocks_.layer(l + 1).num_src(),
                "the destinations of block " + std::to_string(l) + " are not the sources of the next");
  }
  floats_.assign(dfg, {});
  ints_.assign(dfg, {});
  bytes_.assign(dfg, {});
}

void Interpreter::run(const Bindings& bindings, const StepContext& step) {
  const auto bind = [&](NodeRef i) {
    const Node& leaf = dfg_[i];
    const std::vector<double>& values = bound_value(leaf, bindings, blocks_.rows(leaf.type.space));
    if (leaf.type.dtype == DType::i32) {
      ints_[i] = to_integers<int32_t>(values, leaf.name);
    } else if (leaf.type.dtype == DType::u8) {
      bytes_[i] = to_integers<uint8_t>(values, leaf.name);
    } else {
      floats_[i] = values;
    }
  };
  const auto data = [&](NodeRef i) -> void* {
    if (dfg_[i].type.dtype == DType::i32) return ints_[i].data();
    if (dfg_[i].type.dtype == DType::u8) return bytes_[i].data();
    return floats_[i].data();
  };
  const auto allocate = [&](NodeRef i, int64_t rows) {
    const auto n = static_cast<size_t>(rows * dfg_[i].type.row_size());
    if (dfg_[i].type.dtype == DType::i32) {
      ints_[i].assign(n, 0);
    } else if (dfg_[i].type.dtype == DType::u8) {
      bytes_[i].assign(n, 0);
    } else {
      // The result is filled with NaN and not with 0, so that an operation that forgets an element
      // does not look right by chance.
      floats_[i].assign(n, std::numeric_limits<double>::quiet_NaN());
    }
  };
  for (NodeRef i = 0; i < dfg_.size(); ++i) {
    const Node& node = dfg_[i];
    if (node.op == Op::input || node.op == Op::param) {
      bind(i);
      continue;
    }
    const int64_t rows = blocks_.rows(node.type.space);
    allocate(i, rows);
    std::vector<ConstView> inputs;
    for (const NodeRef in : node.inputs) inputs.push_back({data(in), dfg_[in].type, blocks_.rows(dfg_[in].type.space)});
    ref::run<double>(node, blocks_, step, inputs, {data(i), node.type, rows});
  }
}

std::vector<double> Interpreter::value(NodeRef node) const {
  switch (dfg_[node].type.dtype) {
    case DType::i32:
      return {ints_[node].begin(), ints_[node].end()};
    case DType::u8:
      return {bytes_[node].begin(), bytes_[node].end()};
    default:
      return floats_[node];
  }
}

double Interpreter::scalar(NodeRef node) const {
  const std::vector<double> values = value(node);
  NACRE_CHECK(values.size() == 1, "a scalar was expected, not " + type_text(dfg_[node].type));
  return values[0];
}

}  // namespace nacre::ref
