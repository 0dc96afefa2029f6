#include "nacre/train/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/thread_team.h"
#include "nacre/device/null_device.h"
#include "nacre/engine/rank_block.h"
#include "nacre/partition/local_graph.h"
#include "nacre/plan/narrow.h"
#include "nacre/plan/variants.h"
#include "nacre/train/gpu_device.h"
#include "nacre/train/learner.h"
#include "nacre/train/rank_inputs.h"
#include "nacre/train/rank_planning.h"

namespace nacre {
namespace {

// If there are at most this many ranks, the memory of each is counted; of more ranks, only that of
// the largest.
constexpr int kCountedRanks = 8;
// Values are dropped at most this many times to make the rest fit into memory.
constexpr int kTurns = 4;
constexpr int64_t kNoLimit = int64_t{1} << 60;  // bytes that stand for a memory without a limit
// Columns and sums are not simulated, because a simulated rank has neither the whole graph, which
// sums in columns walk, nor reversed edges, which partial sums walk.
constexpr const char* kLeftOut = "; columns and sums are left out, because they cannot be simulated yet";

Partition one_part(int64_t vertices) {
  Partition whole;
  whole.num_parts = 1;
  whole.part = std::vector<int32_t>(static_cast<size_t>(vertices), 0);
  return whole;
}

RankRows scaled(RankRows rows, double scale) {
  for (double* count : {&rows.own, &rows.halo, &rows.sent, &rows.edges, &rows.pairs_src, &rows.pairs_dst})
    *count *= scale;
  return rows;
}

// Returns the seconds that a link takes for a communication with `peers` devices. Without a link,
// devices take `by_memory` seconds to read the bytes where they lie.
double link_seconds(const LinkRates& link, double bytes, int peers, double by_memory) {
  if (peers == 0) return 0;
  return link.latency + link.message * peers + (link.bandwidth > 0 ? bytes / link.bandwidth : by_memory);
}

}  // namespace

// Holds a part of the graph, with all that is needed to make a plan for it.
struct Simulator::Part {
  const DescribedDevice& device;
  LocalGraph local;
  std::shared_ptr<Backend> backend;
  std::unique_ptr<Blocks> blocks;
};

struct Simulator::Planned {
  PlanAnswer answer;
  Plan train, eval;
};

const SimulatedRank& SimulatedRun::fullest() const {
  const auto fill = [](const SimulatedRank& rank) {
    return rank.limit > 0 ? rank.memory / static_cast<double>(rank.limit) : rank.memory / 1e15;
  };
  return *std::max_element(ranks.begin(), ranks.end(), [&](const auto& a, const auto& b) { return fill(a) < fill(b); });
}

StepSplit SimulatedRun::longest() const {
  StepSplit longest;
  for (const SimulatedRank& rank : ranks) {
    longest.computing = std::max(longest.computing, rank.split.computing);
    longest.communicating = std::max(longest.communicating, rank.split.communicating);
    longest.waiting = std::max(longest.waiting, rank.split.waiting);
  }
  return longest;
}

Simulator::Simulator(Dataset dataset, RunConfig config, Hardware hardware, double scale)
    : hardware_(std::move(hardware)), scale_(scale), run_(std::move(dataset), std::move(config), true) {
  if (!run_.config.model.kinds.empty())
    throw UserError("nacre simulate", "cannot simulate data with several kinds of nodes, or with learned features, yet",
                    "use data with one kind of nodes and features");
  const std::string& rows = run_.config.ranks.halo_rows;
  if (rows == halo_rows_name(HaloRows::columns) || rows == halo_rows_name(HaloRows::sums))
    throw UserError("--halo-rows " + rows, "cannot be simulated yet", "use auto, late, early or narrow");
  NACRE_CHECK(hardware_.devices_of_machine() > 0 && scale > 0,
              "a simulation needs at least one device and a scale above 0");
}

RunConfig Simulator::config_for(const DescribedDevice& device) const {
  RunConfig config = run_.config;
  config.device = "cpu";
  config.memory_limit =
      device.memory_bytes > 0 ? std::llround(static_cast<double>(device.memory_bytes) / scale_) : kNoLimit;
  if (!device.gpu) config.precision = "f32";
  return config;
}

std::shared_ptr<Backend> Simulator::backend_of(const DescribedDevice& device) const {
  auto views = std::make_shared<GraphViews>();
  if (!device.gpu) return make_cpu_backend(std::move(views));
  DeviceInfo info = typical_gpu();
  info.name = device.name;
  info.multiprocessors = device.multiprocessors;
  info.l2_bytes = device.cache_bytes;
  if (device.memory_bytes > 0) info.memory_bytes = info.free_bytes = device.memory_bytes;
  return absent_gpu(info, run_.config, std::move(views));
}

CostModel Simulator::model_of(const DescribedDevice& device, int ranks) const {
  CostModel model = device.model;
  if (std::min(ranks, hardware_.devices_of_machine()) > 1) {
    for (const Feature f : {Feature::stream_bytes, Feature::near_bytes, Feature::far_bytes})
      model.scale(f, 1 / device.together);
  }
  return model;
}

std::unique_ptr<Simulator::Part> Simulator::whole_of(const DescribedDevice& device) const {
  const Graph& whole = run_.dataset.graph;
  auto part = std::make_unique<Part>(
      Part{device, local_graph(whole, one_part(whole.num_nodes()), 0), backend_of(device), nullptr});
  part->blocks = std::make_unique<Blocks>(Blocks::full(whole, std::max(1, run_.config.model.layers)));
  return part;
}

std::unique_ptr<Simulator::Part> Simulator::part_of(const Partition& partition, int rank) const {
  const Graph& whole = run_.dataset.graph;
  const DescribedDevice& device = hardware_.device_of(rank);
  auto part = std::make_unique<Part>(Part{device, local_graph(whole, partition, rank), backend_of(device), nullptr});
  const int layers = std::max(1, run_.config.model.layers);
  TotalRows totals{whole.num_nodes(), whole.num_edges()};
  if (whole.typed()) {
    totals.pairs_src = whole.count_pairs(End::src);
    totals.pairs_dst = whole.count_pairs(End::dst);
  }
  part->blocks =
      std::make_unique<Blocks>(Blocks::of_rank({part->local.graph}, layers, make_planning_links(part->local, totals)));
  return part;
}

void Simulator::make_plans(const Part& part, const Dfg& trained, const Dfg& predicted, Planned& planned) {
  const DeviceTraits traits = part.backend->traits();
  PlanOptions options = planned.answer.plan.options;
  options.join_products = joined_products(traits);
  planned.train = make_plan(without_scores(trained), *part.blocks, options, {.device = &traits});
  planned.eval = make_plan(predicted, *part.blocks, options, {.device = &traits});
}

Simulator::Planned Simulator::plan(const Part& part, bool alone, bool limited, HaloRows rows) const {
  RunConfig config = config_for(part.device);
  if (!limited) config.memory_limit = kNoLimit;
  Dfg trained, predicted;
  Planned planned;
  if (alone) {
    ModelOptions options = run_.config.model;
    options.training = true;
    options.loss = run_.training_loss();
    trained = build_model(options);
    differentiate(trained);
    options.training = false;
    options.loss = "none";
    predicted = build_model(options);
    PlanRequest request = plan_request(config, config.epochs, "");
    if (request.plan == "auto") request.deterministic = true;  // simulated plans are made by rules
    planned.answer = plan_training(trained, *part.blocks, part.backend, request, [](Executor&) {});
  } else {
    trained = rank_model(run_, true, false);
    predicted = rank_model(run_, false, false);
    planned.answer = plan_for_ranks(trained, {*part.blocks, part.local}, part.backend, config);
    planned.answer.plan.options.halo_rows.usual = rows;
  }
  make_plans(part, trained, predicted, planned);
  for (int turn = 0; turn < kTurns && limited && part.device.memory_bytes > 0; ++turn) {
    const double missing = memory_of(part, planned) - static_cast<double>(part.device.memory_bytes);
    PlanAnswer smaller = planned.answer;
    smaller.plan = planned.train;
    if (missing <= 0 || !shrink_plan(smaller, trained, *part.blocks, part.backend, std::llround(missing / scale_)))
      break;
    planned.answer = std::move(smaller);
    make_plans(part, trained, predicted, planned);
  }
  return planned;
}

// Counts what RankSession::memory() counts for a real rank. The bytes of values of vertices and
// edges are multiplied by the scale; those of parameters are not.
double Simulator::memory_of(const Part& part, const Planned& planned) const {
  // Kernels on cores have scratch memory for each thread, so memory is counted with as many threads
  // as the device has.
  const std::unique_ptr<ThreadTeam> team =
      part.device.gpu ? nullptr : std::make_unique<ThreadTeam>(part.device.threads);
  const std::shared_ptr<Backend> backend = backend_of(part.device);
  const ExecutorOptions options{.overlap = run_.config.ranks.overlap};
  const Executor train(planned.train, *part.blocks, backend, options);
  const Executor eval(planned.eval, *part.blocks, backend, options);
  const ConstantPool none;
  const InputBytes inputs = input_bytes(run_, part.local, {&planned.train, &planned.eval});
  int64_t growing = backend->graph_bytes() + inputs.features + inputs.other +
                    std::max(train.constant_bytes(none), eval.constant_bytes(none)) +
                    std::max(train.arena_bytes(), eval.arena_bytes());
  if (!part.device.gpu) growing += part.local.graph.bytes() + (part.local.num_own() + part.local.num_halo()) * 8;
  Learner learner(Parameters(planned.train.dfg, *part.blocks, run_.config.seed), backend);
  learner.optimize_with(run_.config.optimizer);
  return static_cast<double>(growing) * scale_ +
         static_cast<double>(learner.parameter_bytes() + learner.optimizer_bytes());
}

void Simulator::count_memory(const Partition& partition, int largest, const Planned& planned,
                             SimulatedRun& result) const {
  std::set<int> counted{largest};
  for (int r = 0; r < std::ssize(result.ranks); ++r) {
    if (result.ranks.size() <= kCountedRanks) counted.insert(r);
  }
  const auto fewer = [](const SimulatedRank& a, const SimulatedRank& b) {
    return a.rows.own + a.rows.halo < b.rows.own + b.rows.halo;
  };
  const auto most = std::max_element(result.ranks.begin(), result.ranks.end(), fewer);
  counted.insert(static_cast<int>(most - result.ranks.begin()));
  for (const int r : counted) {
    const std::unique_ptr<Part> part = part_of(partition, r);
    Planned own;
    own.answer.plan.options = planned.train.options;
    make_plans(*part, rank_model(run_, true, false), rank_model(run_, false, false), own);
    result.ranks[r].memory = memory_of(*part, own);
  }
}

// Bytes inside a machine and between machines travel at the same time.
void Simulator::set_links(const PartitionStats& stats, const Plan& plan, const SimulatedRun& result,
                          std::vector<RankStep>& steps) const {
  const auto ranks = static_cast<int>(steps.size());
  const bool spread = hardware_.machine_of(ranks - 1) > 0;
  for (int r = 0; r < ranks; ++r) {
    int near = 0, far = 0;  // numbers of peers in the same machine and in others
    double near_in = 0, near_out = 0, far_in = 0, far_out = 0;
    for (int p = 0; p < ranks; ++p) {
      const auto in = static_cast<double>(stats.rows[static_cast<size_t>(r) * ranks + p]) * scale_;
      const auto out = static_cast<double>(stats.rows[static_cast<size_t>(p) * ranks + r]) * scale_;
      if (p == r || in + out == 0) continue;
      const bool here = hardware_.machine_of(p) == hardware_.machine_of(r);
      ++(here ? near : far);
      (here ? near_in : far_in) += in;
      (here ? near_out : far_out) += out;
    }
    const std::vector<StepCall> calls = step_calls(plan, result.ranks[r].rows, r, ranks);
    for (size_t c = 0; c < calls.size(); ++c) {
      double& seconds = steps[r].moving[c];
      const Node& root = plan.dfg[plan.kernels[calls[c].kernel].root];
      const double row = static_cast<double>(root.type.row_size()) * stored_bytes(plan, plan.kernels[calls[c].kernel]);
      if (calls[c].op == Op::all_reduce) {
        // A sum over all ranks travels in two rounds: every rank gets its slice from all others,
        // and then sends them the sum of the slice.
        const LinkRates& link = spread ? hardware_.between : hardware_.inside;
        seconds = link.latency + link.message * (ranks - 1) + link_seconds(link, calls[c].sent, ranks - 1, seconds);
        continue;
      }
      const double inside = link_seconds(hardware_.inside, row * std::max(near_in, near_out), near, seconds);
      seconds = std::max(inside, link_seconds(hardware_.between, row * std::max(far_in, far_out), far, 0));
    }
  }
}

double Simulator::alone_seconds(const DescribedDevice& device) {
  const auto known = alone_.find(device.name);
  if (known != alone_.end()) return known->second;
  const std::unique_ptr<Part> part = whole_of(device);
  const Planned planned = plan(*part, true, false, HaloRows::late);
  const RankStep step = forecast_rank(planned.train, scaled(rows_of(part->local), scale_), device.model,
                                      device.cache_bytes, run_.config.ranks.overlap);
  return alone_[device.name] = longest_step(run_step_clock({step}, {.everyone = {}, .peers = {{}}}));
}

SimulatedRun Simulator::run_alone() {
  const DescribedDevice& device = hardware_.device_of(0);
  const std::unique_ptr<Part> part = whole_of(device);
  const Planned planned = plan(*part, true, true, HaloRows::late);
  SimulatedRun result;
  SimulatedRank& rank = result.ranks.emplace_back();
  rank.device = device.name;
  rank.share = 1;
  rank.rows = scaled(rows_of(part->local), scale_);
  rank.limit = device.memory_bytes;
  rank.memory = memory_of(*part, planned);
  const RankStep step =
      forecast_rank(planned.train, rank.rows, device.model, device.cache_bytes, run_.config.ranks.overlap);
  rank.split = run_step_clock({step}, {.everyone = {}, .peers = {{}}})[0];
  result.dropped = planned.answer.dropped.size();
  result.epoch = rank.split.step();
  result.efficiency = alone_seconds(device) / result.epoch;
  return result;
}

SimulatedRun Simulator::run(int ranks, std::vector<double> shares) {
  if (ranks > hardware_.most_ranks()) {
    throw UserError(
        "--ranks",
        fmt::format("{} devices are more than the {} devices of {}", ranks, hardware_.most_ranks(), hardware_.name),
        "give fewer, or describe more machines");
  }
  if (ranks == 1) return run_alone();
  std::vector<double> speeds;  // speed of each device by itself
  speeds.reserve(static_cast<size_t>(ranks));
  for (int r = 0; r < ranks; ++r) speeds.push_back(1 / alone_seconds(hardware_.device_of(r)));
  if (shares.empty()) shares = speeds;
  const Graph& graph = run_.dataset.graph;
  const Partition partition = partition_graph(graph, shares, run_.config.ranks.partition);
  const PartitionStats stats = partition_stats(graph, partition, shares, run_.config.ranks.partition);
  const auto fewer = [](const PartStats& a, const PartStats& b) { return a.edges < b.edges; };
  const auto largest =
      static_cast<int>(std::max_element(stats.parts.begin(), stats.parts.end(), fewer) - stats.parts.begin());
  const std::unique_ptr<Part> part = part_of(partition, largest);
  Planned planned;
  SimulatedRun result = fastest(*part, stats, planned);
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (int r = 0; r < ranks; ++r) result.ranks[r].share = shares[r] / all;
  result.machines = hardware_.machine_of(ranks - 1) + 1;
  result.cut = stats.cut_share();
  result.imbalance = stats.imbalance();
  result.dropped = planned.answer.dropped.size();
  count_memory(partition, largest, planned, result);
  result.efficiency = 1 / (std::accumulate(speeds.begin(), speeds.end(), 0.0) * result.epoch);
  return result;
}

SimulatedRun Simulator::fastest(const Part& part, const PartitionStats& stats, Planned& planned) const {
  const std::string& asked = run_.config.ranks.halo_rows;
  if (asked != "auto") {
    planned = plan(part, false, true, parse_halo_rows(asked));
    return forecast(part, stats, planned.train);
  }
  SimulatedRun best;
  std::string chosen, others;
  for (const HaloRows rows : {HaloRows::late, HaloRows::narrow, HaloRows::early}) {
    Planned tried = plan(part, false, true, rows);
    SimulatedRun result = forecast(part, stats, tried.train);
    double received = 0;
    for (const SimulatedRank& rank : result.ranks) received = std::max(received, rank.received_rows);
    others += fmt::format("{}{} {}, {}", others.empty() ? "" : "; ", halo_rows_name(rows), human_seconds(result.epoch),
                          human_bytes(received));
    if (!chosen.empty() && result.epoch >= best.epoch) continue;
    best = std::move(result);
    planned = std::move(tried);
    chosen = halo_rows_name(rows);
  }
  best.travels = fmt::format("--halo-rows auto chooses {}; predicted epoch and most bytes that a device receives: {}{}",
                             chosen, others, kLeftOut);
  return best;
}

SimulatedRun Simulator::forecast(const Part& part, const PartitionStats& stats, const Plan& plan) const {
  const auto ranks = static_cast<int>(stats.parts.size());
  SimulatedRun result;
  const RankRows known = rows_of(part.local);
  std::vector<RankStep> steps;
  ClockOptions clock{.links_work_alone = hardware_.overlap, .everyone = {}, .peers = {}};
  for (int r = 0; r < ranks; ++r) {
    const PartStats& own = stats.parts[r];
    const DescribedDevice& device = hardware_.device_of(r);
    SimulatedRank& rank = result.ranks.emplace_back();
    rank.device = device.name;
    rank.limit = device.memory_bytes;
    // The rank is taken to have as many pairs for each edge as the largest rank has.
    const auto edges = static_cast<double>(own.edges);
    const double part_of_known = edges / std::max(1.0, known.edges);
    rank.rows = scaled({static_cast<double>(own.vertices), static_cast<double>(own.halo), static_cast<double>(own.sent),
                        edges, known.pairs_src * part_of_known, known.pairs_dst * part_of_known, known.types},
                       scale_);
    for (const StepCall& call : step_calls(plan, rank.rows, r, ranks)) {
      rank.sent += call.sent;
      rank.received += call.received;
      rank.received_rows += call.op == Op::all_reduce ? 0 : call.received;
      if (r == 0) clock.everyone.push_back(call.op == Op::all_reduce ? 1 : 0);
    }
    steps.push_back(
        forecast_rank(plan, rank.rows, model_of(device, ranks), device.cache_bytes, run_.config.ranks.overlap));
    std::vector<int>& peers = clock.peers.emplace_back();
    for (int p = 0; p < ranks; ++p) {
      const size_t in = static_cast<size_t>(r) * ranks + p, out = static_cast<size_t>(p) * ranks + r;
      if (p != r && stats.rows[in] + stats.rows[out] > 0) peers.push_back(p);
    }
  }
  set_links(stats, plan, result, steps);
  const std::vector<StepSplit> splits = run_step_clock(steps, clock);
  for (int r = 0; r < ranks; ++r) result.ranks[r].split = splits[r];
  result.epoch = longest_step(splits);
  return result;
}

}  // namespace nacre
