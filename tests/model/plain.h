// Every model written out as plain loops over vertices and edges in double. This is what the DFG of
// the model has to compute. Nothing here uses the DFG or the builder.
#pragma once

#include <vector>

#include "nacre/kernel/ref/interpreter.h"
#include "nacre/model/model.h"

namespace nacre::test {

using Rows = std::vector<std::vector<double>>;

class PlainModel {
 public:
  // `options` must be complete (complete_options). Dropout is not modelled.
  PlainModel(const ModelOptions& options, const Blocks& blocks, const ref::Bindings& bindings)
      : o_(options), blocks_(blocks), bindings_(bindings) {}

  Rows logits();
  double loss(const Rows& logits) const;

 private:
  const std::vector<double>& value(const std::string& name) const { return bindings_.at(name); }
  const std::vector<double>& param(const std::string& name) const {
    return bindings_.at("layers." + std::to_string(layer_) + "." + name);
  }
  const Graph& graph() const { return blocks_.layer(layer_); }
  double weight(int64_t edge) const;
  Rows linear(const Rows& x, const std::string& name, bool bias) const;
  Rows self(const Rows& x) const;
  Rows zeros(int64_t width) const;
  Rows layer(const Rows& x, int64_t out, bool last) const;
  Rows propagate(const Rows& x) const;
  Rows gcn(const Rows& x) const;
  Rows ngcf(const Rows& x) const;
  Rows ngcf_of_authors(const Rows& x) const;
  Rows joined_layers(Rows x);
  Rows sage(const Rows& x) const;
  Rows aggregate(const Rows& x) const;
  Rows lstm(const Rows& x, int64_t hidden) const;
  Rows gat(const Rows& x, int64_t heads, bool last) const;
  Rows gatv2(const Rows& x, int64_t heads, bool last) const;
  Rows attend(const Rows& z, const Rows& scores, bool last) const;
  Rows rgcn(const Rows& x, int64_t out) const;
  double relation_weight(int type, int64_t element) const;
  Rows gin(const Rows& x) const;
  Rows norm(const Rows& x) const;
  void activate(Rows& x) const;

  const ModelOptions& o_;
  const Blocks& blocks_;
  const ref::Bindings& bindings_;
  int layer_ = 0;
};

}  // namespace nacre::test
