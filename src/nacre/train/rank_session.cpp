#include "nacre/train/rank_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/trace.h"
#include "nacre/cost/nominal.h"
#include "nacre/engine/rank_block.h"
#include "nacre/plan/variants.h"
#include "nacre/train/metrics.h"

namespace nacre {
namespace {

// A rank on a GPU measures one of this many steps.
constexpr int64_t kMeasuredEvery = 8;

// Returns numbers of all ranks, in their order.
template <class T>
std::vector<T> all_numbers(Communicator& ranks, const T& own) {
  std::vector<T> all;
  for (const std::string& text : ranks.all_gather({reinterpret_cast<const char*>(&own), sizeof own})) {
    NACRE_CHECK(text.size() == sizeof(T), "a rank has sent a number of another size");
    std::memcpy(&all.emplace_back(), text.data(), sizeof(T));
  }
  return all;
}

// Returns the bytes of rows that a rank receives in a step: rows of its halo, and rows that others
// have for its own vertices.
int64_t received_bytes(const Plan& plan, const LocalGraph& local) {
  int64_t sent_rows = 0;
  for (const PeerRows& peer : local.peers) sent_rows += peer.send.size();
  int64_t bytes = 0;
  for (const Kernel& kernel : plan.kernels) {
    const Node& root = plan.dfg[kernel.root];
    if (kernel.kind != KernelKind::exchange || root.op == Op::all_reduce || kernel.once) continue;
    bytes += (root.op == Op::exchange ? local.num_halo() : sent_rows) * root.type.row_size() * 4;
  }
  return bytes;
}

// Sends the values of rank 0 to all others.
void share_array(Communicator& ranks, float* floats, int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(float));
  auto* values = reinterpret_cast<std::byte*>(floats);
  ExchangeRequest request;
  request.name = "weights";
  if (bytes == 0) return;
  if (ranks.rank() == 0) {
    for (int r = 1; r < ranks.size(); ++r) request.sends.push_back({r, {values, 1, bytes, 0, nullptr}});
  } else {
    request.receives.push_back({0, {values, 1, bytes, 0, nullptr}});
  }
  ranks.exchange(request);
}

}  // namespace

RankSession::RankSession(RankSetup setup) : setup_(std::move(setup)), own_run_(setup_.run) {
  const RunData& run = setup_.run;
  const Graph& whole = run.dataset.graph;
  local_ = std::make_shared<const LocalGraph>(local_graph(whole, setup_.partition, setup_.control.rank()));
  ModelOptions options = run.config.model;
  options.sampling = Sampling::blocks;
  const int layers = std::max(1, options.layers);
  blocks_ = std::make_unique<Blocks>(
      Blocks::of_rank(local_->graph, layers, make_rank_links(whole, local_, setup_.data, device().gpu())));
  inputs_ = std::make_unique<RankInputs>(run, *local_);
  own_run_.dataset = inputs_->own_data();
  Dfg trained;
  if (setup_.needs.training) {
    options.training = true;
    options.loss = run.training_loss();
    trained = build_model(options);
    differentiate(trained);
    learner_ = std::make_unique<Learner>(Parameters(trained, *blocks_, run.config.seed), device().backend());
    learner_->optimize_with(run.config.optimizer);
  }
  options.training = false;
  options.embeddings = setup_.needs.embeddings;
  options.loss = "none";
  predicted_ = build_model(options);
  if (!learner_)
    learner_ = std::make_unique<Learner>(Parameters(predicted_, *blocks_, run.config.seed), device().backend());
  plan(setup_.needs.training ? trained : predicted_);
  if (setup_.needs.training) make_executor(without_scores(trained), train_);
  make_executor(predicted_, eval_);
  scorer_ = device().make_scorer(own_run_);
  if (setup_.needs.training) fit(trained);
}

// The rank with the most edges plans by rules. Kernels are not timed: a rank cannot run the kernels
// of a step without the others. Ranks that compute on another kind of device than the planner take
// its options, too, because all ranks must send the same rows.
void RankSession::plan(const Dfg& dfg) {
  Communicator& control = setup_.control;
  const std::vector<int64_t> edges = all_numbers(control, local_->graph.num_edges());
  const auto planner = static_cast<int>(std::max_element(edges.begin(), edges.end()) - edges.begin());
  PlanRequest request = plan_request(setup_.config, setup_.config.epochs, setup_.needs.resumed_plan);
  if (request.plan == "auto") request.deterministic = true;  // by rules
  if (control.rank() == planner) {
    planning_ = plan_training(dfg, *blocks_, device().backend(), request, [](Executor&) {});
    const std::string& rows = setup_.config.ranks.halo_rows;
    PlanOptions& options = planning_.plan.options;
    options.halo_rows = rows == "auto" ? cheapest_rows(dfg, options) : parse_halo_rows(rows);
  }
  travels_ = control.broadcast(planner, travels_);
  planning_.plan.options = agreed(planner, planning_.plan.options);
  planning_.source = control.broadcast(planner, planning_.source);
  planning_.plan.name = setup_.config.plan;
}

