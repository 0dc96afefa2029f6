// Prepares the LSTM kernels: batches, segments, and what each round of the backward pass adds to
// which vertex.
#include <algorithm>
#include <numeric>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/graph/radix.h"
#include "nacre/kernel/cpu/lstm.h"

namespace nacre::cpu {
namespace {

constexpr int64_t kMostBatchRows = 2048;
// A batch may be reduced to this many rows if it then fits one segment, so that nothing is computed
// twice.
constexpr int64_t kFewBatchRows = 24;
// Largest number of entries of a segment. A step with few rows counts as kStepCost entries, because
// reading w costs as much.
constexpr int64_t kSegmentEntries = 2048;
constexpr int64_t kStepCost = 6;
// Largest number of rows of states that a batch keeps at the borders of its segments. Only a batch
// of one row may keep more.
constexpr int64_t kKeptRows = 2048;
constexpr int64_t kWorkers = 16;

class Lengths {
 public:
  Lengths(const RowView& view, const Array<NodeId>& order) : view_(view), order_(order) {}
  int64_t operator[](int64_t i) const { return view_.row_ptr[order_[i] + int64_t{1}] - view_.row_ptr[order_[i]]; }

 private:
  const RowView& view_;
  const Array<NodeId>& order_;
};

// Returns the rows with entries, the longest first; rows of equal length keep their order.
Array<NodeId> sort_rows(const RowView& view) {
  std::vector<NodeId> rows;
  for (int64_t row = 0; row < view.rows; ++row) {
    if (view.row_ptr[row + 1] > view.row_ptr[row]) rows.push_back(static_cast<NodeId>(row));
  }
  const Array<NodeId> filled(std::move(rows));
  const Lengths length(view, filled);
  int64_t longest = 0;
  for (int64_t i = 0; i < filled.size(); ++i) longest = std::max(longest, length[i]);
  Buffer<NodeId> keys(filled.size());
  for (int64_t i = 0; i < filled.size(); ++i) keys[i] = static_cast<NodeId>(longest - length[i]);
  const GroupedBy sorted = group_stable(keys.data(), filled.size(), longest + 1);
  Buffer<NodeId> order(filled.size());
  for (int64_t i = 0; i < filled.size(); ++i) order[i] = filled[sorted.order[i]];
  return std::move(order).freeze();
}

// Cuts rows [begin, end), run as one batch, into segments. Returns the number of rows of states
// kept at their borders.
int64_t cut_segments(const Lengths& length, int64_t begin, int64_t end, std::vector<LstmView::Segment>& segments) {
  int64_t running = end - begin;
  int64_t kept = 0;
  int64_t cost = 0;
  segments.assign(1, {0, 0, 0, 0});
  for (int64_t step = 0; step < length[begin]; ++step) {
    while (length[begin + running - 1] <= step) --running;
    cost += std::max(running, kStepCost);
    if (cost > kSegmentEntries) {
      segments.push_back({0, step, step, kept});
      kept += running;
      cost = std::max(running, kStepCost);
    }
    segments.back().step_end = step + 1;
  }
  return kept;
}

void cut_batches(LstmView& view, const Lengths& length) {
  const int64_t most = std::clamp<int64_t>(view.options.batch_rows, 1, kMostBatchRows);
  std::vector<LstmView::Segment> segments;
  int64_t first_step = 0;
  for (int64_t begin = 0; begin < view.row_order.size();) {
    const int64_t fit = kSegmentEntries / length[begin];
    int64_t rows = fit >= kFewBatchRows && !view.options.one_pass ? std::min(fit, most) : most;
    rows = std::min(rows, view.row_order.size() - begin);
    int64_t kept = view.options.one_pass ? 0 : cut_segments(length, begin, begin + rows, segments);
    while (kept > kKeptRows && rows > 1) {
      rows = (rows + 1) / 2;
      kept = cut_segments(length, begin, begin + rows, segments);
    }
    const auto first = static_cast<int64_t>(view.segments.size());
    for (LstmView::Segment& segment : segments) segment.batch = static_cast<int64_t>(view.batches.size());
    view.segments.insert(view.segments.end(), segments.begin(), segments.end());
    view.batches.push_back(
        {begin, begin + rows, first_step, length[begin], first, static_cast<int64_t>(view.segments.size())});
    view.max_rows = std::max(view.max_rows, rows);
    view.max_kept_rows = std::max(view.max_kept_rows, kept);
    first_step += length[begin];
    begin += rows;
  }
}

// Fills in the entries step by step: first step_ptr, then the rows of z.
void fill_steps(LstmView& view, const Lengths& length) {
  const RowView& rows = *view.by_dst;
  const int64_t steps = view.batches.empty() ? 0 : view.batches.back().first_step + view.batches.back().steps;
  Buffer<int64_t> step_ptr(steps + 1);
  int64_t entries = 0;
  for (const LstmView::Batch& batch : view.batches) {
    int64_t running = batch.end - batch.begin;
    for (int64_t step = 0; step < batch.steps; ++step) {
      while (length[batch.begin + running - 1] <= step) --running;
      step_ptr[batch.first_step + step] = entries;
      entries += running;
    }
  }
  step_ptr[steps] = entries;
  view.step_ptr = std::move(step_ptr).freeze();
  Buffer<NodeId> col(entries);
  parallel_tasks(static_cast<int64_t>(view.batches.size()), [&](int64_t b) {
    const LstmView::Batch& batch = view.batches[b];
    for (int64_t i = batch.begin; i < batch.end; ++i) {
      const int64_t first = rows.row_ptr[view.row_order[i]];
      for (int64_t step = 0; step < length[i]; ++step) {
        const int64_t edge = first + step;
        col[view.step_ptr[batch.first_step + step] + i - batch.begin] =
            view.options.on_edges ? static_cast<NodeId>(edge) : rows.col[edge];
      }
    }
  });
  view.col = std::move(col).freeze();
}

int64_t first_entry(const LstmView& view, const LstmView::Segment& segment) {
  return view.step_ptr[view.batches[segment.batch].first_step + segment.step_begin];
}

int64_t entries_of(const LstmView& view, const LstmView::Segment& segment) {
  const LstmView::Batch& batch = view.batches[segment.batch];
  return view.step_ptr[batch.first_step + segment.step_end] - view.step_ptr[batch.first_step + segment.step_begin];
}

// Gives every batch to the worker with the fewest rounds. The segments of a batch follow each
// other, the last one first.
void make_schedule(LstmView& view) {
  view.workers = std::min(kWorkers, static_cast<int64_t>(view.batches.size()));
  std::vector<std::vector<int64_t>> workers(view.workers);
  const auto shorter = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  for (const LstmView::Batch& batch : view.batches) {
    auto& worker = *std::min_element(workers.begin(), workers.end(), shorter);
    for (int64_t s = batch.segment_end; s-- > batch.segment_begin;) worker.push_back(s);
  }
  size_t rounds = 0;
  for (const auto& worker : workers) rounds = std::max(rounds, worker.size());
  view.schedule.assign(rounds * workers.size(), -1);
  for (size_t l = 0; l < workers.size(); ++l) {
    for (size_t r = 0; r < workers[l].size(); ++r) view.schedule[r * workers.size() + l] = workers[l][r];
  }
  for (const LstmView::Segment& segment : view.segments) {
    view.max_entries = std::max(view.max_entries, entries_of(view, segment));
  }
}

// Returns the entries of one round as (vertex, workspace row), sorted. This is the order in which
// the gradients of a vertex are added.
std::vector<uint64_t> round_entries(const LstmView& view, int64_t round) {
  std::vector<uint64_t> entries;
  for (int64_t worker = 0; worker < view.workers; ++worker) {
    const int64_t s = view.schedule[round * view.workers + worker];
    if (s < 0) continue;
    const LstmView::Segment& segment = view.segments[s];
    const NodeId* col = view.col.data() + first_entry(view, segment);
    const int64_t count = entries_of(view, segment);
    for (int64_t i = 0; i < count; ++i) {
      entries.push_back(static_cast<uint64_t>(col[i]) << 32 | static_cast<uint64_t>(worker * view.max_entries + i));
    }
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

void plan_rounds(LstmView& view) {
  const auto rounds = view.workers == 0 ? 0 : static_cast<int64_t>(view.schedule.size()) / view.workers;
  std::vector<int64_t> first_work_row(static_cast<size_t>(rounds) + 1, 0);
  for (size_t i = 0; i < view.schedule.size(); ++i) {
    if (view.schedule[i] < 0) continue;
    const int64_t entries = entries_of(view, view.segments[view.schedule[i]]);
    first_work_row[i / static_cast<size_t>(view.workers) + 1] += entries;
  }
  std::partial_sum(first_work_row.begin(), first_work_row.end(), first_work_row.begin());
  Buffer<NodeId> work_row(first_work_row.back());
  std::vector<std::vector<NodeId>> row(static_cast<size_t>(rounds));
  std::vector<std::vector<int64_t>> begin(static_cast<size_t>(rounds));
  parallel_tasks(rounds, [&](int64_t r) {
    const auto i = static_cast<size_t>(r);
    int64_t at = first_work_row[i];
    for (const uint64_t entry : round_entries(view, r)) {
      const auto vertex = static_cast<NodeId>(entry >> 32);
      if (row[i].empty() || row[i].back() != vertex) {
        row[i].push_back(vertex);
        begin[i].push_back(at);
      }
      work_row[at++] = static_cast<NodeId>(entry);
    }
  });
  std::vector<NodeId> sum_row;
  std::vector<int64_t> sum_ptr;
  for (size_t r = 0; r < row.size(); ++r) {
    const auto first = static_cast<int64_t>(sum_row.size());
    sum_row.insert(sum_row.end(), row[r].begin(), row[r].end());
    sum_ptr.insert(sum_ptr.end(), begin[r].begin(), begin[r].end());
    view.rounds.push_back({first, static_cast<int64_t>(sum_row.size())});
  }
  sum_ptr.push_back(work_row.size());
  view.sum_row = std::move(sum_row);
  view.sum_ptr = std::move(sum_ptr);
  view.sum_work_row = std::move(work_row).freeze();
}

}  // namespace

std::shared_ptr<const LstmView> make_lstm_view(std::shared_ptr<const RowView> by_dst, const LstmOptions& options) {
  NACRE_CHECK(by_dst->direction == Direction::by_dst, "an LSTM needs the edges grouped by destination");
  auto view = std::make_shared<LstmView>();
  view->by_dst = std::move(by_dst);
  view->options = options;
  view->row_order = sort_rows(*view->by_dst);
  const Lengths length(*view->by_dst, view->row_order);
  cut_batches(*view, length);
  fill_steps(*view, length);
  if (options.one_pass) return view;
  make_schedule(*view);
  if (options.on_edges) {
    view->rounds.resize(view->workers == 0 ? 0 : view->schedule.size() / static_cast<size_t>(view->workers));
  } else {
    plan_rounds(*view);
  }
  return view;
}

int64_t LstmView::bytes() const {
  return static_cast<int64_t>((row_order.size() + col.size() + sum_row.size() + sum_work_row.size()) * sizeof(NodeId) +
                              (step_ptr.size() + sum_ptr.size()) * sizeof(int64_t) + batches.size() * sizeof(Batch) +
                              segments.size() * sizeof(Segment) + schedule.size() * sizeof(int64_t) +
                              rounds.size() * sizeof(Round));
}

}  // namespace nacre::cpu
