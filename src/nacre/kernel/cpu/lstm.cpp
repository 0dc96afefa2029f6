#include "nacre/kernel/cpu/lstm.h"

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/gather_rows.h"
#include "nacre/kernel/cpu/gemm.h"
#include "nacre/kernel/cpu/lstm_cell.h"
#include "nacre/kernel/cpu/lstm_step.h"

namespace nacre::cpu {

void lstm_gates(const LstmStep& at, const LstmWeights& weights, const float* z, const float* h, float* gates) {
  const int64_t hidden = at.hidden;
  const int64_t rows = at.rows();
  const int64_t entry = at.entry();
  const Array<NodeId>& col = at.view->col;
  gather_copy({col.data() + entry, rows, col.size() - entry - rows}, z, 4 * hidden, gates);
  if (at.step > 0) lstm_multiply(weights, rows, hidden, h, gates, 1.0f);
}

void lstm_multiply(const LstmWeights& weights, int64_t rows, int64_t hidden, const float* h, float* gates, float beta) {
  const GemmEpilogue add = {nullptr, Activation::none, beta};
  if (weights.packed != nullptr) {
    gemm_tile_packed(rows, 4 * hidden, hidden, h, hidden, weights.packed, gates, 4 * hidden, add);
  } else {
    gemm_tile_nn(rows, 4 * hidden, hidden, h, hidden, weights.w, 4 * hidden, gates, 4 * hidden, add);
  }
}

namespace {

void run_batch(const LstmArgs& args, const LstmView::Batch& batch, const LstmWeights& weights, float* scratch) {
  const LstmView& view = *args.view;
  const int64_t hidden = args.hidden;
  float* gates = scratch;
  float* h = gates + view.max_rows * 4 * hidden;
  float* c = h + view.max_rows * hidden;
  LstmStep at = {&view, &batch, hidden, 0};
  for (; at.step < batch.steps; ++at.step) {
    const int64_t rows = at.rows();
    lstm_gates(at, weights, args.z, h, gates);
    // The products of ended sequences have no effect: their states stay as they are.
    if (at.padding() > 0) {
      lstm_multiply(weights, at.padding(), hidden, h + rows * hidden, gates + rows * 4 * hidden, 0.0f);
    }
    const bool keep = args.gates != nullptr;
    lstm_cell_forward({rows, hidden, gates, at.step == 0 ? nullptr : c}, {c, h, rows, keep});
    for (int64_t r = 0; keep && r < rows; ++r) {
      const int64_t edge = view.first_edge(batch.begin + r) + at.step;
      std::copy_n(gates + r * 4 * hidden, 4 * hidden, args.gates + edge * 4 * hidden);
    }
    if (args.out == nullptr) continue;
    for (int64_t r = at.rows_after(); r < rows; ++r) {
      std::copy_n(h + r * hidden, hidden, args.out + view.row_order[batch.begin + r] * hidden);
    }
  }
}

}  // namespace

int64_t lstm_scratch_floats(const LstmView& view, int64_t hidden) { return view.max_rows * 6 * hidden; }

int64_t lstm_forward_workspace(int64_t hidden) { return gemm_packed_size(4 * hidden, hidden); }

void lstm_forward(const LstmArgs& args) {
  const LstmView& view = *args.view;
  const RowView& rows = *view.by_dst;
  const int64_t hidden = args.hidden;
  NACRE_CHECK(args.scratch.per_thread >= lstm_scratch_floats(view, hidden),
              "the scratch memory of the LSTM is too small");
  parallel_for(args.out == nullptr ? 0 : rows.rows, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      if (rows.row_ptr[row + 1] == rows.row_ptr[row]) std::fill_n(args.out + row * hidden, hidden, 0.0f);
    }
  });
  LstmWeights weights = {args.w, nullptr, nullptr};
  if (args.workspace != nullptr) {
    gemm_pack_nn(4 * hidden, hidden, args.w, 4 * hidden, args.workspace);
    weights.packed = args.workspace;
  }
  parallel_tasks(static_cast<int64_t>(view.batches.size()), [&](int64_t b) {
    float* scratch = args.scratch.data + thread_index() * args.scratch.per_thread;
    run_batch(args, view.batches[b], weights, scratch);
  });
}

}  // namespace nacre::cpu
