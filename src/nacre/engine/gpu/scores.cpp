#include "nacre/engine/gpu/scores.h"

#include <algorithm>

#include "nacre/base/error.h"

namespace nacre {
namespace {

constexpr int64_t kSumBytes = cuda::kScoreSums * static_cast<int64_t>(sizeof(double));

void add_pieces(std::vector<cuda::ScorePiece>& pieces, int64_t begin, int64_t end) {
  for (int64_t b = begin; b < end; b += cuda::kScorePieceRows)
    pieces.push_back({b, std::min(end, b + cuda::kScorePieceRows)});
}

template <class T>
std::shared_ptr<void> upload(GpuContext& context, const std::vector<T>& values) {
  const auto bytes = static_cast<int64_t>(values.size() * sizeof(T));
  std::shared_ptr<void> memory = context.allocate(bytes);
  if (bytes > 0) context.device().upload(memory.get(), values.data(), bytes);
  return memory;
}

GpuFunction function_of(GpuContext& context, const cuda::Source& source) {
  return {context.compiler().code(source), source.threads, source.shared_bytes};
}

}  // namespace

GpuScores::GpuScores(std::shared_ptr<GpuContext> context, std::vector<std::span<const NodeId>> lists, size_t loss_list,
                     int64_t classes)
    : context_(std::move(context)), lists_(std::move(lists)), classes_(classes) {
  std::vector<int64_t> begin = {0};
  for (const std::span<const NodeId> list : lists_) {
    first_.push_back(static_cast<int64_t>(pieces_.size()));
    add_pieces(pieces_, begin.back(), begin.back() + std::ssize(list));
    begin.push_back(begin.back() + std::ssize(list));
  }
  num_vertices_ = begin.back();
  first_.push_back(static_cast<int64_t>(pieces_.size()));
  add_pieces(pieces_, begin.at(loss_list), begin.at(loss_list + 1));
  first_.push_back(static_cast<int64_t>(pieces_.size()));
}

int64_t GpuScores::bytes() const {
  return num_vertices_ * static_cast<int64_t>(sizeof(NodeId)) +
         static_cast<int64_t>(pieces_.size()) * (kSumBytes + static_cast<int64_t>(sizeof(cuda::ScorePiece))) +
         static_cast<int64_t>(first_.size()) * (kSumBytes + 8);
}

void GpuScores::start(const GpuLabels& labels) {
  labels_ = labels;
  std::vector<NodeId> all;
  all.reserve(num_vertices_);
  for (const std::span<const NodeId> list : lists_) all.insert(all.end(), list.begin(), list.end());
  vertices_ = upload(*context_, all);
  device_pieces_ = upload(*context_, pieces_);
  device_first_ = upload(*context_, first_);
  sums_ = context_->allocate(static_cast<int64_t>(pieces_.size()) * kSumBytes);
  totals_ = context_->allocate(static_cast<int64_t>(lists_.size() + 1) * kSumBytes);
  rows_ = function_of(*context_, cuda::score_rows(labels_.kind, classes_));
  sum_ = function_of(*context_, cuda::score_totals());
}

std::vector<ScoreCounts> GpuScores::run(const float* logits, ScoreLoss* loss) {
  NACRE_CHECK(sums_ != nullptr, "scores were asked for before start()");
  const size_t lists = lists_.size();
  const auto launch = [&](const GpuFunction& function, size_t list, int64_t count) {
    const cuda::ScoreParams params = {
        .logits = logits,
        .labels = labels_.values,
        .rows = vertices_.get(),
        .pieces = static_cast<const cuda::ScorePiece*>(device_pieces_.get()) + first_[list],
        .places = static_cast<double*>(sums_.get()) + first_[list] * cuda::kScoreSums,
        .classes = classes_,
        .by_row = labels_.by_vertex ? 1 : 0,
    };
    context_->launch(function, count, params)();
  };
  launch(rows_, 0, first_[lists]);
  if (loss != nullptr && loss_.code == nullptr) loss_ = function_of(*context_, cuda::score_loss(labels_.kind));
  if (loss != nullptr) launch(loss_, lists, first_[lists + 1] - first_[lists]);
  const auto results = static_cast<int64_t>(lists + (loss != nullptr ? 1 : 0));
  const cuda::ScoreTotalsParams sums = {.places = sums_.get(), .first = device_first_.get(), .out = totals_.get()};
  context_->launch(sum_, results, sums)();
  std::vector<ScoreCounts> counts(results);
  static_assert(sizeof(ScoreCounts) == kSumBytes);
  context_->device().download(counts.data(), totals_.get(), results * kSumBytes);
  if (loss != nullptr) {
    *loss = {counts.back().hits, counts.back().first};
    counts.pop_back();
  }
  return counts;
}

}  // namespace nacre
