// Runs a whole DFG node by node in double precision: the meaning of a model, against which every
// plan is tested.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nacre/kernel/blocks.h"

namespace nacre::ref {

// Leaf values by name, as doubles (labels and 0/1 targets too; they are converted as the leaf's
// dtype asks).
using Bindings = std::map<std::string, std::vector<double>>;

class Interpreter {
 public:
  Interpreter(const Dfg& dfg, Blocks blocks);
  // Computes every node. Throws UserError when a leaf is unbound or has the wrong number of
  // elements.
  void run(const Bindings& bindings, const StepContext& step);
  // Value of a node after run(), as doubles.
  std::vector<double> value(NodeRef node) const;
  double scalar(NodeRef node) const;

 private:
  const Dfg& dfg_;
  Blocks blocks_;
  std::vector<std::vector<double>> floats_;
  std::vector<std::vector<int32_t>> ints_;
  std::vector<std::vector<uint8_t>> bytes_;
};

}  // namespace nacre::ref
