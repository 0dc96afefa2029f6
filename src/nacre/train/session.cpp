#include "nacre/train/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/philox.h"
#include "nacre/base/trace.h"
#include "nacre/train/metrics.h"

namespace nacre {
namespace {

int64_t label_bytes(const Dataset& d) {
  const int64_t split = d.splits.train.size() + d.splits.val.size() + d.splits.test.size();
  return d.labels.size() * 4 + d.targets.bytes() + split * static_cast<int64_t>(sizeof(NodeId));
}

}  // namespace

Session::Session(Dataset dataset, RunConfig config, const SessionNeeds& needs)
    : config_(std::move(config)),
      dataset_(std::move(dataset)),
      notes_(dataset_.notes),
      views_(std::make_shared<GraphViews>()) {
  const double start = now_seconds();
  device_ = open_device(config_, views_);
  if (!dataset_.features.defined() && !dataset_.heterogeneous()) {
    throw UserError(config_.data, "has no vertex features", "give them with --features FILE");
  }
  if (needs.training && (dataset_.num_classes < 1 || dataset_.splits.train.empty())) {
    throw UserError(config_.data, "has no labels or no training vertices",
                    "give them with --labels FILE and --splits FILE");
  }
  data_fingerprint_ = dataset_.fingerprint();
  metric_ = resolve_metric(config_.metric, dataset_);
  prepare_graph();
  normalize_features(dataset_, config_.normalize_features, notes_);
  complete_model(needs.training);
  ModelOptions options = config_.model;
  if (needs.training) {
    options.training = true;
    Dfg dfg = build_model(options);
    differentiate(dfg);
    blocks_ = std::make_unique<Blocks>(Blocks::full(dataset_.graph, std::max(1, dfg.num_layers())));
    parameters_ = std::make_unique<Parameters>(dfg, *blocks_, config_.seed);
    optimizer_ = std::make_unique<Optimizer>(config_.optimizer, *parameters_);
    if (device_.gpu) state_ = std::make_unique<DeviceState>(device_.gpu, *parameters_);
    train_ = std::make_unique<Executor>(training_plan(dfg, needs.resumed_plan), *blocks_, device_.backend);
  }
  if (needs.evaluation || !needs.training) {
    options.training = false;
    options.embeddings = needs.embeddings;
    options.loss = "none";
    const Dfg dfg = build_model(options);
    if (!blocks_) blocks_ = std::make_unique<Blocks>(Blocks::full(dataset_.graph, std::max(1, dfg.num_layers())));
    if (!parameters_) parameters_ = std::make_unique<Parameters>(dfg, *blocks_, config_.seed);
    if (device_.gpu && !state_) state_ = std::make_unique<DeviceState>(device_.gpu, *parameters_);
    // Evaluation follows the training plan's options; alone, it is planned by rules.
    const PlanOptions how = train_ ? train_->plan().options : search_plan(dfg, *blocks_, {}, {}).options;
    eval_ = std::make_unique<Executor>(make_plan(dfg, *blocks_, how), *blocks_, device_.backend);
  }
  plan_seconds_ = now_seconds() - start;
}

void Session::prepare_graph() {
  const ModelInfo& info = model_info(config_.model.model);
  if (dataset_.graph.weighted() && !info.supports_edge_weight) {
    throw UserError("--model " + info.name, "does not use edge weights, but the graph has them",
                    "use a model that does (gcn, sage), or remove the weights from the data");
  }
  if (info.needs_types && !dataset_.graph.typed()) {
    if (config_.relations < 1 || config_.relations > 65535)
      throw UserError("--relations", "must lie between 1 and 65535");
    dataset_.graph = assign_relations(dataset_.graph, config_.relations);
    notes_.push_back(fmt::format(
        "the graph has no edge types: {} relations assigned by a hash of each edge (--relations)", config_.relations));
  }
  if (info.needs_self_loops) {
    const TraceSpan span("prepare", "self loops");
    dataset_.graph = add_self_loops(dataset_.graph);
  }
}

void Session::complete_model(bool training) {
  ModelOptions& m = config_.model;
  const int64_t trained_in = m.in_dim;
  const int64_t trained_out = m.out_dim;
  // A trained model may meet vertices without labels, or labels that happen to miss the last classes.
  const bool unlabelled = dataset_.labels.empty() && !dataset_.multilabel();
  const bool guided = !training && trained_out > 0;
  if (guided && !dataset_.multilabel() && dataset_.num_classes < trained_out) dataset_.num_classes = trained_out;
  if (guided && !unlabelled && dataset_.multilabel() != (m.loss == "bce")) {
    throw UserError(config_.data, std::string("has ") + (dataset_.multilabel() ? "multi-label" : "single-label") +
                                      " data, the model was trained for the other kind");
  }
  const std::vector<VertexKind> kinds = vertex_kinds(dataset_);
  if (guided || !m.kinds.empty()) check_trained_kinds(m.kinds, kinds, config_.data);
  m.kinds = kinds;
  leaves_ = feature_leaves(dataset_, kinds);
  // Of several kinds, what they are projected to: as trained, or as wide as the hidden layers.
  m.in_dim = kinds.empty() ? dataset_.num_features() : trained_in;
  m.out_dim = dataset_.num_classes;
  if ((trained_in != 0 && trained_in != m.in_dim) || (trained_out != 0 && trained_out != m.out_dim)) {
    throw UserError(config_.data, fmt::format("has {} features and {} classes, the model was trained for {} and {}",
                                              m.in_dim, m.out_dim, trained_in, trained_out));
  }
  m.num_edge_types = dataset_.graph.typed() ? dataset_.graph.num_edge_types() : 0;
  m.edge_weighted = dataset_.graph.weighted();
  if (!guided) m.loss = dataset_.multilabel() ? "bce" : "cross_entropy";
  m = complete_options(m);
  if (!kinds.empty()) notes_.push_back(kinds_text(kinds, m.in_dim));
}

Plan Session::training_plan(const Dfg& dfg, const std::string& resumed_plan) {
  make_targets();
  PlanRequest request;
  request.plan = config_.plan;
  request.deterministic = config_.deterministic;
  request.epochs = config_.epochs;
  request.memory_limit = config_.memory_limit;
  request.use_cache = config_.plan_cache;
  const auto bind_leaves = [this](Executor& executor) { bind(executor); };
  if (!resumed_plan.empty()) {
    // A resumed run continues bit for bit, so it keeps its plan, whatever a new search would find.
    try {
      request.plan = resumed_plan;
      planning_ = plan_training(dfg, *blocks_, device_.backend, request, bind_leaves);
      planning_.plan.name = config_.plan;
      return planning_.plan;
    } catch (const UserError& error) {
      log_warning(std::string(error.what()) + "; planning afresh");
      request.plan = config_.plan;
    }
  }
  planning_ = plan_training(dfg, *blocks_, device_.backend, request, bind_leaves);
  return planning_.plan;
}

std::vector<MemoryItem> Session::memory() const {
  // On a GPU, of its memory: the host's graph and the best weights kept there are no part of it.
  std::vector<MemoryItem> items;
  int64_t features = 0;
  for (const FeatureLeaf& leaf : leaves_) {
    const auto reads = [&](const std::unique_ptr<Executor>& e) { return e && e->step_reads(leaf.name); };
    if (!state_ || reads(train_) || reads(eval_)) features += leaf.values.bytes();
  }
  if (!state_) items.push_back({"graph", dataset_.graph.bytes()});
  items.insert(items.end(),
               {{state_ ? "graph and work lists" : "graph by source and work lists", device_.backend->graph_bytes()},
                {"features", features},
                {"labels, splits and loss weights", label_bytes(dataset_) + dataset_.num_nodes() * 8},
                {"parameters", parameters_->bytes()}});
  if (optimizer_) {
    items.push_back({state_ ? "optimiser state" : "optimiser state and best weights",
                     optimizer_->bytes() + (state_ ? 0 : parameters_->bytes())});
  }
  ConstantPool none;
  int64_t constants = 0;
  int64_t arena = 0;
  for (const auto* executor : {train_.get(), eval_.get()}) {
    if (executor == nullptr) continue;
    // Both plans of a model share their constants; the larger set covers the other.
    constants = std::max(constants, executor->constant_bytes(none));
    arena = std::max(arena, executor->arena_bytes());
  }
  items.push_back({"values computed once", constants});
  items.push_back({"arena (activations, gradients, work)", arena});
  return items;
}

void Session::bind(Executor& executor) {
  float* values = state_ ? state_->parameters() : parameters_->data();
  for (const Parameter& p : parameters_->list()) executor.bind(p.name, values + p.offset);
  // Executors write neither features nor targets.
  const auto leaf = [&](const std::string& name, const void* host, int64_t bytes) {
    return state_ ? state_->leaf(name, host, bytes) : const_cast<void*>(host);
  };
  const auto tensor = [&](const std::string& name, const Tensor& t) { return leaf(name, t.raw(), t.bytes()); };
  // Where layers begin with a sum over raw features, that sum is a constant and the features are needed no more.
  for (const FeatureLeaf& x : leaves_) {
    if (state_ && !executor.step_reads(x.name)) {
      executor.bind_host(x.name, x.values.raw());
    } else {
      executor.bind(x.name, tensor(x.name, x.values));
    }
  }
  executor.bind("label", tensor("label", labels_));
  executor.bind("target", tensor("target", dataset_.targets));
  executor.bind("loss_weight", tensor("loss_weight", loss_weight_));
  const Array<float>& weight = dataset_.graph.edge_weight();
  for (int l = 0; l < blocks_->num_layers(); ++l) {
    executor.bind(fmt::format("edge_weight.{}", l), leaf("edge_weight", weight.data(), weight.size() * 4));
  }
}

void Session::start() {
  std::vector<MemoryItem> items = memory();
  // Data and weights are in the host's memory already, the graph's forms in the device's; what remains must fit into
  // what is left.
  int64_t held = device_.backend->graph_bytes();
  if (!state_) {
    held +=
        dataset_.graph.bytes() + label_bytes(dataset_) + parameters_->bytes() + (optimizer_ ? optimizer_->bytes() : 0);
    for (const FeatureLeaf& leaf : leaves_) held += leaf.values.bytes();
    // Mapped files are not held: every step reads all of them, so they must fit into what is left too.
    held = std::min(held, held_memory());
  }
  require_fit(items, config_.memory_limit > 0 ? config_.memory_limit : device_.backend->available_bytes() + held);

  if (!labels_.defined()) make_targets();
  const int64_t arena_bytes = std::max(train_ ? train_->arena_bytes() : 0, eval_ ? eval_->arena_bytes() : 0);
  const std::shared_ptr<void> arena = device_.backend->allocate(arena_bytes);
  if (state_) state_->push(*parameters_, nullptr);
  for (Executor* executor : {train_.get(), eval_.get()}) {
    if (executor == nullptr) continue;
    bind(*executor);
    executor->allocate(arena, constants_);
    executor->prepare();
  }
  if (!train_) return;
  gradients_.clear();
  for (const Parameter& p : parameters_->list()) {
    const NodeRef grad = train_->plan().dfg.find_output("grad:" + p.name);
    gradients_.push_back(grad < 0 ? nullptr : static_cast<const float*>(train_->pointer(grad)));
  }
  if (!state_) return;
  state_->start(*optimizer_, *parameters_, gradients_);
  state_->push(*parameters_, optimizer_.get());
}

void Session::make_targets() {
  const int64_t n = dataset_.num_nodes();
  labels_ = Tensor(DType::i32, {n});
  std::fill_n(labels_.data<int32_t>(), n, -1);
  if (!dataset_.multilabel()) std::copy(dataset_.labels.begin(), dataset_.labels.end(), labels_.data<int32_t>());
  loss_weight_ = Tensor::zeros(DType::f32, {n});
  int64_t counted = 0;
  for (const NodeId v : dataset_.splits.train) counted += dataset_.multilabel() || dataset_.labels[v] >= 0 ? 1 : 0;
  const double per_vertex = static_cast<double>(std::max<int64_t>(1, counted)) *
                            static_cast<double>(dataset_.multilabel() ? dataset_.num_classes : 1);
  for (const NodeId v : dataset_.splits.train) {
    if (dataset_.multilabel() || dataset_.labels[v] >= 0)
      loss_weight_.data<float>()[v] = static_cast<float>(1 / per_vertex);
  }
}

double Session::train_step(int64_t step, double lr) {
  queue_step(step, lr);
  return *train_->output("loss");
}

void Session::queue_step(int64_t step, double lr) {
  train_->run({config_.seed, static_cast<uint64_t>(step)});
  const TraceSpan span("train", "optimizer");
  if (state_) {
    state_->update(lr);
    host_is_old_ = true;
  } else {
    optimizer_->step(*parameters_, gradients_, lr);
  }
}

Parameters& Session::parameters() {
  if (host_is_old_) state_->pull(*parameters_, optimizer_.get());
  host_is_old_ = false;
  return *parameters_;
}

Optimizer& Session::optimizer() {
  parameters();
  return *optimizer_;
}

void Session::weights_changed() {
  if (state_) state_->push(*parameters_, optimizer_.get());
}

const float* Session::predict() {
  eval_->run({config_.seed, 0});
  return eval_->output("logits");
}

const float* Session::embeddings() {
  if (eval_->plan().dfg.find_output("embedding") < 0) {
    throw UserError("--model " + config_.model.model, "has no hidden layer whose values could be written",
                    "use --layers 2 or more");
  }
  return eval_->output("embedding");
}

int64_t Session::embedding_width() const {
  const Dfg& dfg = eval_->plan().dfg;
  return dfg[dfg.output("embedding")].type.row_size();
}

std::string Session::fingerprint() const {
  uint64_t h = data_fingerprint_;
  for (const char c : result_settings_json(config_)) h = mix_key(h, static_cast<unsigned char>(c));
  return fmt::format("{:016x}", h);
}

}  // namespace nacre
