// LSTM over neighbour sequences on the CPU (SAGE-LSTM). Destinations are sorted by degree and run
// in batches of rows of (nearly) equal length, so that each time step is one small GEMM for the
// batch. The input gates z are projected once per vertex, not once per edge. There are two backward
// passes. One reads the gates that the forward pass kept (E × 4H). The other is used if there is no
// memory for the gates; it recomputes the forward states of a batch.
//
// The memory of the recomputing pass does not grow with the longest sequence. The steps of a batch
// are cut into segments of a bounded number of entries. The states at the borders of the segments
// are kept; those inside are recomputed one segment at a time, the last segment first. A fixed
// number of workers go through the batches. In each round, every worker leaves the gate gradients
// of one segment in the workspace; then the rows of the round are added to dz, grouped by vertex,
// in order.
#pragma once

#include <memory>
#include <vector>

#include "nacre/kernel/cpu/sparse.h"

namespace nacre::cpu {

struct LstmOptions {
  // The largest number of destinations of a batch: the k of the table dst-id=k,dst-degree=min. Long
  // sequences may run in smaller batches, whose states fit the workspace.
  int64_t batch_rows = kSequencesAtATime;
  // Whether z has a row for every edge (in-CSR position) instead of one for every source.
  bool on_edges = false;
  // If set, a sequence that has ended stays in the products of the batch, without effect, until the
  // longest sequence of the batch ends. This shows what a batch costs if its sequences are not told
  // apart.
  bool pad = false;
  // Whether the view is for passes that compute nothing twice. Batches are then as large as
  // batch_rows says, and their steps are not cut into segments.
  bool one_pass = false;
};

// The destinations in descending order of degree, cut into batches. A view is made once for each
// graph and options, and serves every pass.
struct LstmView {
  std::shared_ptr<const RowView> by_dst;
  LstmOptions options;
  Array<NodeId> row_order;  // destinations with at least one neighbour, longest first
  struct Batch {
    int64_t begin, end;  // range in row_order
    // Range in step_ptr; `steps` is the length of the longest sequence in the batch.
    int64_t first_step, steps;
    int64_t segment_begin, segment_end;
  };
  // The entries of a batch are stored step by step. The sequences that are still running at a step
  // are the first ones of the batch.
  struct Segment {
    int64_t batch;
    int64_t step_begin, step_end;  // steps of the batch
    // The states of the LSTM are kept wherever one segment of a batch ends and the next one begins.
    // The kept rows with which this segment begins follow those of the earlier segments of the
    // batch; kept_row is the number of the first of them.
    int64_t kept_row;
  };
  std::vector<Batch> batches;
  std::vector<Segment> segments;
  Array<int64_t> step_ptr;    // first entry of each step, batch by batch, and the end
  Array<NodeId> col;          // row of z of each entry, in step order
  int64_t max_rows = 0;       // largest number of rows of a batch
  int64_t max_kept_rows = 0;  // largest number of kept rows of a batch
  int64_t max_entries = 0;    // largest number of entries of a segment

  int64_t workers = 0;
  std::vector<int64_t> schedule;  // rounds × workers: the segment of a worker in a round, or -1
  // The sums that a round adds to dz, one per vertex, over workspace rows (worker · max_entries +
  // entry of the segment). If dz has a row for every edge, nothing is added up, because each row
  // belongs to one entry.
  struct Round {
    int64_t sum_begin, sum_end;
  };
  std::vector<Round> rounds;
  Array<NodeId> sum_row;       // vertex of each sum
  Array<int64_t> sum_ptr;      // first place of each sum in sum_work_row, and the end
  Array<NodeId> sum_work_row;  // the workspace rows that each sum adds up, one for each edge

  int64_t z_rows() const { return options.on_edges ? by_dst->graph.num_edges() : by_dst->graph.num_src(); }
  // Returns the edge (in-CSR position) of a sequence's first step; the edges of its other steps
  // follow.
  int64_t first_edge(int64_t i) const { return by_dst->row_ptr[row_order[i]]; }
  int64_t step_rows(const Batch& batch, int64_t step) const {
    return step_ptr[batch.first_step + step + 1] - step_ptr[batch.first_step + step];
  }
  int64_t bytes() const;
};
std::shared_ptr<const LstmView> make_lstm_view(std::shared_ptr<const RowView> by_dst, const LstmOptions& options = {});

struct LstmArgs {
  const LstmView* view = nullptr;
  int64_t hidden = 0;
  const float* z = nullptr;  // view->z_rows() × 4H
  const float* w = nullptr;  // [H, 4H]
  float* out = nullptr;      // num_dst × H (rows without neighbours become 0); null: not wanted
  Scratch scratch;           // per_thread >= lstm_scratch_floats(view, hidden)
  // Memory of lstm_forward_workspace(hidden) floats, in which w is packed for the GEMM. If it is
  // null, the pass is slower and gives the same bits.
  float* workspace = nullptr;
  float* gates = nullptr;  // E × 4H, by edge: the gates after their activations; null: not kept
};
int64_t lstm_scratch_floats(const LstmView& view, int64_t hidden);
int64_t lstm_forward_workspace(int64_t hidden);
void lstm_forward(const LstmArgs& args);

struct LstmGradArgs {
  const LstmView* view = nullptr;
  int64_t hidden = 0;
  const float* z = nullptr;
  const float* w = nullptr;
  const float* g = nullptr;    // num_dst × H: gradient of out
  float* dz = nullptr;         // view->z_rows() × 4H, overwritten; null: not wanted
  float* dw = nullptr;         // [H, 4H], overwritten; null: not wanted
  float* workspace = nullptr;  // lstm_grad_workspace(view, hidden) floats
};
int64_t lstm_grad_workspace(const LstmView& view, int64_t hidden);
void lstm_backward(const LstmGradArgs& args);

// lstm_gates_backward() is the backward pass that reads kept gates. It writes the gradients of the
// gates by edge; their sums by source and the gradient of w (statesᵀ · gate gradients) are left to
// other kernels.
struct LstmGatesGradArgs {
  const LstmView* view = nullptr;  // made with the option one_pass
  int64_t hidden = 0;
  const float* gates = nullptr;  // E × 4H
  const float* w = nullptr;
  const float* g = nullptr;    // num_dst × H
  float* out = nullptr;        // E × 4H: gradients of the gates before their activations
  float* states = nullptr;     // E × H: h before each step; null: not wanted
  float* workspace = nullptr;  // lstm_gates_grad_workspace(hidden) floats
  Scratch scratch;             // per_thread >= lstm_gates_grad_scratch(view, hidden)
};
int64_t lstm_gates_grad_workspace(int64_t hidden);
int64_t lstm_gates_grad_scratch(const LstmView& view, int64_t hidden);
void lstm_gates_backward(const LstmGatesGradArgs& args);

}  // namespace nacre::cpu
