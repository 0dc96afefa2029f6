// Draft: a plan while the passes make it (passes.cpp has their list).
//
// The first passes rewrite the DFG. From `analyse` on, the DFG does not change, and the later
// passes group its nodes into kernels, move nodes between kernels and write the programs of the
// kernels.
#pragma once

#include <memory>
#include <vector>

#include "nacre/dfg/node_vector.h"
#include "nacre/plan/analysis.h"
#include "nacre/plan/plan.h"

namespace nacre {

// The most nodes of one kernel besides inlined ones. Each takes a register and may load two more.
constexpr size_t kMaxTail = 40;

// Returns whether row-wise nodes may follow the root of a kernel of this kind, as its tail.
bool takes_tail(KernelKind kind);
// Returns whether a node whose rows have `row_size` elements may be in the tail of the kernel. If a
// kernel sums short rows, few threads work on each row, and these would take long for a tail with
// long rows.
bool fits_tail(const Kernel& kernel, const Dfg& dfg, int64_t row_size);

class Draft {
 public:
  Draft(const Dfg& dfg, const Blocks& on, const PlanOptions& options);
  // A draft cannot be copied, because the analysis refers to the DFG of the plan.
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() = default;

  // Computes what an() returns, which all later passes read. The DFG must not change after this
  // call.
  void analyse();
  bool analysed() const { return analysis_ != nullptr; }
  const Analysis& an() const { return *analysis_; }

  const Dfg& dfg() const { return plan.dfg; }
  bool is_inlined(NodeRef i) const { return inlined[i] != 0; }
  // Returns the index of the kernel that computes the node, or -1 if none does.
  int kernel_of(NodeRef i) const { return kernels_of[i]; }
  void set_kernel(NodeRef i, int kernel) { kernels_of[i] = kernel; }
  // Returns the node whose memory node i is a view of, or i itself if it has memory of its own.
  NodeRef owner(NodeRef i) const { return plan.alias[i]; }
  void share_memory(NodeRef i, NodeRef of) { plan.alias[i] = owner(of); }

  // Returns whether the kernel has a register for the node. (A constant that layers share is
  // computed only by the kernel of the first layer; the others read it from memory.)
  bool computes(int kernel, NodeRef i) const;
  // Returns the nodes that read the memory of node i, also through views of it, and the views that
  // are results.
  std::vector<NodeRef> readers(NodeRef i) const;
  // Removes kernels without nodes.
  void erase_empty_kernels();

  Plan plan;
  const Blocks& blocks;
  const DeviceTraits* device = nullptr;  // see PassControl, also for the next two
  bool variants = true;
  const std::vector<NodeRef>* narrow = nullptr;
  NodeVector<char> inlined;    // whether every kernel that reads the node computes it
  NodeVector<int> kernels_of;  // for each node, the index of the kernel that computes it, or -1

 private:
  void add_readers(NodeRef i, std::vector<NodeRef>& readers) const;

  std::unique_ptr<Analysis> analysis_;
};

}  // namespace nacre
