#include "nacre/train/rank_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/cost/nominal.h"
#include "nacre/dfg/placed_aggregations.h"
#include "nacre/engine/rank_block.h"
#include "nacre/engine/row_precision.h"
#include "nacre/graph/reversed.h"
#include "nacre/plan/cost.h"
#include "nacre/plan/order.h"
#include "nacre/plan/variants.h"
#include "nacre/train/link_rate.h"
#include "nacre/train/metrics.h"
#include "nacre/train/rank_planning.h"
#include "nacre/train/rank_values.h"

namespace nacre {
namespace {

// Of every kMeasuredEvery steps, a rank on a GPU measures one.
constexpr int64_t kMeasuredEvery = 8;
// The first step that is measured has this number. It follows the steps whose kernels are timed.
constexpr int64_t kFirstMeasured = kTimedSteps + 1;

}  // namespace

RankSession::RankSession(RankSetup setup) : setup_(std::move(setup)), own_run_(setup_.run) {
  const RunData& run = setup_.run;
  const Graph& whole = run.dataset.graph;
  local_ = std::make_shared<const LocalGraph>(local_graph(whole, setup_.partition, setup_.control.rank()));
  const int layers = std::max(1, run.config.model.layers);
  if (wants_reversed(whole)) {
    reversed_ = std::make_shared<const LocalGraph>(
        local_graph(reversed_graph(whole), setup_.partition, setup_.control.rank(), EdgeSense::reversed));
  }
  RankGraphs graphs{local_->graph, whole};
  if (reversed_) graphs.reversed = reversed_->graph;
  blocks_ =
      std::make_unique<Blocks>(Blocks::of_rank(graphs, layers,
                                               make_rank_links({whole, setup_.partition, setup_.shares, reversed_},
                                                               local_, setup_.data, device().gpu_compiler())));
  inputs_ = std::make_unique<RankInputs>(run, *local_, reversed_.get());
  own_run_.dataset = inputs_->own_data();
  Dfg trained;
  if (setup_.needs.training) {
    trained = rank_model(run, true, false);
    learner_ = std::make_unique<Learner>(Parameters(trained, *blocks_, run.config.seed), device().backend());
    learner_->optimize_with(run.config.optimizer);
  }
  predicted_ = rank_model(run, false, setup_.needs.embeddings);
  const std::vector<int> bf16 = all_numbers(setup_.control, setup_.config.precision == "bf16" ? 1 : 0);
  some_bf16_ = std::find(bf16.begin(), bf16.end(), 1) != bf16.end();
  if (!learner_)
    learner_ = std::make_unique<Learner>(Parameters(predicted_, *blocks_, run.config.seed), device().backend());
  plan(setup_.needs.training ? trained : predicted_);
  if (setup_.needs.training) make_executor(without_scores(trained), train_);
  make_executor(predicted_, eval_);
  inputs_->keep_only(train_ ? std::vector{&train_->plan(), &eval_->plan()} : std::vector{&eval_->plan()});
  scorer_ = device().make_scorer(own_run_);
  if (setup_.needs.training) fit(trained);
}

// Returns whether ranks need the reversed block, which has the edges that start at own vertices.
// Only aggregation at the owners of sources reads it, and that can pay if these edges lead to fewer
// vertices of other ranks than the halos have. All ranks return the same.
bool RankSession::wants_reversed(const Graph& whole) {
  const std::string& rows = setup_.config.ranks.halo_rows;
  if (rows != "auto") return rows == halo_rows_name(HaloRows::sums);
  const int64_t far = count_far_destinations(whole, setup_.partition, setup_.control.rank());
  const auto total = [&](int64_t own) {
    const std::vector<int64_t> all = all_numbers(setup_.control, own);
    return std::accumulate(all.begin(), all.end(), int64_t{0});
  };
  return total(far) < total(local_->num_halo());
}

// Makes the plan options and chooses the rows that travel. The rank with the most edges plans.
// Ranks that compute on another kind of device than the planner take its options, too, because all
// ranks must send the same rows.
void RankSession::plan(const Dfg& dfg) {
  Communicator& control = setup_.control;
  const std::vector<int64_t> edges = all_numbers(control, local_->graph.num_edges());
  const auto planner = static_cast<int>(std::max_element(edges.begin(), edges.end()) - edges.begin());
  if (control.rank() == planner) {
    planning_ = plan_for_ranks(dfg, part(), device().backend(), setup_.config, setup_.needs.resumed_plan);
  }
  planning_.plan.options = agreed(planner, planning_.plan.options);
  planning_.source = control.broadcast(planner, planning_.source);
  planning_.plan.name = setup_.config.plan;
  place(dfg);
}

// All ranks try the same placements in the same order, because all of them see the same costs.
void RankSession::place(const Dfg& dfg) {
  const Dfg step = without_scores(dfg);
  PlanOptions& options = planning_.plan.options;
  Backend& backend = *device().backend();
  const DeviceTraits traits = backend.traits();
  const int64_t memory = device().memory_limit(setup_.config, backend.available_bytes() + backend.graph_bytes());
  const double link = link_ = link_rate();
  // Which values are computed again was chosen for rows that travel late, and these values have
  // other names if other rows travel. So the choice is dropped here, and fit() chooses again if
  // memory is short. A plan from a file keeps its choice, because the file also says which rows
  // travel.
  const bool from_file = planning_.source == "file";
  if (!from_file) {
    options.recompute.clear();
    planning_.dropped.clear();
  }
  const PlacementTrial trial = [&](const RankPlacement& placement) {
    PlanOptions tried = options;
    tried.halo_rows = placement;
    Plan plan = make_plan(step, *blocks_, tried, {.device = &traits, .variants = false});
    if (some_bf16_) agree_on_rows(plan, part(), setup_.control);
    const PlacementCost own = predict(plan, memory, link);
    PlacementCost most = own;
    for (const PlacementCost& cost : all_numbers(setup_.control, own)) {
      most = {std::max(most.seconds, cost.seconds), std::max(most.received, cost.received),
              std::max(most.missing, cost.missing)};
    }
    return most;
  };
  const Dfg whole = undistributed_dfg(step, *blocks_, options);
  const std::string& rows = setup_.config.ranks.halo_rows;
  if (rows == "auto" && !from_file) {
    placement_ = search_placement(whole, trial, blocks_->views());
  } else {
    const RankPlacement asked = rows == "auto" ? options.halo_rows : RankPlacement{parse_halo_rows(rows), {}};
    placement_ = given_placement(whole, asked, trial, blocks_->views());
  }
  options.halo_rows = placement_.placement;
  for (const double rate : all_numbers(setup_.control, link)) {
    double& slowest = placement_.link_bytes_per_second;
    if (rate > 0) slowest = slowest > 0 ? std::min(slowest, rate) : rate;
  }
}

// Ranks that share the memory of one host copy rows as fast as any other array, so nothing is
// measured for them, and their plans are the same in every run.
double RankSession::link_rate() {
  const std::vector<int> on_host = all_numbers(setup_.control, device().on_host() ? 1 : 0);
  const bool one_memory = setup_.needs.mpi == nullptr && std::find(on_host.begin(), on_host.end(), 0) == on_host.end();
  if (one_memory || setup_.config.deterministic) return 0;
  const double rate = measure_link(*blocks_->links(), *local_, *device().backend());
  sent_before_ = setup_.data.counters().exchange.bytes_sent;
  return rate;
}

PlacementCost RankSession::predict(const Plan& plan, int64_t memory, double link) {
  const NominalProfile prices = device().on_host() ? nominal_cpu() : nominal_gpu(device().backend()->traits().part);
  SearchOptions how;
  how.model = &prices.model;
  how.cache_bytes = prices.cache_bytes;
  how.link_bytes_per_second = link;
  const int64_t held = local_->graph.bytes() + (reversed_ ? reversed_->graph.bytes() : 0) + inputs_->bytes_of(plan) +
                       learner_->parameter_bytes() + (learner_->trains() ? learner_->optimizer_bytes() : 0);
  const int64_t values = peak_live_bytes(plan, *blocks_) + once_bytes(plan, *blocks_) + order_bytes(plan, *blocks_);
  return {predict_plan(plan, *blocks_, how), received_bytes(plan, part()), held + values - memory};
}

std::vector<std::string> RankSession::placement_notes() const {
  std::vector<std::string> notes = placement_lines(placement_);
  const Plan& plan = train_ ? train_->plan() : eval_->plan();
  const std::string text = place_text(placement_.placement, plan.dfg, blocks_->views());
  if (!text.empty()) notes.push_back("--halo-rows " + setup_.config.ranks.halo_rows + ": " + text);
  if (!placement_.fixed.empty() && !reversed_) {
    notes.emplace_back("--halo-rows auto does not try sums, because sums would send no fewer rows than late");
  }
  return notes;
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
  plan.placement = placement_;
  if (some_bf16_) agree_on_rows(plan, part(), setup_.control);
  inputs_->make(plan);
  executor = std::make_unique<Executor>(std::move(plan), *blocks_, device().backend(),
                                        ExecutorOptions{.overlap = setup_.config.ranks.overlap});
}

// If the values of some ranks do not fit, the rank that lacks the most memory chooses values that
// all ranks drop and compute again.
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
  const int64_t more = reversed_ ? reversed_->graph.bytes() : 0;
  if (host)
    items.push_back({"part of the graph", local_->graph.bytes() + more + blocks_->links()->vertex_ids().size() * 8});
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

int64_t RankSession::data_bytes() const {
  const RunData& run = setup_.run;
  int64_t bytes = run.dataset.graph.bytes() + run.label_bytes() + setup_.partition.part.size() * 4;
  for (const FeatureLeaf& leaf : run.leaves) bytes += leaf.values.bytes();
  return bytes;
}

int64_t RankSession::memory_limit() const {
  Backend& backend = *device().backend();
  const int64_t limit = device().memory_limit(setup_.config, backend.available_bytes() + backend.graph_bytes());
  if (setup_.needs.mpi == nullptr) return limit;
  return (device().on_host() ? limit - data_bytes() : limit) / setup_.sharing;
}

int64_t RankSession::missing_bytes() const { return total_bytes(memory()) - memory_limit(); }

void RankSession::start() {
  Backend& backend = *device().backend();
  const int64_t bytes = std::max(train_ ? train_->arena_bytes() : 0, eval_->arena_bytes());
  const std::shared_ptr<void> arena = backend.allocate(bytes);
  share_state();
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
  const bool measured = !device().on_host() && steps_ > 0 && (timed || steps_ % kMeasuredEvery == kFirstMeasured);
  if (measured) {
    measure_step(context, timed);
  } else {
    run_step(context, timed);
  }
  ++steps_;
  learner_->keep_loss(*train_);
  learner_->update(lr);
  if (!device().on_host() || timed) return;
  times_.steps += now_seconds() - start;
  ++times_.count;
}

void RankSession::run_step(const StepContext& context, bool timed) {
  const CommCounters before = setup_.data.counters();
  if (timed) {
    // The first step compiles and loads kernels, so its times do not count.
    if (!timed_) train_->reset_times();
    timed_ = true;
    const std::vector<KernelTime> before = train_->times();
    train_->run_timed(context);
    keep_kernel_times(before);
  } else {
    train_->run(context);
  }
  const CommCounters after = setup_.data.counters();
  received_ = after.exchange.bytes_received - before.exchange.bytes_received;
  if (!device().on_host() || timed) return;
  // Communication that goes on while the rank computes costs the rank no time, so only the time in
  // wait() counts.
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
  backend.await(backend.mark());
  const double start = now_seconds();
  setup_.data.measure(true);
  run_step(context, timed);
  const DeviceSeconds seconds = setup_.data.take_seconds();
  setup_.data.measure(false);
  backend.await(backend.mark());
  if (timed) return;  // kernels that are timed one by one wait longer for other ranks than usual
  times_.steps += now_seconds() - start;
  ++times_.count;
  times_.communication += seconds.moved + seconds.reduced;
  times_.reduction += seconds.reduced;
  times_.waiting += seconds.waited;
}

void RankSession::share_weights() { nacre::share_weights(setup_.control, *learner_); }

void RankSession::share_state() { nacre::share_state(setup_.control, *learner_); }

bool RankSession::adds_up() const {
  return own_run_.metric == "accuracy" || (own_run_.metric == "micro_f1" && !own_run_.dataset.multilabel());
}

// Returns the scores over the vertices of all ranks, from scores that are means over the own
// vertices of each rank. The mean of a rank is weighted by the number of its vertices that count.
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
    // All ranks know the partition, so rank 0 finds the vertices of the other ranks by itself.
    begin_.assign(static_cast<size_t>(control.size()) + 1, 0);
    const Array<int32_t>& part = setup_.partition.part;
    for (const int32_t p : part) ++begin_[static_cast<size_t>(p) + 1];
    for (int r = 0; r < control.size(); ++r) begin_[r + 1] += begin_[r];
    std::vector<NodeId> order(static_cast<size_t>(part.size()));
    std::vector<int64_t> next = begin_;
    for (int64_t v = 0; v < part.size(); ++v) order[next[part[v]]++] = static_cast<NodeId>(v);
    order_ = std::move(order);
  }
  const Array<NodeId> rows = rows_by_number(*local_);
  ExchangeRequest request;
  request.name = "predictions";
  request.sends.push_back({0, {own, local_->num_own(), row_bytes, 0, rows.empty() ? nullptr : rows.data()}});
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
    own.host_bytes = local_->graph.bytes() + (reversed_ ? reversed_->graph.bytes() : 0) + setup_.views->bytes() +
                     inputs_->feature_bytes() + inputs_->other_bytes() + learner_->parameter_bytes() +
                     learner_->optimizer_bytes();
  }
  const CommCounters counters = setup_.data.counters();
  own.sent = counters.exchange.bytes_sent - sent_before_ + counters.all_reduce.bytes_sent;
  own.planned_received = train_ ? received_bytes(train_->plan(), part()) : 0;
  own.received = received_;
  own.kernel_seconds = kernel_seconds_;
  own.edge_seconds = edge_seconds_;
  own.memory_limit = memory_limit();
  own.times = times_;
  return all_numbers(setup_.control, own);
}

std::vector<RankTimes> RankSession::all_times() const { return all_numbers(setup_.control, times_); }

}  // namespace nacre
