#include "nacre/train/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"
#include "nacre/base/trace.h"
#include "nacre/model/recommender.h"

namespace nacre {
namespace {

// Draws normal numbers from pairs of uniform ones (Box and Muller). The same key gives the same
// numbers at the same places.
void draw_normal(float* out, int64_t size, double deviation, uint64_t key) {
  parallel_for((size + 3) / 4, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const PhiloxBlock bits = philox(key, 0, static_cast<uint64_t>(b));
      for (int64_t i = 0; i < std::min<int64_t>(4, size - 4 * b); ++i) {
        const auto pair = static_cast<size_t>(i / 2 * 2);
        const double radius = std::sqrt(-2 * std::log(1 - double{uniform01(bits[pair])}));
        const double angle = 2 * std::numbers::pi * uniform01(bits[pair + 1]);
        out[4 * b + i] = static_cast<float>(deviation * radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle)));
      }
    }
  });
}

uint64_t hash_text(uint64_t h, const std::string& text) {
  for (const char c : text) h = mix_key(h, static_cast<unsigned char>(c));
  return h;
}

// Returns which nodes depend on the edges or destinations of a block, directly or through other
// nodes.
std::vector<char> depends_on_block(const Dfg& dfg, int block) {
  std::vector<char> depends;
  for (const Node& node : dfg.nodes()) {
    const Space s = node.type.space;
    const bool degree = node.op == Op::degree && node.attr == Attr::src && s == Space::vertex(block);
    bool here = degree || s == Space::vertex(block + 1) || (s.is_typed() && s.layer == block);
    for (const NodeRef in : node.inputs) here = here || depends[in] != 0;
    depends.push_back(here ? 1 : 0);
  }
  return depends;
}

// The last block changes with every batch, so kernels for it that the plan runs once are moved to
// the beginning of the step.
void compute_block_every_step(Plan& plan, int block) {
  const std::vector<char> depends = depends_on_block(plan.dfg, block);
  const auto changes = [&](const Kernel& k) {
    return k.once && std::any_of(k.nodes.begin(), k.nodes.end(), [&](NodeRef i) { return depends[i] != 0; });
  };
  const auto rest = std::stable_partition(plan.kernels.begin(), plan.kernels.end(), changes);
  for (auto k = plan.kernels.begin(); k != rest; ++k) k->once = false;
}

bool is_learned_rows(const std::string& name) { return name.starts_with("embedding."); }

}  // namespace

void check_recommend(const RecommendOptions& options) {
  if (options.batch_size < 1) throw UserError("--batch-size", "must be at least 1");
  if (!(options.embedding_decay >= 0 && std::isfinite(options.embedding_decay)))
    throw UserError("--embedding-decay", "must not be negative");
  if (!(options.init_std > 0 && std::isfinite(options.init_std)))
    throw UserError("--embedding-init", "must be positive");
}

RecommendSession::RecommendSession(Dataset dataset, RunConfig config, const RecommendOptions& options,
                                   const RecommendNeeds& needs)
    : config_(std::move(config)),
      options_(options),
      dataset_(std::move(dataset)),
      notes_(dataset_.notes),
      views_(std::make_shared<GraphViews>()) {
  const double start = now_seconds();
  check_recommend(options_);
  if (needs.training) {
    config_.recommend = {{"batch_size", std::to_string(options_.batch_size)},
                         {"embedding_decay", fmt::format("{}", options_.embedding_decay)},
                         {"embedding_init", fmt::format("{}", options_.init_std)},
                         {"positives", options_.positives == Positives::users ? "users" : "pairs"}};
  }
  metric_ = parse_ranking_metric(config_.metric);
  metric_name_ = metric_.name();
  if (!is_recommendation(dataset_)) {
    throw UserError(config_.data, "has no users and items with pairs for testing",
                    "see docs/recommend.md for the layouts");
  }
  device_ = open_device(config_, views_);
  data_fingerprint_ = dataset_.fingerprint();
  sides_ = user_item_sides(dataset_, config_.data);
  taken_ = items_in_graph(dataset_.graph, sides_);
  test_items_ = items_of_pairs(dataset_.test_edges, sides_);
  val_items_ = items_of_pairs(dataset_.val_edges, sides_);
  complete_model();
  if (needs.training) make_training(needs.resumed_plan);
  make_evaluation();
  plan_seconds_ = now_seconds() - start;
}

