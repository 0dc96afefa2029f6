#include "ranks_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/cost/gpu_profile.h"
#include "nacre/engine/calibrate.h"
#include "nacre/plan/narrow.h"
#include "nacre/plan/overlap.h"
#include "nacre/train/gpu_device.h"

namespace nacre::cli {
namespace {

std::string size_of(double bytes) { return human_bytes(bytes); }
std::string size_of(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

// Holds the rates that the steps of a rank are predicted with.
struct RankPrices {
  CostModel model;
  int64_t cache_bytes = 0;
  bool measured = false;
};

RankPrices prices_of(const RankSession& rank, const RankDevice& device) {
  if (rank.device().on_host()) {
    if (const auto stored = load_profile(machine_name(device.threads), kProfileVersion))
      return {stored->model, stored->cache_bytes, true};
    return {nominal_cpu().model, nominal_cpu().cache_bytes, false};
  }
  GpuContext& gpu = gpu_of(rank.device());
  const DeviceInfo& info = gpu.device().info();
  if (const auto stored = load_gpu_profile(gpu_label(info.name, info.multiprocessors))) {
    const DeviceProfile profile = planning_profile(*stored, gpu.options().precision);
    return {profile.model, profile.cache_bytes, true};
  }
  const NominalProfile part = nominal_gpu(gpu.traits().part);
  return {part.model, part.cache_bytes, false};
}

std::vector<int> peers_of(const LocalGraph& local) {
  std::vector<int> peers;
  for (const PeerRows& peer : local.peers) peers.push_back(peer.part);
  return peers;
}

// Returns the words that say whether rows travel as bf16; empty if none do.
std::string travel_text(const Plan& plan, const Kernel& kernel) {
  if (moves_bf16(plan, kernel)) return " as bf16";
  const auto ranks = std::count(kernel.narrow_ranks.begin(), kernel.narrow_ranks.end(), 1);
  return ranks == 0 ? "" : fmt::format(", as bf16 to and from {}", counted(ranks, "rank"));
}

std::vector<PlannedCall> calls_of(const Plan& plan, const std::vector<StepCall>& calls, const RankStep& step,
                                  bool overlap) {
  const std::vector<size_t> ends = ends_of_kernels(plan, overlap);
  std::vector<PlannedCall> planned;
  for (size_t c = 0; c < calls.size(); ++c) {
    const size_t k = calls[c].kernel;
    const Node& root = plan.dfg[plan.kernels[k].root];
    size_t hidden_by = 0;
    for (size_t other = k + 1; other < std::min(ends[k], plan.kernels.size()); ++other)
      hidden_by += !plan.kernels[other].once && plan.kernels[other].kind != KernelKind::exchange ? 1 : 0;
    const size_t reader = ends[k];
    const bool early = overlap && reader < plan.kernels.size();
    planned.push_back(
        {calls[c],
         fmt::format("{} {}{}", op_info(root.op).name, type_text(root.type), travel_text(plan, plan.kernels[k])),
         step.moving[c], hidden_by, reader, early ? plan.kernels[reader].early.rows : 0});
  }
  return planned;
}

// Returns a table line for each memory that ranks share.
std::string memories_text(const RanksSummary& s) {
  // This maps the name of a memory to the bytes that ranks need there, and to the limit.
  std::map<std::string, std::pair<int64_t, int64_t>> needed;
  for (const PlannedRank& rank : s.ranks) {
    auto& [bytes, limit] = needed[rank.memory];
    bytes += rank.figures.device_bytes;
    limit = rank.limit;
  }
  std::string text;
  for (const auto& [memory, bytes] : needed) {
    text += fmt::format("{:<10}{}: {} for all its ranks, of {} that may be used{}\n", text.empty() ? "memory" : "",
                        memory == "host" ? "the host" : memory, size_of(bytes.first), size_of(bytes.second),
                        bytes.first > bytes.second ? "; THE RUN DOES NOT FIT" : "");
  }
  return text;
}

}  // namespace

RanksSummary summarise_ranks(const Planned& planned) {
  const RankedSession& session = *planned.several();
  const RunConfig& config = session.config();
  RanksSummary s;
  s.largest = session.largest();
  for (const std::string& note : session.rank(0).placement_notes()) s.travels += (s.travels.empty() ? "" : "; ") + note;
  std::vector<RankStep> steps;
  ClockOptions clock;
  for (int r = 0; r < session.ranks(); ++r) {
    const RankSession& rank = session.rank(r);
    const RankDevice& device = session.devices()[r];
    const RankPrices prices = prices_of(rank, device);
    const Plan& plan = rank.trainer().plan();
    const RankRows rows = rows_of(rank.part());
    const std::vector<StepCall> calls = step_calls(plan, rows, r, session.ranks());
    steps.push_back(forecast_rank(plan, rows, prices.model, prices.cache_bytes, config.ranks.overlap));
    clock.peers.push_back(peers_of(rank.local()));
    PlannedRank own;
    own.device = device.text;
    own.precision = device.precision;
    own.share = session.shares()[r];
    own.figures = session.planned()[r];
    own.limit = rank.device().memory_limit(config, rank.device().free_at_start());
    own.memory =
        rank.device().on_host() ? "host" : fmt::format("cuda:{}", choose_device(device.device, device.precision).index);
    own.measured_rates = prices.measured;
    for (const StepCall& call : calls) {
      own.sent += call.sent;
      own.received += call.received;
    }
    s.ranks.push_back(std::move(own));
    if (r != s.largest) continue;
    s.calls = calls_of(plan, calls, steps.back(), config.ranks.overlap);
    for (const StepCall& call : calls)
      clock.everyone.push_back(call.op == Op::exchange || call.op == Op::exchange_add ? 0 : 1);
  }
  const std::vector<StepSplit> splits = run_step_clock(steps, clock);
  for (size_t r = 0; r < splits.size(); ++r) s.ranks[r].split = splits[r];
  s.step = longest_step(splits);
  return s;
}

std::string planned_ranks_text(const RanksSummary& s) {
  const bool measured = std::all_of(s.ranks.begin(), s.ranks.end(), [](const auto& r) { return r.measured_rates; });
  std::string text = fmt::format("{:<10}{} predicted for a step of all ranks ({})\n", "ranks", human_seconds(s.step),
                                 measured ? "with the measured rates of these devices"
                                          : "with the rates of ordinary devices; nacre profile measures this machine");
  text +=
      fmt::format("  {:>4} {:<14} {:>7} {:>12} {:>14} {:>12} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}\n", "rank", "device",
                  "share", "nodes", "edges", "halo", "memory", "received", "step", "computing", "moving", "waiting");
  for (size_t r = 0; r < s.ranks.size(); ++r) {
    const PlannedRank& rank = s.ranks[r];
    text += fmt::format("  {:>4} {:<14} {:>5.1f} % {:>12} {:>14} {:>12} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}\n", r,
                        rank.precision == "f32" ? rank.device : rank.device + " " + rank.precision, 100 * rank.share,
                        human_count(rank.figures.vertices), human_count(rank.figures.edges),
                        human_count(rank.figures.halo), size_of(rank.figures.device_bytes), size_of(rank.received),
                        human_seconds(rank.split.step()), human_seconds(rank.split.computing),
                        human_seconds(rank.split.communicating), human_seconds(rank.split.waiting));
  }
  text += memories_text(s);
  if (!s.travels.empty()) text += fmt::format("{:<10}{}\n", "rows", s.travels);
  text +=
      fmt::format("{:<10}rank {}, which has the most edges, sends and receives in each step:\n", "moves", s.largest);
  for (const PlannedCall& call : s.calls) {
    text += fmt::format("  [{:>2}] {:<26} {:>10} received, {:>10} sent, {:>9}, {} run meanwhile", call.call.kernel,
                        call.what, size_of(call.call.received), size_of(call.call.sent), human_seconds(call.seconds),
                        counted(static_cast<int64_t>(call.hidden_by), "kernel"));
    if (call.early_rows > 0) text += fmt::format(", and {} of [{}]", counted(call.early_rows, "row"), call.reader);
    text += "\n";
  }
  if (s.calls.empty()) text += "  nothing\n";
  return text;
}

nlohmann::ordered_json planned_ranks_json(const RanksSummary& s) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array(), calls = ranks;
  for (const PlannedRank& rank : s.ranks) {
    ranks.push_back({{"device", rank.device},
                     {"precision", rank.precision},
                     {"share", rank.share},
                     {"nodes", rank.figures.vertices},
                     {"edges", rank.figures.edges},
                     {"halo_nodes", rank.figures.halo},
                     {"memory_bytes", rank.figures.device_bytes},
                     {"memory", rank.memory},
                     {"memory_limit_bytes", rank.limit},
                     {"sent_bytes", rank.sent},
                     {"received_bytes", rank.received},
                     {"received_row_bytes", rank.figures.planned_received},
                     {"measured_rates", rank.measured_rates},
                     {"step_ms", rank.split.step() * 1e3},
                     {"computing_ms", rank.split.computing * 1e3},
                     {"communication_ms", rank.split.communicating * 1e3},
                     {"waiting_ms", rank.split.waiting * 1e3}});
  }
  for (const PlannedCall& call : s.calls) {
    calls.push_back({{"kernel", call.call.kernel},
                     {"what", call.what},
                     {"sent_bytes", call.call.sent},
                     {"received_bytes", call.call.received},
                     {"ms", call.seconds * 1e3},
                     {"kernels_meanwhile", call.hidden_by},
                     {"early_rows", call.early_rows}});
  }
  return {{"step_ms", s.step * 1e3}, {"largest", s.largest}, {"rows", s.travels}, {"ranks", ranks}, {"calls", calls}};
}

}  // namespace nacre::cli
