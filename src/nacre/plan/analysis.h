// Facts about a DFG that fusing and lowering ask for.
#pragma once

#include <vector>

#include "nacre/dfg/dfg.h"
#include "nacre/dfg/node_vector.h"
#include "nacre/kernel/blocks.h"

namespace nacre {

class Analysis {
 public:
  Analysis(const Dfg& dfg, const Blocks& blocks, bool hoist);

  const std::vector<NodeRef>& consumers(NodeRef i) const { return consumers_[i]; }
  // Returns whether the node is a named result or a state update, which must end up in memory.
  bool is_result(NodeRef i) const { return result_[i] != 0; }
  // Returns whether the value depends on no parameter and no random number, and so is the same in
  // every epoch.
  bool constant(NodeRef i) const { return constant_[i] != 0; }
  // Returns whether the rows are known before anything runs: an input or a parameter.
  bool bound(NodeRef i) const { return dfg_[i].op == Op::input || dfg_[i].op == Op::param; }
  // Returns whether row r of the result needs only row r of the operands (or rows they are indexed
  // by), so that the node can be a micro-op.
  bool row_local(NodeRef i) const;
  // Returns whether the node is a product of edge rows with a matrix (or one per type): a micro-op
  // of gTask programs.
  bool matrix_on_edges(NodeRef i) const;
  // Returns whether row r of one space is row r of the other.
  bool same_rows(Space a, Space b) const;
  // Returns a number that is equal for nodes with equal values, also for nodes of different layers
  // whose rows are the same.
  int value_number(NodeRef i) const { return number_[i]; }
  int64_t rows(Space s) const { return blocks_.rows(s); }
  // Returns whether the graph is the share of one of several ranks.
  bool of_rank() const { return blocks_.links() != nullptr; }
  int64_t elements(NodeRef i) const { return rows(dfg_[i].type.space) * dfg_[i].type.row_size(); }
  int64_t bytes(NodeRef i) const { return elements(i) * dtype_size(dfg_[i].type.dtype); }
  const Dfg& dfg() const { return dfg_; }

 private:
  void find_whole_blocks(bool lasting);
  void number_values();
  Space canonical(Space space) const;

  const Dfg& dfg_;
  const Blocks& blocks_;
  // The class of each block and of each vertex space: layers that stand for the same graph have the
  // number of the first of them. A whole graph is a square block that other layers share, or that
  // all layers are. A sampled block may be square by chance in one batch and not in the next.
  std::vector<int> block_class_;   // class of each block
  std::vector<int> vertex_class_;  // class of each space of vertices
  NodeVector<std::vector<NodeRef>> consumers_;
  NodeVector<char> result_;
  NodeVector<char> constant_;
  NodeVector<int> number_;
};

}  // namespace nacre