HaloRows RankSession::cheapest_rows(const Dfg& dfg, PlanOptions options) {
  const NominalProfile& prices = device().on_host() ? nominal_cpu() : nominal_gpu();
  SearchOptions how;
  how.model = &prices.model;
  how.cache_bytes = prices.cache_bytes;
  HaloRows best = HaloRows::late;
  double least = INFINITY;
  std::string others;
  for (const HaloRows rows : {HaloRows::late, HaloRows::narrow, HaloRows::early}) {
    options.halo_rows = rows;
    const Plan plan = make_plan(without_scores(dfg), *blocks_, options);
    const double seconds = predict_plan(plan, *blocks_, how);
    others += fmt::format("{}{} {}, {}", others.empty() ? "" : "; ", halo_rows_name(rows), human_seconds(seconds),
                          human_bytes(static_cast<double>(received_bytes(plan, *local_))));
    if (seconds >= least) continue;
    least = seconds;
    best = rows;
  }
  travels_ =
      fmt::format("--halo-rows auto chooses {}; predicted time of a step and bytes that the largest rank receives: {}",
                  halo_rows_name(best), others);
  return best;
}

PlanOptions RankSession::agreed(int planner, const PlanOptions& own) {
  const bool plans = setup_.control.rank() == planner;
  PlanOptions options =
      parse_options(setup_.control.broadcast(planner, plans ? options_json(own) : ""), "the plan of another rank");
  options.join_products = joined_products(device().backend()->traits());
  return options;
}

void RankSession::make_executor(const Dfg& dfg, std::unique_ptr<Executor>& executor) {
  const DeviceTraits traits = device().backend()->traits();
  Plan plan = make_plan(dfg, *blocks_, planning_.plan.options, {.device = &traits});
  plan.name = planning_.plan.name;
  inputs_->make(plan);
  executor = std::make_unique<Executor>(std::move(plan), *blocks_, device().backend(),
                                        ExecutorOptions{.overlap = setup_.config.ranks.overlap});
}

// If a rank's values do not fit, the rank that lacks most chooses values that all ranks drop and
// compute again.
void RankSession::fit(const Dfg& dfg) {
  constexpr int kTurns = 4;
  for (int turn = 0; turn < kTurns; ++turn) {
    const std::vector<int64_t> missing = all_numbers(setup_.control, missing_bytes());
    const auto most = static_cast<int>(std::max_element(missing.begin(), missing.end()) - missing.begin());
    if (missing[most] <= 0) return;
    PlanAnswer smaller = planning_;
    smaller.plan = train_->plan();
    if (setup_.control.rank() == most) shrink_plan(smaller, dfg, *blocks_, device().backend(), missing[most]);
    const PlanOptions options = agreed(most, smaller.plan.options);
    if (options == planning_.plan.options) return;
    planning_.plan.options = options;
    planning_.dropped = smaller.dropped;
    make_executor(without_scores(dfg), train_);
    make_executor(predicted_, eval_);
  }
}

std::vector<MemoryItem> RankSession::memory() const {
  ConstantPool none;
  int64_t constants = 0, arena = 0;
  for (const auto* executor : {train_.get(), eval_.get()}) {
    if (executor == nullptr) continue;
    constants = std::max(constants, executor->constant_bytes(none));
    arena = std::max(arena, executor->arena_bytes());
  }
  const bool host = device().on_host();
  std::vector<MemoryItem> items;
  if (host) items.push_back({"part of the graph", local_->graph.bytes() + blocks_->links()->vertex_ids().size() * 8});
  items.insert(items.end(), {{"forms of the graph and work lists", device().backend()->graph_bytes()},
                             {"features", inputs_->feature_bytes()},
                             {"labels, degrees and loss weights", inputs_->other_bytes()},
                             {"parameters", learner_->parameter_bytes()}});
  if (learner_->trains()) items.push_back({"optimiser state", learner_->optimizer_bytes()});
  if (!host) items.push_back({"scores of the splits", scorer_->device_bytes(false)});
  items.push_back({"values computed once", constants});
  items.push_back({"arena (activations, gradients, work)", arena});
  return items;
}