void RecommendSession::complete_model() {
  ModelOptions& m = config_.model;
  const ModelInfo& info = model_info(m.model);
  if (info.needs_self_loops) dataset_.graph = add_self_loops(dataset_.graph);
  if (dataset_.graph.weighted() && !info.supports_edge_weight) {
    throw UserError("--model " + info.name, "does not use edge weights, but the graph has them",
                    "use a model that does (lightgcn, ngcf), or add --ignore-edge-weights");
  }
  normalize_features(dataset_, config_.normalize_features, notes_);
  const std::vector<VertexKind> kinds = vertex_kinds(dataset_);
  if (!m.kinds.empty()) check_trained_kinds(m.kinds, kinds, config_.data);
  m.kinds = kinds;
  leaves_ = feature_leaves(dataset_, kinds);
  m.num_edge_types = dataset_.graph.typed() ? dataset_.graph.num_edge_types() : 0;
  m.edge_weighted = dataset_.graph.weighted();
  m.loss = "none";
  m.out_dim = 1;  // size of the last layer, which is left out
  m = complete_options(m);
  notes_.push_back(kinds_text(kinds, m.in_dim));
}

void RecommendSession::make_training(const std::string& resumed_plan) {
  batches_ = std::make_unique<TripleBatches>(taken_, sides_, dataset_.num_nodes(),
                                             TripleOptions{options_.batch_size, config_.seed, options_.positives});
  if (batches_->num_pairs() == 0) {
    throw UserError(config_.data, "has no user who took some items and left others",
                    "recommenders need such users to learn from");
  }
  if (batches_->num_pairs() < taken_.size())
    notes_.emplace_back(
        "users who took every item are not trained on, because there is no item that they did not take");
  if (batches_->batch_size() < std::min(options_.batch_size, batches_->num_pairs())) {
    notes_.push_back(fmt::format(
        "the batch size is {} instead of {}, because a batch cannot have more pairs than the graph has nodes",
        batches_->batch_size(), options_.batch_size));
  }
  const int64_t size = batches_->batch_size();
  user_share_ = Tensor::zeros(DType::f32, {3 * size});
  item_share_ = Tensor::zeros(DType::f32, {3 * size});
  target_ = Tensor(DType::u8, {size});
  weight_ = Tensor(DType::f32, {size});
  last_weight_ = Tensor::zeros(DType::f32, {size});
  for (int64_t t = 0; t < size; ++t) {
    user_share_.data<float>()[3 * t] = 1;
    item_share_.data<float>()[3 * t + 1] = 1;
    item_share_.data<float>()[3 * t + 2] = -1;
  }
  std::fill_n(target_.data<uint8_t>(), size, uint8_t{1});
  std::fill_n(weight_.data<float>(), size, 1 / static_cast<float>(size));
  const int64_t last = batches_->counted(batches_->num_batches() - 1);
  std::fill_n(last_weight_.data<float>(), last, 1 / static_cast<float>(last));

  ModelOptions model = config_.model;
  model.training = true;
  Dfg dfg = build_recommender(model, options_.embedding_decay);
  differentiate(dfg);
  model_blocks_ = dfg.num_layers() - 1;
  batches_->begin_epoch(0);
  const Blocks blocks = batch_blocks(0);
  require_parameters(dfg, blocks, config_, true);
  learner_ = std::make_unique<Learner>(Parameters(dfg, blocks, config_.seed), device_->backend());
  draw_embeddings();
  learner_->optimize_with(config_.optimizer);
  Plan plan = training_plan(dfg, resumed_plan);
  compute_block_every_step(plan, model_blocks_);
  runner_ = std::make_unique<BlockRunner>(std::move(plan), device_->backend());
  const std::unique_ptr<Executor> first = runner_->prepare(blocks);
  // Batches differ a little. An arena that is too small for a batch is replaced, but the batches
  // that are already bound keep the old one. So the arena gets some room to spare.
  const std::unique_ptr<Executor> last_batch = runner_->prepare(batch_blocks(batches_->num_batches() - 1));
  step_arena_ = std::max(first->arena_bytes(), last_batch->arena_bytes());
  step_arena_ += step_arena_ / 64;
  step_constants_ = first->constant_bytes({});
}

void RecommendSession::make_evaluation() {
  ModelOptions model = config_.model;
  model.training = false;
  const Dfg dfg = build_recommender(model, 0);
  const Blocks blocks = Blocks::full(dataset_.graph, std::max(1, dfg.num_layers()));
  if (!learner_) {
    require_parameters(dfg, blocks, config_, false);
    learner_ = std::make_unique<Learner>(Parameters(dfg, blocks, config_.seed), device_->backend());
  }
  const PlanOptions how = runner_ ? runner_->plan().options : search_plan(dfg, blocks, {}, {}).options;
  const DeviceTraits traits = device_->backend()->traits();
  eval_ = std::make_unique<Executor>(make_plan(dfg, blocks, how, {.device = &traits}), blocks, device_->backend());
}

