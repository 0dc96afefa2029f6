// Chooses which kernel computes a root. Hand-written kernels come first if the expression has their
// shape, then programs over gTasks or rows, and the plain reference last. A kernel says why a
// faster one was not taken (Kernel::why).
#pragma once

#include "nacre/plan/analysis.h"
#include "nacre/plan/plan.h"

namespace nacre {

class Implementer {
 public:
  Implementer(const Plan& plan, const Analysis& analysis, const NodeVector<char>& inlined)
      : options_(plan.options), dfg_(analysis.dfg()), an_(analysis), inlined_(inlined) {}

  Kernel start(NodeRef i, KernelKind kind, std::string why = "") const;
  Kernel root(NodeRef i) const;

 private:
  bool inlined(NodeRef i) const { return inlined_[i] != 0; }
  // Starts a kernel whose operands are the inputs of node i.
  Kernel with_inputs(NodeRef i, KernelKind kind, std::string why = "") const;
  // Returns the rows that node i gathers if the kernel gathers them itself (i is inlined);
  // otherwise i.
  NodeRef behind_gather(NodeRef i) const;
  Kernel sum(NodeRef i) const;
  Kernel sum_of_pairs(NodeRef i) const;
  Kernel reduction(NodeRef i) const;
  Kernel gtasks(NodeRef i, std::string why) const;
  Kernel weight_grad(NodeRef i) const;
  Kernel typed_grad(NodeRef i) const;
  Kernel sequence(NodeRef i, KernelKind kind) const;
  bool has_product(NodeRef edge_value) const;
  bool reads_pairs(NodeRef edge_value) const;
  PartitionTable table_of(const Kernel& kernel, const PartitionTable& standard) const;

  const PlanOptions& options_;
  const Dfg& dfg_;
  const Analysis& an_;
  const NodeVector<char>& inlined_;
};

}  // namespace nacre