int64_t RankSession::missing_bytes() const {
  Backend& backend = *device().backend();
  const int64_t limit = device().memory_limit(setup_.config, backend.available_bytes() + backend.graph_bytes());
  return total_bytes(memory()) - limit;
}

void RankSession::start() {
  Backend& backend = *device().backend();
  const int64_t bytes = std::max(train_ ? train_->arena_bytes() : 0, eval_->arena_bytes());
  const std::shared_ptr<void> arena = backend.allocate(bytes);
  share_weights();
  for (Executor* executor : {train_.get(), eval_.get()}) {
    if (executor == nullptr) continue;
    for (const Parameter& p : learner_->list()) executor->bind(p.name, learner_->place(p));
    inputs_->bind(*executor, *learner_);
    executor->allocate(arena, constants_);
    executor->prepare();
  }
  scorer_->start(nullptr);
  if (train_) {
    std::vector<const float*> gradients;
    for (const Parameter& p : learner_->list()) {
      const NodeRef grad = train_->plan().dfg.find_output("grad:" + p.name);
      gradients.push_back(grad < 0 ? nullptr : static_cast<const float*>(train_->pointer(grad)));
    }
    learner_->start(gradients);
  }
  backend.settle();
  setup_.control.barrier();
}

void RankSession::step(int64_t step, double lr, bool timed) {
  const double start = now_seconds();
  const StepContext context{setup_.run.config.seed, static_cast<uint64_t>(step)};
  // The first step loads kernels. After that, every rank with a GPU measures the same steps.
  const bool measured = !device().on_host() && steps_ > 0 && (timed || steps_ % kMeasuredEvery == 0);
  if (measured) {
    measure_step(context, timed);
  } else {
    run_step(context, timed);
  }
  ++steps_;
  learner_->keep_loss(*train_);
  learner_->update(lr);
  if (!device().on_host()) return;
  times_.steps += now_seconds() - start;
}

void RankSession::run_step(const StepContext& context, bool timed) {
  const CommCounters before = setup_.data.counters();
  if (timed) {
    // The first step compiles and loads kernels, so its times do not count.
    if (!timed_) train_->reset_times();
    timed_ = true;
    train_->run_timed(context);
  } else {
    train_->run(context);
  }
  received_ = setup_.data.counters().exchange.bytes_received - before.exchange.bytes_received;
  if (!device().on_host()) return;
  // What goes on while the rank computes costs it no time, so only the time in wait() counts.
  const CommCounters after = setup_.data.counters();
  const auto moved = [](const CallCounters& now, const CallCounters& then) {
    return now.waited - now.idle - (then.waited - then.idle);
  };
  const double reduced = moved(after.all_reduce, before.all_reduce);
  times_.reduction += reduced;
  times_.communication += reduced + moved(after.exchange, before.exchange);
  times_.waiting += after.exchange.idle - before.exchange.idle + after.all_reduce.idle - before.all_reduce.idle;
}

void RankSession::measure_step(const StepContext& context, bool timed) {
  Backend& backend = *device().backend();
  const int rank = setup_.control.rank();
  backend.await(backend.mark());
  const double start = now_seconds();
  setup_.memory->measure(rank, true);
  run_step(context, timed);
  const DeviceSeconds seconds = setup_.memory->take_seconds(rank);
  setup_.memory->measure(rank, false);
  backend.await(backend.mark());
  if (timed) return;  // kernels that are timed one by one wait longer for other ranks than usual
  times_.steps += now_seconds() - start;
  times_.communication += seconds.moved + seconds.reduced;
  times_.reduction += seconds.reduced;
  times_.waiting += seconds.waited;
}

void RankSession::share_weights() {
  Communicator& control = setup_.control;
  Parameters& parameters = learner_->parameters();
  share_array(control, parameters.data(), parameters.size());
  if (learner_->trains()) {
    OptimizerState& state = learner_->optimizer();
    for (Tensor* moment : {&state.first(), &state.second(), &state.average()}) {
      if (moment->defined()) share_array(control, moment->data<float>(), moment->size());
    }
    state.set_steps(all_numbers(control, state.steps())[0]);
  }
  learner_->weights_changed();
}

bool RankSession::adds_up() const {
  return own_run_.metric == "accuracy" || (own_run_.metric == "micro_f1" && !own_run_.dataset.multilabel());
}

