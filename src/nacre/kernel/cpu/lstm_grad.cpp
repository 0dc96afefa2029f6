#include <algorithm>

#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/carve.h"
#include "nacre/kernel/cpu/gather_rows.h"
#include "nacre/kernel/cpu/gemm.h"
#include "nacre/kernel/cpu/lstm.h"
#include "nacre/kernel/cpu/lstm_cell.h"
#include "nacre/kernel/cpu/lstm_step.h"

namespace nacre::cpu {
namespace {

// The buffers of all workers; each array has `workers` equal parts. H is the hidden width.
struct Workspace {
  float* packed;
  float* packed_t;
  float* gates;     // max_entries × 4H: the gates of a segment, later their gradients
  float* h_before;  // max_entries × H: hidden state before each entry
  float* c;         // max_entries × H: cell state after each entry
  float* kept_h;    // max_kept_rows × H: states at the borders of a batch's segments
  float* kept_c;
  float* h;  // max_rows × H: current states while the borders are filled in
  float* running_c;
  float* dh;  // max_rows × H
  float* dc;
  float* dw;         // [H, 4H]: partial sum of the worker
  float* pad_gates;  // max_rows × 4H; allocated only if sequences are padded
  float* pad_h;      // max_rows × H
};

Workspace carve(const LstmView& view, int64_t hidden, Carve& memory) {
  const int64_t workers = view.workers;
  Workspace ws{};
  ws.packed = memory.take(gemm_packed_size(4 * hidden, hidden));
  ws.packed_t = memory.take(gemm_packed_size(hidden, 4 * hidden));
  ws.gates = memory.take(workers * view.max_entries * 4 * hidden);
  ws.h_before = memory.take(workers * view.max_entries * hidden);
  ws.c = memory.take(workers * view.max_entries * hidden);
  ws.kept_h = memory.take(workers * view.max_kept_rows * hidden);
  ws.kept_c = memory.take(workers * view.max_kept_rows * hidden);
  ws.h = memory.take(workers * view.max_rows * hidden);
  ws.running_c = memory.take(workers * view.max_rows * hidden);
  ws.dh = memory.take(workers * view.max_rows * hidden);
  ws.dc = memory.take(workers * view.max_rows * hidden);
  ws.dw = memory.take(workers * hidden * 4 * hidden);
  if (view.options.pad) {
    ws.pad_gates = memory.take(workers * view.max_rows * 4 * hidden);
    ws.pad_h = memory.take(workers * view.max_rows * hidden);
  }
  return ws;
}

// Runs one segment on one worker.
class Worker {
 public:
  Worker(const LstmGradArgs& args, const Workspace& all, int64_t worker, const LstmView::Segment& segment)
      : args_(args),
        view_(*args.view),
        segment_(segment),
        batch_(view_.batches[segment.batch]),
        hidden_(args.hidden),
        weights_{args.w, all.packed, all.packed_t},
        my_(all) {
    for (float** part : {&my_.gates, &my_.h_before, &my_.c}) *part += worker * view_.max_entries * hidden_;
    my_.gates += worker * view_.max_entries * 3 * hidden_;
    for (float** part : {&my_.kept_h, &my_.kept_c}) *part += worker * view_.max_kept_rows * hidden_;
    for (float** part : {&my_.h, &my_.running_c, &my_.dh, &my_.dc}) *part += worker * view_.max_rows * hidden_;
    my_.dw += worker * hidden_ * 4 * hidden_;
    if (!view_.options.pad) return;
    my_.pad_gates += worker * view_.max_rows * 4 * hidden_;
    my_.pad_h += worker * view_.max_rows * hidden_;
  }

  void run() {
    if (segment_.step_end == batch_.steps) start_batch();
    forward();
    backward();
    if (args_.dw != nullptr) add_weight_grad();
    if (args_.dz != nullptr && view_.options.on_edges) scatter_gates();
  }

 private:
  LstmStep at(int64_t step) const { return {&view_, &batch_, hidden_, step}; }
  // Returns where the first entry of a step is in an array of states of the segment, in floats.
  int64_t offset(int64_t step) const { return (at(step).entry() - at(segment_.step_begin).entry()) * hidden_; }
  const float* c_before(int64_t step) const {
    if (step == 0) return nullptr;
    return step == segment_.step_begin ? my_.kept_c + segment_.kept_row * hidden_ : my_.c + offset(step - 1);
  }

  // Fills in the states at the borders of the segments and the gradients of the last hidden states.
  void start_batch() {
    const auto* border = &view_.segments[batch_.segment_begin];
    for (int64_t step = 0; step < segment_.step_begin; ++step) {
      const int64_t rows = at(step).rows();
      lstm_gates(at(step), weights_, args_.z, my_.h, my_.gates);
      pad_forward(step);
      lstm_cell_forward({rows, hidden_, my_.gates, step == 0 ? nullptr : my_.running_c},
                        {my_.running_c, my_.h, at(step).rows_after(), false});
      if (step + 1 == border->step_end) {
        ++border;
        const int64_t size = at(step + 1).rows() * hidden_;
        std::copy_n(my_.h, size, my_.kept_h + border->kept_row * hidden_);
        std::copy_n(my_.running_c, size, my_.kept_c + border->kept_row * hidden_);
      }
    }
    const int64_t rows = batch_.end - batch_.begin;
    gather_copy({view_.row_order.data() + batch_.begin, rows, 0}, args_.g, hidden_, my_.dh);
    std::fill_n(my_.dc, rows * hidden_, 0.0f);
  }

