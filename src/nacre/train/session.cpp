#include "nacre/train/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/trace.h"
#include "nacre/train/room.h"

namespace nacre {
namespace {

constexpr const char* kGivenOrder = "results in the order of the data set";

}  // namespace

Session::Session(Dataset dataset, RunConfig config, const SessionNeeds& needs)
    : start_(now_seconds()),
      run_(std::move(dataset), std::move(config), needs.training),
      views_(std::make_shared<GraphViews>()),
      predicts_(needs.predicts || needs.embeddings) {
  device_ = open_device(run_.config, views_);
  ModelOptions options = run_.config.model;
  Dfg trained;
  if (needs.training) {
    const Graph& graph = run_.dataset.graph;
    const GraphCounts counts{graph.num_nodes(), graph.num_edges(), graph.weighted(), graph.typed()};
    if (options.model != "mlp" && (device_->on_host() || options.layers > 1))
      require_room(run_.config, making_out_bytes(counts), "the order of the edges by source");
    options.training = true;
    options.loss = run_.training_loss();
    trained = build_model(options);
    differentiate(trained);
    blocks_ = std::make_unique<Blocks>(Blocks::full(run_.dataset.graph, std::max(1, trained.num_layers())));
    order_vertices(trained, needs.resumed_plan);
    require_parameters(trained, *blocks_, run_.config, true);
    learner_ = std::make_unique<Learner>(Parameters(trained, *blocks_, run_.config.seed), device_->backend());
    learner_->optimize_with(run_.config.optimizer);
    train_ = std::make_unique<Executor>(training_plan(trained, needs.resumed_plan), *blocks_, device_->backend());
  }
  if (needs.evaluation || !needs.training) {
    options.training = false;
    options.embeddings = needs.embeddings;
    options.loss = "none";
    const Dfg dfg = build_model(options);
    if (!blocks_) blocks_ = std::make_unique<Blocks>(Blocks::full(run_.dataset.graph, std::max(1, dfg.num_layers())));
    if (!learner_) {
      require_parameters(dfg, *blocks_, run_.config, false);
      learner_ = std::make_unique<Learner>(Parameters(dfg, *blocks_, run_.config.seed), device_->backend());
    }
    // Evaluation uses the options of the training plan; without training it is planned by rules.
    const PlanOptions how = train_ ? train_->plan().options : search_plan(dfg, *blocks_, {}, {}).options;
    const DeviceTraits traits = device_->backend()->traits();
    eval_ =
        std::make_unique<Executor>(make_plan(dfg, *blocks_, how, {.device = &traits}), *blocks_, device_->backend());
    scorer_ = device_->make_scorer(run_);
  }
  if (train_) fit(trained);
  plan_seconds_ = now_seconds() - start_;
}

// Drops values of the training plan if memory is short. How many bytes are too many is known only
// for whole executors, so this may take several attempts.
void Session::fit(const Dfg& dfg) {
  constexpr int kTurns = 4;
  const int64_t limit = memory_limit();
  const int64_t needed = total_bytes(memory());
  for (int turn = 0; turn < kTurns; ++turn) {
    const int64_t over = total_bytes(memory()) - limit;
    if (over <= 0 || !shrink_plan(planning_, dfg, *blocks_, device_->backend(), over)) break;
    train_ = std::make_unique<Executor>(planning_.plan, *blocks_, device_->backend());
  }
  if (total_bytes(memory()) >= needed || planning_.dropped.empty()) return;
  std::string values;
  for (const Dropped& d : planning_.dropped) values += (values.empty() ? "" : ", ") + d.value;
  run_.notes.push_back(fmt::format(
      "the run would need {}, but only {} may be used; it needs {} now, because the backward pass computes again {}",
      human_bytes(static_cast<double>(needed)), human_bytes(static_cast<double>(limit)),
      human_bytes(static_cast<double>(total_bytes(memory()))), values));
}

void Session::order_vertices(const Dfg& dfg, const std::string& resumed_plan) {
  const PlanRequest request = plan_request(run_.config, run_.config.epochs, resumed_plan);
  order_ = choose_order({run_, dfg, *blocks_, device_->backend(), request});
  if (order_.how == Reorder::none) return;
  const int layers = blocks_->num_layers();
  blocks_.reset();
  run_.reorder(order_.order);
  blocks_ = std::make_unique<Blocks>(Blocks::full(run_.dataset.graph, layers));
}

Plan Session::training_plan(const Dfg& dfg, const std::string& resumed_plan) {
  make_targets();
  const PlanRequest request = plan_request(run_.config, run_.config.epochs, resumed_plan);
  planning_ = plan_training(dfg, *blocks_, device_->backend(), request, [this](Executor& executor) { bind(executor); });
  planning_.plan.options.vertex_order = order_.how;
  planning_.search.candidates.insert(planning_.search.candidates.begin(), order_.compared.begin(),
                                     order_.compared.end());
  if (!order_.compared.empty())
    planning_.search.space.groups.insert(planning_.search.space.groups.begin(), order_.space);
  return planning_.plan;
}

std::vector<MemoryItem> Session::memory() const {
  // If the run computes on a GPU, only the memory of the GPU is counted, not the graph and the best
  // weights on the host.
  const bool gpu = !device_->on_host();
  std::vector<MemoryItem> items;
  int64_t features = 0;
  for (const FeatureLeaf& leaf : run_.leaves) {
    const auto reads = [&](const std::unique_ptr<Executor>& e) { return e && e->step_reads(leaf.name); };
    if (!gpu || reads(train_) || reads(eval_)) features += leaf.values.bytes();
  }
  const int64_t weights = run_.dataset.num_nodes() * (run_.weighs_pairs() ? run_.dataset.num_classes : 1) * 4;
  if (!gpu) items.push_back({"graph", run_.dataset.graph.bytes()});
  if (!gpu && blocks_->cover_bytes() > 0) items.push_back({"the graph's edges in two halves", blocks_->cover_bytes()});
  items.insert(items.end(),
               {{gpu ? "graph and work lists" : "edges by source, and work lists", device_->backend()->graph_bytes()},
                {"features", features},
                {"labels, splits and loss weights", run_.label_bytes() + run_.dataset.num_nodes() * 4 + weights},
                {"parameters", learner_->parameter_bytes()}});
  if (learner_->trains()) {
    items.push_back({gpu ? "optimiser state" : "optimiser state and best weights",
                     learner_->optimizer_bytes() + (gpu ? 0 : learner_->parameter_bytes())});
  }
  if (gpu && scorer_) items.push_back({"scores of the splits", scorer_->device_bytes(false)});
  ConstantPool none;
  int64_t constants = 0;
  int64_t arena = 0;
  for (const auto* executor : {train_.get(), eval_.get()}) {
    if (executor == nullptr) continue;
    // The two plans of a model share their constants; the larger set includes the other.
    constants = std::max(constants, executor->constant_bytes(none));
    arena = std::max(arena, executor->arena_bytes());
  }
  items.push_back({"values computed once", constants});
  items.push_back({"arena (activations, gradients, work)", arena});
  if (!gpu && given_bytes() > 0) items.push_back({kGivenOrder, given_bytes()});
  return items;
}

// Results in the given order are copies, which are made when they are first asked for, and then
// stay. nacre train asks for none.
int64_t Session::given_bytes() const {
  if (!predicts_ || !eval_ || order_.how == Reorder::none) return 0;
  const bool embeddings = eval_->plan().dfg.find_output("embedding") >= 0;
  const int64_t width = run_.config.model.out_dim + (embeddings ? embedding_width() : 0);
  return run_.dataset.num_nodes() * width * static_cast<int64_t>(sizeof(float));
}

void Session::bind(Executor& executor) {
  for (const Parameter& p : learner_->list()) executor.bind(p.name, learner_->place(p));
  // If layers begin with a sum over the raw features, that sum is a constant, and no step reads the
  // features. On a GPU, such features then stay on the host.
  for (const FeatureLeaf& x : run_.leaves) {
    if (!device_->on_host() && !executor.step_reads(x.name)) {
      executor.bind_host(x.name, x.values.raw());
    } else {
      executor.bind(x.name, learner_->leaf(x.name, x.values));
    }
  }
  executor.bind("label", learner_->leaf("label", labels_));
  executor.bind("target", learner_->leaf("target", run_.dataset.targets));
  executor.bind("loss_weight", learner_->leaf("loss_weight", loss_weight_));
  const Array<float>& weight = run_.dataset.graph.edge_weight();
  for (int l = 0; l < blocks_->num_layers(); ++l) {
    executor.bind(fmt::format("edge_weight.{}", l), learner_->leaf("edge_weight", weight.data(), weight.size() * 4));
  }
}

int64_t Session::memory_limit() const {
  // The forms of the graph are already in the device's memory, so they are added to what is free.
  Backend& backend = *device_->backend();
  return device_->memory_limit(run_.config, backend.available_bytes() + backend.graph_bytes());
}

HostMemory Session::host() const {
  HostMemory host;
  const Dataset& d = run_.dataset;
  const int64_t kept = learner_->parameter_bytes() + learner_->optimizer_bytes();
  const int64_t targets = d.num_nodes() * 8;
  int64_t features = 0;
  for (const FeatureLeaf& leaf : run_.leaves) features += leaf.values.bytes();
  host.gpu = !device_->on_host();
  host.held =
      d.graph.bytes() + blocks_->cover_bytes() + views_->bytes() + features + run_.label_bytes() + kept + targets;
  host.evaluating = {{"scores being ranked", ranking_bytes(run_.metric, d)}};
  if (!host.gpu) {
    host.training = memory();
    if (!d.graph.has_out()) host.training.push_back({"destinations of the edges", d.graph.num_edges() * 4});
    return host;
  }
  host.training = {{"graph", d.graph.bytes()},
                   {"graph's forms for the device", views_->bytes() + blocks_->cover_bytes()},
                   {"features", features},
                   {"labels, splits and loss weights", run_.label_bytes() + targets},
                   {"parameters, optimiser state, best weights", kept + learner_->parameter_bytes()}};
  // While a run trains, scores are computed on the device, and only what the metric needs is copied
  // to the host.
  const int64_t results = train_ && scorer_ ? scorer_->host_bytes() : d.num_nodes() * d.num_classes * 4;
  host.evaluating.push_back({"results of an evaluation", results});
  if (given_bytes() > 0) host.evaluating.push_back({kGivenOrder, given_bytes()});
  return host;
}

void Session::start() {
  require_fit(memory(), memory_limit());

  if (!labels_.defined()) make_targets();
  const int64_t arena_bytes = std::max(train_ ? train_->arena_bytes() : 0, eval_ ? eval_->arena_bytes() : 0);
  const std::shared_ptr<void> arena = device_->backend()->allocate(arena_bytes);
  learner_->weights_changed();
  for (Executor* executor : {train_.get(), eval_.get()}) {
    if (executor == nullptr) continue;
    bind(*executor);
    executor->allocate(arena, constants_);
    executor->prepare();
  }
  if (!train_) return;
  if (eval_) start_scores();
  std::vector<const float*> gradients;
  for (const Parameter& p : learner_->list()) {
    const NodeRef grad = train_->plan().dfg.find_output("grad:" + p.name);
    gradients.push_back(grad < 0 ? nullptr : static_cast<const float*>(train_->pointer(grad)));
  }
  learner_->start(gradients);
  // Waits until the kernels are compiled, so that the first step does not wait for them.
  device_->backend()->settle();
}

void Session::make_targets() {
  labels_ = run_.all_labels();
  loss_weight_ = run_.no_loss_weights(run_.dataset.num_nodes());
  const Array<NodeId>& train = run_.dataset.splits.train;
  const auto counts = [this](NodeId v) { return run_.counts(v); };
  double total = 0;
  for (const NodeId v : train) total += counts(v) ? run_.class_weight(v) : 0;
  for (const NodeId v : train) {
    if (counts(v)) run_.loss_weights(v, total, loss_weight_.data<float>() + v * loss_weight_.row_size());
  }
}

void Session::queue_step(int64_t step, double lr) {
  train_->run({run_.config.seed, static_cast<uint64_t>(step)});
  learner_->keep_loss(*train_);
  learner_->update(lr);
}

void Session::start_scores() {
  const bool multilabel = run_.dataset.multilabel();
  scorer_->start(multilabel ? learner_->leaf("target", run_.dataset.targets) : learner_->leaf("label", labels_));
}

Scores Session::evaluate(bool with_loss) {
  if (!scorer_->started()) start_scores();
  eval_->run({run_.config.seed, 0});
  return scorer_->score(*eval_, with_loss);
}

const float* Session::predict() {
  eval_->run({run_.config.seed, 0});
  return in_given_order(eval_->output("logits"), run_.config.model.out_dim, given_scores_);
}

const float* Session::embeddings() {
  if (eval_->plan().dfg.find_output("embedding") < 0) refuse_embeddings(run_.config);
  return in_given_order(eval_->output("embedding"), embedding_width(), given_embeddings_);
}

const float* Session::in_given_order(const float* rows, int64_t width, Tensor& given) const {
  if (order_.how == Reorder::none) return rows;
  if (!given.defined()) given = Tensor(DType::f32, {run_.dataset.num_nodes(), width});
  auto* to = given.data<float>();
  parallel_for(order_.order.size(), 1 << 12, [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) std::copy_n(rows + v * width, width, to + order_.order[v] * width);
  });
  return to;
}

int64_t Session::embedding_width() const {
  const Dfg& dfg = eval_->plan().dfg;
  return dfg[dfg.output("embedding")].type.row_size();
}

}  // namespace nacre
