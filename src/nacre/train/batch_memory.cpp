// The part of BatchSession that decides where batches and evaluations keep their data, and counts
// the memory of the host and of a GPU.
#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/train/batch_session.h"

namespace nacre {
namespace {

constexpr const char* kFewer = "use a smaller --batch-size, --prefetch or --fanout";

// Smaller blocks than this may stay with the allocator when they are given back.
constexpr int64_t kKeptByAllocator = int64_t{32} << 20;

// The arrays of blocks are sent in pieces of this size.
constexpr int64_t kBlockBytes = int64_t{8} << 20;

std::string size_of(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

// Returns the bytes of the views of a block in device memory: both directions, and a unit of work
// for each row.
int64_t forms_bytes(const Graph& block) {
  constexpr int64_t entry = 12, row = 40;
  return block.num_edges() * entry + (block.num_src() + block.num_dst()) * row;
}

}  // namespace

// Counts the trial batches, and one whose seeds have the most neighbours. Later batches are hardly
// larger.
void BatchSession::count_batches(const std::vector<Sample>& trials) {
  for (const Sample& sample : trials) count_batch(sample);
  if (sampler_->draws_seeds()) return;
  const Array<NodeId>& train = run_.dataset.splits.train;
  std::vector<NodeId> seeds(train.begin(), train.end());
  const auto count = static_cast<size_t>(std::min<int64_t>(run_.config.batch_size, train.size()));
  const auto degree = [&](NodeId v) { return run_.dataset.graph.in_degree(v); };
  std::partial_sort(seeds.begin(), seeds.begin() + static_cast<std::ptrdiff_t>(count), seeds.end(),
                    [&](NodeId a, NodeId b) { return degree(a) != degree(b) ? degree(a) > degree(b) : a < b; });
  seeds.resize(count);
  count_batch(sampler_->sample(seeds, {~uint64_t{0}, ~uint64_t{0}}));
}

void BatchSession::count_batch(const Sample& sample) {
  const int64_t rows = sample.vertices.size();
  int64_t blocks = 0, forms = 0;
  for (const Graph& block : sample.blocks) {
    blocks += block.bytes() + block.num_edges() * 12;  // with edges and scales
    forms += forms_bytes(block);
  }
  largest_arena_ = std::max(largest_arena_, runner_->prepare(Blocks(sample.blocks))->arena_bytes());
  largest_.rows = std::max(largest_.rows, rows * feature_width() * 4);
  largest_.blocks = std::max(largest_.blocks, blocks);
  largest_.forms = std::max(largest_.forms, forms + rows * 8);
}

// Returns the bytes that each batch under way takes of a GPU's memory.
int64_t BatchSession::batch_bytes() const {
  const int64_t sent = device_features_ == nullptr ? largest_.rows + largest_.rows / 2 : 0;
  return largest_.rows + largest_.forms + kBlockBytes + sent;
}

int64_t BatchSession::drawing_bytes(int ahead) const {
  return run_.dataset.graph.bytes() + ahead * (run_.dataset.num_nodes() * 4 + largest_.blocks);
}

void BatchSession::place_features() {
  if (learned_ != nullptr) {
    if (run_.config.features_on == "host")
      throw UserError("--features-on", "learned features are weights, which are always in device memory",
                      "leave it out");
    device_features_ = learner_->place(*learned_);
    return;
  }
  const Tensor& features = run_.dataset.features;
  const std::string& where = run_.config.features_on;
  const int64_t free = device_->backend()->available_bytes();
  const std::string size = size_of(features.bytes());
  if (where == "device" && features.bytes() > free) {
    throw UserError("--features-on",
                    "the features take " + size + ", but only " + size_of(free) + " of device memory are free",
                    "use auto or host");
  }
  // Features may take half of what is free; the rest is for batches.
  const bool fits = features.bytes() <= free / 2;
  if (where == "device" || (where == "auto" && fits)) {
    device_features_ = learner_->leaf("x", features);
    run_.notes.push_back("features (" + size + ") are in device memory, where rows are looked up");
  } else {
    run_.notes.push_back("features (" + size + ") " + (fits ? "stay on the host" : "do not fit in device memory") +
                         ": the rows of each batch are sent to the device");
  }
}

// Prepares more batches ahead than threads work on at the same time, because batches are taken in
// order and differ in size. They may take half of the memory that is left.
void BatchSession::choose_prefetch() {
  int& ahead = run_.config.loader.in_flight;
  if (ahead >= 0) return;
  ahead = device_->batches_ahead();
  if (device_->on_host()) {
    const int64_t limit = memory_limit();
    while (ahead > 0 && total_bytes(host_memory()) > limit) --ahead;
    return;
  }
  ahead *= 2;
  const int64_t most = device_->backend()->available_bytes() / 2 / std::max<int64_t>(1, batch_bytes()) - 1;
  const int64_t pinned =
      device_features_ == nullptr ? available_memory() / 4 / std::max<int64_t>(1, largest_.rows) - 1 : ahead;
  ahead = static_cast<int>(std::clamp<int64_t>(std::min(most, pinned), 1, ahead));
}

void BatchSession::sample_on_device() {
  const std::string& where = run_.config.sample_on;
  if (where == "host") return;
  const int ahead = run_.config.loader.in_flight + 1;
  const auto& nodes = dfg_.nodes();
  const bool scaled = std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
    return node.op == Op::input && node.name.starts_with("edge_scale.");
  });
  const std::function<BatchOrder()> order = [this] { return batch_order(); };
  const bool required = where == "device";
  const DrawAnswer drawing =
      device_->draw_batches({run_.config.sampling, *sampler_, order, ahead, scaled, drawing_bytes(ahead), required});
  if (!drawing.make) {
    if (required) throw UserError("--sample-on", drawing.why_not, "use auto or host");
    return;
  }
  sampler_->draw_with(drawing.make);
  draws_on_device_ = true;
  run_.notes.emplace_back("neighbours are drawn on the device");
}