  void forward() {
    if (segment_.step_begin > 0) {
      const int64_t size = at(segment_.step_begin).rows() * hidden_;
      std::copy_n(my_.kept_h + segment_.kept_row * hidden_, size, my_.h_before);
    }
    for (int64_t step = segment_.step_begin; step < segment_.step_end; ++step) {
      const int64_t here = offset(step);
      const bool last = step + 1 == segment_.step_end;
      lstm_gates(at(step), weights_, args_.z, my_.h_before + here, my_.gates + 4 * here);
      pad_forward(step);
      lstm_cell_forward(
          {at(step).rows(), hidden_, my_.gates + 4 * here, c_before(step)},
          {my_.c + here, last ? nullptr : my_.h_before + offset(step + 1), last ? 0 : at(step).rows_after(), true});
    }
  }

  void backward() {
    for (int64_t step = segment_.step_end; step-- > segment_.step_begin;) {
      const int64_t here = offset(step);
      const int64_t rows = at(step).rows();
      float* gates = my_.gates + 4 * here;
      lstm_cell_backward({rows, hidden_, gates, c_before(step)}, {my_.c + here, my_.dh, my_.dc});
      if (step == 0) continue;
      gemm_tile_packed(rows, hidden_, 4 * hidden_, gates, 4 * hidden_, weights_.packed_t, my_.dh, hidden_);
      if (const int64_t more = at(step).padding(); more > 0) {
        gemm_tile_packed(more, hidden_, 4 * hidden_, my_.pad_gates, 4 * hidden_, weights_.packed_t, my_.pad_h, hidden_);
      }
    }
  }

  // Computes the products of ended sequences; nobody reads their results.
  void pad_forward(int64_t step) {
    const int64_t more = at(step).padding();
    if (more > 0) lstm_multiply(weights_, more, hidden_, my_.pad_h, my_.pad_gates, 0.0f);
  }

  // Copies the gate gradients to dz, in which every entry has a row of its own.
  void scatter_gates() {
    const int64_t first = at(segment_.step_begin).entry();
    const int64_t entries = at(segment_.step_end).entry() - first;
    for (int64_t i = 0; i < entries; ++i) {
      std::copy_n(my_.gates + i * 4 * hidden_, 4 * hidden_, args_.dz + int64_t{view_.col[first + i]} * 4 * hidden_);
    }
  }

  // Computes dw += Σ over entries of (hidden state before the step)ᵀ · gate gradients. There is no
  // state before step 0.
  void add_weight_grad() {
    const int64_t first = segment_.step_begin > 0 ? 0 : at(0).rows();
    const int64_t entries = at(segment_.step_end).entry() - at(segment_.step_begin).entry() - first;
    gemm_tile_tn(entries, 4 * hidden_, hidden_, my_.h_before + first * hidden_, hidden_,
                 my_.gates + first * 4 * hidden_, 4 * hidden_, my_.dw, 4 * hidden_, 1.0f);
  }

  const LstmGradArgs& args_;
  const LstmView& view_;
  const LstmView::Segment& segment_;
  const LstmView::Batch& batch_;
  int64_t hidden_;
  LstmWeights weights_;
  Workspace my_;
};

void zero(float* values, int64_t count) {
  parallel_for(count, 1 << 18, [&](int64_t begin, int64_t end) { std::fill(values + begin, values + end, 0.0f); });
}

void add_round(const LstmGradArgs& args, const LstmView::Round& round, const float* gates) {
  const LstmView& view = *args.view;
  const RowSumsInto into = {{view.sum_ptr.data(), view.sum_work_row.data(), nullptr, nullptr, view.sum_work_row.size()},
                            view.sum_row.data()};
  parallel_for(round.sum_end - round.sum_begin, 128, [&](int64_t begin, int64_t end) {
    gather_sum_add(into, round.sum_begin + begin, round.sum_begin + end, gates, 4 * args.hidden, args.dz);
  });
}

}  // namespace

int64_t lstm_grad_workspace(const LstmView& view, int64_t hidden) {
  Carve count(nullptr);
  carve(view, hidden, count);
  return count.used();
}

void lstm_backward(const LstmGradArgs& args) {
  const LstmView& view = *args.view;
  const int64_t hidden = args.hidden;
  Carve memory(args.workspace);
  const Workspace ws = carve(view, hidden, memory);
  gemm_pack_nn(4 * hidden, hidden, args.w, 4 * hidden, ws.packed);
  gemm_pack_nt(hidden, 4 * hidden, args.w, 4 * hidden, ws.packed_t);
  const int64_t dw_size = hidden * 4 * hidden;
  const bool add_up = args.dz != nullptr && !view.options.on_edges;
  if (add_up) zero(args.dz, view.z_rows() * 4 * hidden);
  if (view.options.pad) {
    zero(ws.pad_gates, view.workers * view.max_rows * 4 * hidden);
    zero(ws.pad_h, view.workers * view.max_rows * hidden);
  }
  if (args.dw != nullptr) zero(ws.dw, view.workers * dw_size);
  for (size_t r = 0; r < view.rounds.size(); ++r) {
    parallel_tasks(view.workers, [&](int64_t worker) {
      const int64_t s = view.schedule[r * static_cast<size_t>(view.workers) + static_cast<size_t>(worker)];
      if (s >= 0) Worker(args, ws, worker, view.segments[s]).run();
    });
    if (add_up) add_round(args, view.rounds[r], ws.gates);
  }
  if (args.dw == nullptr) return;
  parallel_for(dw_size, 2048, [&](int64_t begin, int64_t end) {
    std::fill(args.dw + begin, args.dw + end, 0.0f);
    for (int64_t worker = 0; worker < view.workers; ++worker) {
      const float* term = ws.dw + worker * dw_size;
      for (int64_t i = begin; i < end; ++i) args.dw[i] += term[i];
    }
  });
}

}  // namespace nacre::cpu