void RecommendSession::draw_embeddings() {
  Parameters& parameters = learner_->parameters();
  for (const Parameter& p : parameters.list()) {
    if (!is_learned_rows(p.name)) continue;
    draw_normal(parameters.data(p), p.size, options_.init_std, hash_text(config_.seed, p.name));
  }
}

Blocks RecommendSession::batch_blocks(int64_t batch) const {
  std::vector<Graph> layers(model_blocks_, dataset_.graph);
  layers.push_back(batches_->block(batch));
  return Blocks(std::move(layers));
}

Plan RecommendSession::training_plan(const Dfg& dfg, const std::string& resumed_plan) {
  const PlanRequest request = plan_request(config_, config_.epochs * batches_->num_batches(), resumed_plan);
  // The plan is timed on a back end of its own, whose memory is freed when the plan is made.
  planning_ = plan_training(dfg, batch_blocks(0), device_->backend()->scoped(), request,
                            [this](Executor& executor) { bind_training(executor); });
  return planning_.plan;
}

std::vector<MemoryItem> RecommendSession::memory() const {
  std::vector<MemoryItem> items;
  int64_t features = 0;
  for (const FeatureLeaf& leaf : leaves_) features += leaf.values.bytes();
  const bool gpu = !device_->on_host();
  const int64_t constants = std::max(step_constants_, eval_->constant_bytes({}));
  if (!gpu) items.push_back({"graph", dataset_.graph.bytes()});
  items.push_back(
      {gpu ? "graph and work lists" : "edges by source, and work lists", device_->backend()->graph_bytes()});
  items.push_back({"features", features});
  items.push_back({"parameters", learner_->parameter_bytes()});
  if (learner_->trains()) {
    items.push_back({"gradients", learner_->parameter_bytes()});
    items.push_back({gpu ? "optimiser state" : "optimiser state and best weights",
                     learner_->optimizer_bytes() + (gpu ? 0 : learner_->parameter_bytes())});
  }
  items.push_back({"values computed once", constants});
  items.push_back({"arena (activations, work)", std::max(step_arena_, eval_->arena_bytes())});
  return items;
}

HostMemory RecommendSession::host() const {
  HostMemory host;
  host.gpu = !device_->on_host();
  const int64_t kept = learner_->parameter_bytes() + learner_->optimizer_bytes();
  host.held = dataset_.bytes() + views_->bytes() + kept;
  if (host.gpu) {
    host.training = {{"data", dataset_.bytes()},
                     {"graph's forms for the device", views_->bytes()},
                     {"parameters, optimiser state, best weights", kept + learner_->parameter_bytes()}};
  } else {
    host.training = memory();
    host.training.push_back({"items of users, in the graph and held out", dataset_.bytes() - dataset_.graph.bytes()});
  }
  // The results of all nodes are read in place on the host, and fetched from a device.
  const Dfg& dfg = eval_->plan().dfg;
  const int64_t width = dfg[dfg.outputs().front().second].type.row_size();
  if (host.gpu) host.evaluating.push_back({"results of an evaluation", dataset_.num_nodes() * width * 4});
  host.evaluating.push_back({"items being ranked", ranking_bytes(metric_.k)});
  return host;
}

int64_t RecommendSession::ranking_bytes(int64_t k) const {
  return best_items_bytes(sides_.num_users, sides_.num_items, embedding_width(), k);
}

// Binds the leaves of all steps and of the evaluation.
template <class Binder>
void RecommendSession::bind(Binder& binder) {
  for (const Parameter& p : learner_->list()) binder.bind(p.name, learner_->place(p));
  for (const FeatureLeaf& x : leaves_) binder.bind(x.name, learner_->leaf(x.name, x.values));
  const Array<float>& weight = dataset_.graph.edge_weight();
  if (weight.empty()) return;
  for (int l = 0; l <= model_blocks_; ++l)
    binder.bind(fmt::format("edge_weight.{}", l), learner_->leaf("edge_weight", weight.data(), weight.size() * 4));
}

template <class Binder>
void RecommendSession::bind_training(Binder& binder) {
  bind(binder);
  binder.bind("user_share", learner_->leaf("user_share", user_share_));
  binder.bind("item_share", learner_->leaf("item_share", item_share_));
  binder.bind("target", learner_->leaf("target", target_));
  binder.bind("loss_weight", learner_->leaf("loss_weight", weight_));
}

