// Turns DFG nodes into a row program over one domain.
#pragma once

#include <functional>
#include <map>

#include "nacre/dfg/node_vector.h"
#include "nacre/kernel/program.h"
#include "nacre/plan/analysis.h"

namespace nacre {

class ProgramBuilder {
 public:
  // `inside(node)` says whether this program computes a row-local node; if not, the node is loaded
  // from memory. `alias[node]` is the node that owns its memory.
  ProgramBuilder(const Analysis& analysis, const NodeVector<NodeRef>& alias, Space domain,
                 std::function<bool(NodeRef)> inside);

  // Says that the value of `root` comes from the kernel that this program follows.
  void set_root(NodeRef root) { root_ = root; }
  // Returns the register that holds the value of the node, and emits what is needed for it.
  int value(NodeRef node);
  // Stores the register of a node to the memory of the node.
  void store(NodeRef node);
  RowProgram finish() && { return std::move(program_); }

 private:
  int emit(Micro micro, int64_t width);
  int operand(NodeRef node);
  int load(MicroOp op, NodeRef node);
  int compute(NodeRef computed);
  int binary(const Node& node, MicroOp op);
  int compute_row_sum(const Node& node);
  int64_t width(int reg) const { return program_.widths[reg]; }

  const Analysis& an_;
  const NodeVector<NodeRef>& alias_;
  std::function<bool(NodeRef)> inside_;
  NodeRef root_ = -1;
  RowProgram program_;
  std::map<NodeRef, int> registers_;
};

}  // namespace nacre
