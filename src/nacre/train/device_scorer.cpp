#include "nacre/train/device_scorer.h"

#include <algorithm>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/trace.h"
#include "nacre/kernel/cuda/sample.h"
#include "nacre/train/batch_inputs.h"
#include "nacre/train/metrics.h"

namespace nacre {
namespace {

constexpr int64_t kChunkBytes = int64_t{16} << 20;

double share(double part, double whole) { return whole == 0 ? NAN : part / whole; }

double score_of(const std::string& metric, const ScoreCounts& counts) {
  if (metric == "accuracy") return share(counts.hits, counts.first);
  return share(2 * counts.hits, counts.first + counts.second);
}

Array<NodeId> numbers(int64_t begin, int64_t count) {
  std::vector<NodeId> list(static_cast<size_t>(count));
  std::iota(list.begin(), list.end(), static_cast<NodeId>(begin));
  return list;
}

}  // namespace

DeviceScorer::DeviceScorer(const RunData& run, std::shared_ptr<GpuContext> gpu) : run_(run), gpu_(std::move(gpu)) {
  const Dataset& d = run_.dataset;
  if (d.labels.empty() && !d.multilabel()) return;
  scores_ = std::make_unique<GpuScores>(
      gpu_, std::vector{d.splits.train.span(), d.splits.val.span(), d.splits.test.span()}, 1, d.num_classes);
}

bool DeviceScorer::counts_on_device() const {
  return run_.metric == (run_.dataset.multilabel() ? "micro_f1" : "accuracy");
}

int64_t DeviceScorer::row_bytes() const { return run_.dataset.num_classes * 4; }

int64_t DeviceScorer::chunk_rows() const {
  return std::clamp<int64_t>(kChunkBytes / std::max<int64_t>(1, row_bytes()), 1,
                             std::max<int64_t>(1, scores_->num_vertices()));
}

int64_t DeviceScorer::device_bytes(bool own_labels) const {
  if (!scores_) return 0;
  int64_t bytes = scores_->bytes();
  if (!counts_on_device()) return bytes + chunk_rows() * row_bytes();
  const int64_t labels = run_.dataset.multilabel() ? run_.dataset.num_classes : 4;
  if (own_labels) bytes += scores_->num_vertices() * labels;
  return bytes;
}

int64_t DeviceScorer::host_bytes() const {
  return scores_ && !counts_on_device() ? scores_->num_vertices() * row_bytes() : 0;
}

void DeviceScorer::pack_labels() {
  const Dataset& d = run_.dataset;
  packed_.num_classes = d.num_classes;
  int64_t count = 0;
  const auto next = [&](const Array<NodeId>& split) {
    count += split.size();
    return numbers(count - split.size(), split.size());
  };
  packed_.splits = {next(d.splits.train), next(d.splits.val), next(d.splits.test)};
  std::vector<NodeId> all;
  for (const Array<NodeId>* split : {&d.splits.train, &d.splits.val, &d.splits.test})
    all.insert(all.end(), split->begin(), split->end());
  if (d.multilabel()) {
    packed_.targets = gather_rows(d.targets, all);
    return;
  }
  std::vector<int32_t> labels;
  labels.reserve(all.size());
  for (const NodeId v : all) labels.push_back(d.labels[v]);
  packed_.labels = std::move(labels);
}

void DeviceScorer::prepare(const void* labels) {
  if (!scores_) return;
  const bool multiple = run_.dataset.multilabel();
  GpuLabels on_device = {multiple ? cuda::ScoreLabels::multiple : cuda::ScoreLabels::single, labels, true};
  if (!counts_on_device()) {
    pack_labels();
    chunk_ = gpu_->allocate(chunk_rows() * row_bytes());
    gpu_->compiler().code(cuda::gather_rows(run_.dataset.num_classes));
  } else if (labels == nullptr) {
    pack_labels();
    const void* host = multiple ? packed_.targets.raw() : packed_.labels.data();
    const int64_t bytes = multiple ? packed_.targets.bytes() : packed_.labels.size() * 4;
    labels_ = gpu_->allocate(bytes);
    if (bytes > 0) gpu_->device().upload(labels_.get(), host, bytes);
    packed_ = {};
    on_device.values = labels_.get();
    on_device.by_vertex = false;
  }
  scores_->start(on_device);
}

Scores DeviceScorer::score(Executor& executor, bool with_loss) {
  const TraceSpan span("evaluate", "scores");
  if (!scores_) return {};
  return counts_on_device() ? from_counts(executor, with_loss) : from_rows(executor, with_loss);
}

Scores DeviceScorer::from_counts(Executor& executor, bool with_loss) {
  const NodeRef logits = executor.plan().dfg.output("logits");
  NACRE_CHECK(!executor.is_narrow(logits), "the logits are stored as bf16, but scores are computed from f32");
  ScoreLoss loss;
  const std::vector<ScoreCounts> counts =
      scores_->run(static_cast<const float*>(executor.pointer(logits)), with_loss ? &loss : nullptr);
  Scores s;
  s.train = score_of(run_.metric, counts[0]);
  s.val = score_of(run_.metric, counts[1]);
  s.test = score_of(run_.metric, counts[2]);
  if (with_loss) s.val_loss = share(loss.sum, loss.counted);
  return s;
}

Scores DeviceScorer::from_rows(Executor& executor, bool with_loss) {
  const NodeRef logits = executor.plan().dfg.output("logits");
  NACRE_CHECK(!executor.is_narrow(logits), "the logits are stored as bf16, but scores are computed from f32");
  const int64_t count = scores_->num_vertices(), width = run_.dataset.num_classes;
  if (!rows_.defined()) rows_ = Tensor(DType::f32, {count, width});
  for (int64_t b = 0; b < count; b += chunk_rows()) {
    const int64_t rows = std::min(chunk_rows(), count - b);
    gpu_->gather_rows(executor.pointer(logits), scores_->vertices() + b, chunk_.get(), {rows, width});
    gpu_->device().download(rows_.data<float>() + b * width, chunk_.get(), rows * row_bytes());
  }
  return score_splits(run_.metric, packed_, rows_.data<float>(), with_loss);
}

}  // namespace nacre
