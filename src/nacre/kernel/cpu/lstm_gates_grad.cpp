#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/gather_rows.h"
#include "nacre/kernel/cpu/gemm.h"
#include "nacre/kernel/cpu/lstm.h"
#include "nacre/kernel/cpu/lstm_cell.h"
#include "nacre/kernel/cpu/lstm_step.h"

namespace nacre::cpu {
namespace {

// Runs one batch on the calling thread. Until the gradients of an edge are known, the first H
// floats of their row hold the cell state c after the edge's step.
class KeptBatch {
 public:
  KeptBatch(const LstmGatesGradArgs& args, const LstmView::Batch& batch, float* scratch)
      : args_(args), view_(*args.view), batch_(batch), hidden_(args.hidden), packed_t_(args.workspace) {
    tile_ = scratch;
    dh_ = tile_ + view_.max_rows * 4 * hidden_;
    dc_ = dh_ + view_.max_rows * hidden_;
    pad_ = dc_ + view_.max_rows * hidden_;
  }

  void run() {
    for (int64_t i = batch_.begin; i < batch_.end; ++i) replay(view_.row_order[i]);
    const int64_t rows = batch_.end - batch_.begin;
    gather_copy({view_.row_order.data() + batch_.begin, rows, 0}, args_.g, hidden_, dh_);
    std::fill_n(dc_, rows * hidden_, 0.0f);
    if (view_.options.pad) std::fill_n(tile_, rows * 4 * hidden_, 0.0f);
    for (LstmStep at = {&view_, &batch_, hidden_, batch_.steps}; at.step-- > 0;) go_back(at);
  }

 private:
  // Recomputes the states of one sequence from its gates.
  void replay(int64_t row) {
    const RowView& by_dst = *view_.by_dst;
    const int64_t begin = by_dst.row_ptr[row];
    const int64_t end = by_dst.row_ptr[row + 1];
    if (args_.states != nullptr) std::fill_n(args_.states + begin * hidden_, hidden_, 0.0f);
    for (int64_t e = begin; e < end; ++e) {
      LstmStates states = {hidden_, args_.gates + e * 4 * hidden_, nullptr, args_.out + e * 4 * hidden_, nullptr};
      if (e > begin) states.c_before = args_.out + (e - 1) * 4 * hidden_;
      if (args_.states != nullptr && e + 1 < end) states.h = args_.states + (e + 1) * hidden_;
      lstm_cell_states(states);
    }
  }

  void go_back(const LstmStep& at) {
    const int64_t rows = at.rows();
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t edge = view_.first_edge(batch_.begin + r) + at.step;
      float* out = args_.out + edge * 4 * hidden_;
      float* tile = tile_ + r * 4 * hidden_;
      const float* c_before = at.step == 0 ? nullptr : out - 4 * hidden_;
      lstm_cell_backward({1, hidden_, tile, c_before},
                         {out, dh_ + r * hidden_, dc_ + r * hidden_, args_.gates + edge * 4 * hidden_});
      std::copy_n(tile, 4 * hidden_, out);
    }
    if (at.step == 0) return;
    gemm_tile_packed(rows, hidden_, 4 * hidden_, tile_, 4 * hidden_, packed_t_, dh_, hidden_);
    // With padding, sequences that have ended take part in the products, too. Nobody reads the
    // results of these products.
    if (const int64_t more = at.padding(); more > 0) {
      gemm_tile_packed(more, hidden_, 4 * hidden_, tile_ + rows * 4 * hidden_, 4 * hidden_, packed_t_, pad_, hidden_);
    }
  }

  const LstmGatesGradArgs& args_;
  const LstmView& view_;
  const LstmView::Batch& batch_;
  int64_t hidden_;
  const float* packed_t_;
  float* tile_;  // max_rows × 4H: the gradients of one step
  float* dh_;    // max_rows × H
  float* dc_;
  float* pad_;  // max_rows × H, only if sequences are padded
};

}  // namespace

int64_t lstm_gates_grad_workspace(int64_t hidden) { return gemm_packed_size(hidden, 4 * hidden); }

int64_t lstm_gates_grad_scratch(const LstmView& view, int64_t hidden) {
  return view.max_rows * (view.options.pad ? 7 : 6) * hidden;
}

void lstm_gates_backward(const LstmGatesGradArgs& args) {
  const LstmView& view = *args.view;
  const int64_t hidden = args.hidden;
  NACRE_CHECK(args.scratch.per_thread >= lstm_gates_grad_scratch(view, hidden),
              "the scratch memory of the LSTM is too small");
  gemm_pack_nt(hidden, 4 * hidden, args.w, 4 * hidden, args.workspace);
  parallel_tasks(static_cast<int64_t>(view.batches.size()), [&](int64_t b) {
    float* scratch = args.scratch.data + thread_index() * args.scratch.per_thread;
    KeptBatch(args, view.batches[b], scratch).run();
  });
}

}  // namespace nacre::cpu
