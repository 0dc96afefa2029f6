// Runs a whole DFG node by node in double precision. This defines the meaning of a model; every
// plan is tested against it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nacre/dfg/node_vector.h"
#include "nacre/kernel/blocks.h"

namespace nacre::ref {

// Values of the leaves by name, as doubles. Labels and 0/1 targets are given as doubles, too, and
// converted to the type of the leaf.
using Bindings = std::map<std::string, std::vector<double>>;

class Interpreter {
 public:
  Interpreter(const Dfg& dfg, Blocks blocks);
  // Computes every node. Throws UserError if a leaf is unbound or has the wrong number of elements.
  void run(const Bindings& bindings, const StepContext& step);
  // Returns the value of a node after run(), as doubles.
  std::vector<double> value(NodeRef node) const;
  double scalar(NodeRef node) const;

 private:
  const Dfg& dfg_;
  Blocks blocks_;
  NodeVector<std::vector<double>> floats_;
  NodeVector<std::vector<int32_t>> ints_;
  NodeVector<std::vector<uint8_t>> bytes_;
};

}  // namespace nacre::ref