// Returns the leaves in which a batch differs from the first one. Only the last batch has some,
// because it has fewer triples.
std::vector<LeafValue> RecommendSession::batch_leaves(int64_t batch) const {
  if (batch + 1 < batches_->num_batches()) return {};
  return {{"loss_weight", last_weight_}};
}

void RecommendSession::start() {
  Backend& backend = *device_->backend();
  require_fit(memory(), device_->memory_limit(config_, backend.available_bytes() + backend.graph_bytes()));
  learner_->weights_changed();
  bind(*eval_);
  const int64_t arena = std::max(step_arena_, eval_->arena_bytes());
  if (runner_) {
    eval_->allocate(runner_->arena(arena), runner_->constants());
  } else {
    ConstantPool own;
    eval_->allocate(device_->backend()->allocate(arena), own);
  }
  eval_->prepare();
  if (runner_) start_training();
}

void RecommendSession::start_training() {
  gradient_memory_ = device_->backend()->allocate(learner_->parameter_bytes());
  std::vector<const float*> gradients;
  for (const Parameter& p : learner_->list()) {
    const std::string name = "grad:" + p.name;
    float* gradient = static_cast<float*>(gradient_memory_.get()) + p.offset;
    const bool has = runner_->plan().dfg.find_output(name) >= 0;
    if (has) gradient = static_cast<float*>(runner_->bind_output(name, gradient));
    gradients.push_back(has ? gradient : nullptr);
  }
  learner_->start(gradients);
  bind_training(*runner_);
  runner_->share(batch_blocks(0), batch_leaves(0));
  prefetcher_ = std::make_unique<Prefetcher<BlockRunner::Ready>>(
      config_.loader.in_flight < 0 ? device_->batches_ahead() : config_.loader.in_flight,
      [this](int64_t b) { return runner_->make_ready(batch_blocks(b), batch_leaves(b), {}); });
}

void RecommendSession::begin_epoch(int64_t epoch, int64_t first) {
  prefetcher_->stop();
  batches_->begin_epoch(static_cast<uint64_t>(epoch));
  prefetcher_->begin(first, batches_->num_batches());
}

void RecommendSession::queue_step(int64_t step, double lr) {
  BlockRunner::Ready batch;
  {
    const TraceSpan span("train", "wait for a batch");
    batch = prefetcher_->next();
  }
  const TraceSpan span("train", "step");
  batch.executor->run_once({config_.seed, static_cast<uint64_t>(step)});
  learner_->keep_loss(*batch.executor);
  learner_->update(lr);
}

double RecommendSession::train_epoch(int64_t epoch, double lr) {
  begin_epoch(epoch, 0);
  double sum = 0;
  for (int64_t b = 0; b < steps_per_epoch(); ++b)
    sum += train_step(epoch * steps_per_epoch() + b, lr) * static_cast<double>(batches_->counted(b));
  return sum / static_cast<double>(batches_->num_pairs());
}

const float* RecommendSession::embeddings() {
  eval_->run({config_.seed, 0});
  return eval_->output("embedding");
}

int64_t RecommendSession::embedding_width() const {
  const Dfg& dfg = eval_->plan().dfg;
  return dfg[dfg.output("embedding")].type.row_size();
}

Scores RecommendSession::evaluate(bool) {
  const int64_t width = embedding_width();
  const float* all = embeddings();
  const Embeddings e{all + sides_.first_user * width, all + sides_.first_item * width, width};
  const TraceSpan span("train", "rank items");
  test_ranking_ = score_ranking(e, taken_, test_items_, metric_.k);
  val_ranking_ = score_ranking(e, taken_, val_items_, metric_.k);
  Scores scores;
  scores.test = metric_.of(test_ranking_);
  scores.val = metric_.of(val_ranking_);
  return scores;
}

std::string RecommendSession::settings_json() const {
  auto all = parse_json<nlohmann::json>(config_json(config_), "configuration");
  all["recommend"] = {{"batch_size", options_.batch_size},
                      {"embedding_decay", options_.embedding_decay},
                      {"embedding_init", options_.init_std},
                      {"positives", options_.positives == Positives::users ? "users" : "pairs"}};
  return all.dump(2);
}

std::string RecommendSession::fingerprint() const {
  uint64_t h = hash_text(data_fingerprint_, result_settings_json(config_));
  h = mix_key(h, static_cast<uint64_t>(options_.batch_size));
  h = mix_key(h, std::bit_cast<uint64_t>(options_.embedding_decay));
  h = mix_key(h, std::bit_cast<uint64_t>(options_.init_std));
  h = mix_key(h, static_cast<uint64_t>(options_.positives));
  return fmt::format("{:016x}", h);
}

}  // namespace nacre