// --deterministic must not depend on how much memory this machine has.
void BatchSession::choose_evaluation(bool embeddings) {
  if (run_.config.deterministic || (!device_->on_host() && device_features_ == nullptr)) return;
  const int64_t room = memory_limit() - total_bytes(memory());
  // The views of the graph, the values of two layers, and as much again for work and constants.
  if (forms_bytes(run_.dataset.graph) + 2 * inference_->bytes() > room) return;
  auto whole = std::make_unique<WholeInference>(run_, *learner_, *device_, embeddings);
  auto scorer = device_->make_scorer(run_);
  if (whole->bytes() + scorer->device_bytes(true) > room) return;
  whole_ = std::move(whole);
  scorer_ = std::move(scorer);
}

std::vector<MemoryItem> BatchSession::memory() const { return device_->on_host() ? host_memory() : device_memory(); }

std::vector<MemoryItem> BatchSession::device_memory() const {
  std::vector<MemoryItem> items = {{"parameters", learner_->parameter_bytes()}};
  if (!learner_->trains()) return items;
  const int batches = run_.config.loader.in_flight + 1;
  items.push_back({"optimiser state and gradients", learner_->optimizer_bytes() + learner_->parameter_bytes()});
  if (device_features_ != nullptr && learned_ == nullptr) items.push_back({"features", run_.dataset.features.bytes()});
  if (draws_on_device_) items.push_back({"graph and tables to draw from", drawing_bytes(batches)});
  items.push_back({fmt::format("{} batches (rows and blocks)", batches), batches * batch_bytes()});
  items.push_back({"arena (activations, gradients, work)", largest_arena_ + largest_arena_ / 4});
  if (whole_) items.push_back({"evaluation on the whole graph", whole_->bytes() + scorer_->device_bytes(true)});
  return items;
}

std::vector<MemoryItem> BatchSession::host_memory() const {
  const int64_t batches = run_.config.loader.in_flight + 1;
  std::vector<MemoryItem> items = {
      {"graph", run_.dataset.graph.bytes()},
      {"features", learned_ != nullptr ? 0 : run_.dataset.features.bytes()},
      {"labels, splits and degrees", run_.label_bytes() + inputs_->bytes()},
      {"parameters", learner_->parameter_bytes()},
  };
  if (!whole_) {
    items.push_back({"values of two layers, for evaluation", inference_->bytes()});
    items.push_back({"work on a block of them", inference_work_});
  } else if (!device_->on_host()) {
    if (scorer_->host_bytes() > 0) items.push_back({"results of an evaluation", scorer_->host_bytes()});
  } else {
    items.push_back({"evaluation on the whole graph", whole_->bytes()});
  }
  if (!learner_->trains()) return items;
  items.push_back(
      {"optimiser state, gradients and best weights", learner_->optimizer_bytes() + 2 * learner_->parameter_bytes()});
  if (!device_->on_host()) {
    const int64_t rows = device_features_ == nullptr ? largest_.rows + largest_.rows / 2 : 0;
    items.push_back({fmt::format("{} batches (blocks, rows to send)", batches),
                     batches * (largest_.blocks + 2 * largest_.forms + rows)});
  } else {
    // The rows of a batch have an eighth to spare. Its arrays exist twice while they are drawn.
    const int64_t all_rows = run_.dataset.num_nodes() * feature_width() * 4;
    const int64_t rows = std::min(largest_.rows + largest_.rows / 4, all_rows);
    const int64_t arrays = 2 * largest_.blocks + largest_.forms;
    // One buffer more is counted, because a buffer that grows may leave its old memory with the
    // allocator.
    const int64_t buffers = learned_ != nullptr ? 2 : batches + 1;
    items.push_back({fmt::format("{} batches (features)", batches), buffers * (rows + rows / 8)});
    items.push_back({fmt::format("{} batches (blocks and their forms)", batches), batches * (arrays + arrays / 4)});
    items.push_back({"tables to draw from", (batches + 1) * run_.dataset.num_nodes() * 8});
    const int64_t old_arena = std::min(largest_arena_, kKeptByAllocator);
    items.push_back({"arena (activations, gradients, work)", largest_arena_ + largest_arena_ / 4 + old_arena});
  }
  return items;
}

int64_t BatchSession::memory_limit() const {
  // The bill counts what the run holds already, so all that was free at first may be taken.
  return device_->memory_limit(run_.config, device_->free_at_start());
}

HostMemory BatchSession::host() const {
  HostMemory host;
  host.gpu = !device_->on_host();
  host.training = host_memory();
  host.evaluating = {{"scores being ranked", ranking_bytes(run_.metric, run_.dataset)}};
  host.held = run_.dataset.graph.bytes() + run_.dataset.features.bytes() + run_.label_bytes() + inputs_->bytes() +
              learner_->parameter_bytes() + learner_->optimizer_bytes() + views_->bytes();
  return host;
}

void BatchSession::check_memory() const {
  if (device_->on_host())
    return require_fit(host_memory(), memory_limit(), kFewer + std::string(", or raise --memory-limit"));
  require_fit(host_memory(), host_bound(run_.config, true).bytes - run_.config.program_bytes, kFewer);
  require_fit(
      device_memory(), memory_limit(),
      std::string(kFewer) + (device_features_ != nullptr && learned_ == nullptr ? ", or --features-on host" : ""));
}

}  // namespace nacre