// Scores that are means over vertices are added up by the numbers of vertices that count.
Scores RankSession::add_up(const Scores& own) {
  const auto counted = [&](const Array<NodeId>& split) {
    return static_cast<double>(std::count_if(split.begin(), split.end(), [&](NodeId v) { return own_run_.counts(v); }));
  };
  const Splits& splits = own_run_.dataset.splits;
  struct Part {
    double scores[4], counts[4];
  };
  const double val = counted(splits.val);
  const Part part{{own.train, own.val, own.test, own.val_loss},
                  {counted(splits.train), val, counted(splits.test), val}};
  double sum[4] = {}, count[4] = {};
  for (const Part& p : all_numbers(setup_.control, part)) {
    for (int i = 0; i < 4; ++i) {
      if (p.counts[i] > 0) sum[i] += p.scores[i] * p.counts[i];
      count[i] += p.counts[i];
    }
  }
  const auto mean = [&](int i) { return count[i] > 0 ? sum[i] / count[i] : NAN; };
  return {mean(0), mean(1), mean(2), mean(3)};
}

Scores RankSession::evaluate(bool with_loss) {
  if (adds_up()) {
    eval_->run({setup_.run.config.seed, 0});
    return add_up(scorer_->score(*eval_, with_loss));
  }
  const Dataset& whole = setup_.run.dataset;
  if (setup_.control.rank() == 0) all_rows_.resize(static_cast<size_t>(whole.num_nodes() * whole.num_classes));
  predict("logits", all_rows_.data());
  if (setup_.control.rank() != 0) return {};
  return score_splits(own_run_.metric, whole, all_rows_.data(), with_loss);
}

void RankSession::predict(const std::string& output, float* all) {
  eval_->run({setup_.run.config.seed, 0});
  const Dfg& dfg = eval_->plan().dfg;
  gather(eval_->output(output), dfg[dfg.output(output)].type.row_size(), all);
}

void RankSession::gather(const float* own_rows, int64_t width, float* all_rows) {
  Communicator& control = setup_.control;
  const auto* own = reinterpret_cast<const std::byte*>(own_rows);
  auto* all = reinterpret_cast<std::byte*>(all_rows);
  const int64_t row_bytes = width * static_cast<int64_t>(sizeof(float));
  if (control.rank() == 0 && order_.empty()) {
    // All ranks know the partition, so the vertices of the others need not be sent.
    begin_.assign(static_cast<size_t>(control.size()) + 1, 0);
    const Array<int32_t>& part = setup_.partition.part;
    for (const int32_t p : part) ++begin_[static_cast<size_t>(p) + 1];
    for (int r = 0; r < control.size(); ++r) begin_[r + 1] += begin_[r];
    std::vector<NodeId> order(static_cast<size_t>(part.size()));
    std::vector<int64_t> next = begin_;
    for (int64_t v = 0; v < part.size(); ++v) order[next[part[v]]++] = static_cast<NodeId>(v);
    order_ = std::move(order);
  }
  ExchangeRequest request;
  request.name = "predictions";
  request.sends.push_back({0, {own, local_->num_own(), row_bytes, 0, nullptr}});
  for (int r = 0; control.rank() == 0 && r < control.size(); ++r)
    request.receives.push_back({r, {all, begin_[r + 1] - begin_[r], row_bytes, 0, order_.data() + begin_[r]}});
  control.exchange(request);
}

std::vector<RankFigures> RankSession::figures() const {
  RankFigures own;
  own.vertices = local_->num_own();
  own.edges = local_->graph.num_edges();
  own.halo = local_->num_halo();
  own.device_bytes = total_bytes(memory());
  if (!device().on_host()) {
    own.host_bytes = local_->graph.bytes() + setup_.views->bytes() + inputs_->feature_bytes() + inputs_->other_bytes() +
                     learner_->parameter_bytes() + learner_->optimizer_bytes();
  }
  const CommCounters counters = setup_.data.counters();
  own.sent = counters.exchange.bytes_sent + counters.all_reduce.bytes_sent;
  own.planned_received = train_ ? received_bytes(train_->plan(), *local_) : 0;
  own.received = received_;
  own.kernel_seconds = train_ ? kernel_seconds() : 0;
  own.times = times_;
  return all_numbers(setup_.control, own);
}

double RankSession::kernel_seconds() const {
  double sum = 0;
  const std::vector<Kernel>& kernels = train_->plan().kernels;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const KernelTime& time = train_->times()[k];
    if (kernels[k].kind != KernelKind::exchange && time.runs > 0) sum += time.seconds / static_cast<double>(time.runs);
  }
  return sum;
}

}  // namespace nacre
