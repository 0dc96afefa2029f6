#include "nacre/train/ranked_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "nacre/base/error.h"
#include "nacre/base/function_ref.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/thread_team.h"
#include "nacre/base/trace.h"
#include "nacre/engine/rank_memory.h"
#include "nacre/engine/staged_communicator.h"
#include "nacre/train/batch_counts.h"
#include "nacre/train/batch_rank.h"
#include "nacre/train/device_links.h"

namespace nacre {
namespace {

constexpr const char* kTooSlow =
    "it is much slower than the other devices, which would wait for it longer than its work would save (with --shares, "
    "it is used all the same)";

// Carries out an order. Returns false if the session of the rank must end.
bool carry_out(RankSession& rank, const RankOrder& order) {
  switch (order.kind) {
    case RankOrder::Kind::start:
      rank.start();
      break;
    case RankOrder::Kind::step:
      rank.step(order.step, order.lr, order.timed);
      if (order.flag) rank.share_weights();
      break;
    case RankOrder::Kind::weights:
      rank.share_state();
      break;
    case RankOrder::Kind::average:
      rank.learner().use_average(order.flag);
      break;
    case RankOrder::Kind::evaluate:
      rank.evaluate(order.flag);
      break;
    case RankOrder::Kind::predict:
      rank.predict("logits", nullptr);
      break;
    case RankOrder::Kind::embeddings:
      rank.predict("embedding", nullptr);
      break;
    case RankOrder::Kind::figures:
      rank.figures();
      break;
    case RankOrder::Kind::times:
      rank.all_times();
      break;
    case RankOrder::Kind::describe:
      rank.describe_parts(order.flag);
      break;
    case RankOrder::Kind::rebuild:  // nothing to do: follow(MpiTeam&) makes the ranks anew
    case RankOrder::Kind::end:
      return false;
    default:
      NACRE_CHECK(false, "rank 0 has sent an order for mini-batches to a rank of the whole graph");
  }
  return true;
}

// Carries out an order on a rank that computes mini-batches. Returns false if the session of the
// rank must end.
bool carry_out(BatchRank& rank, const RankOrder& order, Communicator& control) {
  switch (order.kind) {
    case RankOrder::Kind::start:
      rank.start();
      break;
    case RankOrder::Kind::epoch:
      rank.session().shuffle_from(order.shuffled_from);
      rank.begin_epoch(order.epoch, order.first, order.epochs);
      break;
    case RankOrder::Kind::step:
      rank.step(order.lr);
      if (order.flag) rank.share_weights();
      break;
    case RankOrder::Kind::weights:
      rank.share_state();
      break;
    case RankOrder::Kind::figures:
      rank.figures();
      break;
    case RankOrder::Kind::times:
      rank.all_times();
      break;
    case RankOrder::Kind::time_batches:
      rank.time_batches();
      break;
    case RankOrder::Kind::count_batches:
      rank.take_counts(unpack_counts(control.broadcast(0, "")));
      break;
    case RankOrder::Kind::wait:
      break;
    case RankOrder::Kind::end:
      return false;
    default:
      NACRE_CHECK(false, "rank 0 has sent an order for the whole graph to a rank of mini-batches");
  }
  return true;
}

// Carries out the orders of rank 0 until carry(order) returns false. Returns the last order.
RankOrder obey(Communicator& control, FunctionRef<bool(const RankOrder&)> carry) {
  RankOrder order;
  do {
    const std::string text = control.broadcast(0, "");
    NACRE_CHECK(text.size() == sizeof order, "an order of rank 0 has another size than expected");
    std::memcpy(&order, text.data(), sizeof order);
  } while (carry(order));
  return order;
}

// Puts the session of a rank into the list of sessions, and takes it out again in the destructor.
class Listed {
 public:
  Listed(const RankSession& rank, const RankSession*& place) : place_(place) { place_ = &rank; }
  ~Listed() { place_ = nullptr; }
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;

 private:
  const RankSession*& place_;
};

}  // namespace

std::string NewShares::packed() const {
  std::vector<double> numbers = shares;
  for (size_t r = 0; r < shares.size(); ++r) numbers.push_back(!bf16.empty() && bf16[r] != 0 ? 1 : 0);
  numbers.push_back(row_work);
  numbers.push_back(cuts_anew ? 1 : 0);
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double)};
}

NewShares NewShares::unpacked(const std::string& bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(double));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(double));
  NACRE_CHECK(numbers.size() % 2 == 0 && numbers.size() >= 2, "shares have arrived without some of their numbers");
  const auto ranks = static_cast<std::ptrdiff_t>(numbers.size() / 2 - 1);
  NewShares wanted;
  wanted.shares.assign(numbers.begin(), numbers.begin() + ranks);
  for (std::ptrdiff_t r = 0; r < ranks; ++r) wanted.bf16.push_back(numbers[ranks + r] != 0 ? 1 : 0);
  wanted.row_work = numbers[2 * ranks];
  wanted.cuts_anew = numbers.back() != 0;
  return wanted;
}

RankedRun::RankedRun(Dataset dataset, RunConfig config, const SessionNeeds& needs)
    : run_(std::move(dataset), std::move(config), needs.training), needs_(needs) {
  check_ranks(run_.config);
  // Sessions of mini-batches check by themselves whether they can train on several kinds of nodes.
  if (!run_.config.model.kinds.empty() && !in_batches()) {
    throw UserError("--devices", "several devices cannot train on several kinds of nodes, or on learned features, yet",
                    "use one device");
  }
  devices_ = rank_devices(run_.config);
  views_.resize(devices_.size());
  opened_.resize(devices_.size());
  speeds_.resize(devices_.size());
  sessions_.resize(devices_.size());
}

bool RankedRun::chooses_shares() const {
  return run_.config.ranks.shares.empty() && run_.config.ranks.share_rule == kAutomaticShares;
}

std::vector<int> RankedRun::weak_devices() const {
  if (!chooses_shares()) return {};
  std::vector<double> scores;
  for (const DeviceSpeed& speed : speeds_) scores.push_back(speed.score);
  return weak_ranks(scores);
}

void RankedRun::leave_out_weak() {
  std::vector<int> weak = weak_devices();
  // The last rank is left out first, because leaving out a rank changes the numbers of later ones.
  std::reverse(weak.begin(), weak.end());
  for (const int r : weak) {
    run_.notes.push_back(fmt::format("{} is left out: {}", devices_[r].text, kTooSlow));
    devices_.erase(devices_.begin() + r);
    views_.erase(views_.begin() + r);
    opened_.erase(opened_.begin() + r);
    speeds_.erase(speeds_.begin() + r);
    sessions_.erase(sessions_.begin() + r);
    if (std::vector<int64_t>& budgets = run_.config.features.budget; budgets.size() > 1)
      budgets.erase(budgets.begin() + r);
  }
}

void RankedRun::share_speeds(Communicator& processes) {
  std::string own;
  for (size_t r = 0; r < speeds_.size(); ++r) {
    if (run_.config.ranks.drives(r)) own.append(reinterpret_cast<const char*>(&speeds_[r]), sizeof(DeviceSpeed));
  }
  // Ranks are numbered in the order of their processes, so the texts of the processes are joined in
  // that order.
  std::string all;
  for (const std::string& speeds : processes.all_gather(own)) all += speeds;
  NACRE_CHECK(all.size() == speeds_.size() * sizeof(DeviceSpeed), "a process has sent too many speeds of devices");
  std::memcpy(speeds_.data(), all.data(), all.size());
}

void RankedRun::deal_out() {
  const RankOptions& asked = run_.config.ranks;
  if (!asked.shares.empty()) return deal_out(asked.shares);
  FirstShares first = shares_by_rule(asked.share_rule, devices_, speeds_);
  run_.notes.push_back(std::move(first.reason));
  if (needs_.mpi != nullptr) {
    // A process cannot leave a run that MPI has started, but it can get no nodes.
    for (const int r : weak_devices()) {
      run_.notes.push_back(fmt::format("rank {} ({}) gets no {}: {}", r, devices_[r].text,
                                       in_batches() ? "batches" : "nodes", kTooSlow));
      first.shares[r] = 0;
    }
  }
  deal_out(std::move(first.shares));
}

void RankedRun::take_precisions(const NewShares& wanted) {
  for (size_t r = 0; r < devices_.size(); ++r) {
    const bool bf16 = !wanted.bf16.empty() && wanted.bf16[r] != 0;
    devices_[r].precision = bf16 ? "bf16" : devices_[r].first_precision;
  }
}

std::vector<char> RankedRun::switched() const {
  std::vector<char> ranks;
  for (const RankDevice& rank : devices_) ranks.push_back(rank.precision != rank.first_precision ? 1 : 0);
  return ranks;
}

bool RankedRun::chooses_precisions() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const RankDevice& rank) { return rank.automatic; });
}

void RankedRun::deal_out_again(const NewShares& wanted) {
  run_.config.ranks.partition.row_work = wanted.row_work;
  if (in_batches() || wanted.cuts_anew) return deal_out(wanted.shares);
  const TraceSpan span("prepare", "partition");
  const double start = now_seconds();
  take_partition(repartition_graph(run_.dataset.graph, partition_, wanted.shares, run_.config.ranks.partition),
                 wanted.shares, start);
}

void RankedRun::take_counts(std::vector<int64_t> counts) {
  shares_.assign(counts.begin(), counts.end());
  const double sum = std::accumulate(shares_.begin(), shares_.end(), 0.0);
  for (double& share : shares_) share /= sum;
  counts_ = std::move(counts);
}

void RankedRun::deal_out(std::vector<double> shares) {
  if (in_batches())
    return take_counts(run_.config.ranks.shares.empty() ? counts_by_speed(shares) : counts_of_shares(shares));
  const TraceSpan span("prepare", "partition");
  const double start = now_seconds();
  Partition made = partition_graph(run_.dataset.graph, shares, run_.config.ranks.partition);
  take_partition(std::move(made), std::move(shares), start);
}

void RankedRun::take_partition(Partition partition, std::vector<double> shares, double start) {
  partition_ = std::move(partition);
  partition_seconds_ = now_seconds() - start;
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  shares_ = std::move(shares);
}

bool RankedRun::mixed() const {
  const auto on_host = [](const RankDevice& rank) { return rank.device == "cpu"; };
  return std::any_of(devices_.begin(), devices_.end(), on_host) &&
         !std::all_of(devices_.begin(), devices_.end(), on_host);
}

RunConfig RankedRun::config_of(int rank) const {
  RunConfig config = run_.config;
  config.device = devices_[rank].device;
  config.precision = devices_[rank].precision;
  if (config.features.budget.size() > 1) config.features.budget = {run_.config.features.budget[rank]};
  if (config.device != "cpu") return config;
  // The options that are reset here are only for the GPUs among the ranks.
  const FeatureOptions plain;
  config.features_on = config.sample_on = "auto";
  config.features.budget = plain.budget;
  config.features.placement = plain.placement;
  config.features.host_rows = plain.host_rows;
  config.features.locality = plain.locality;
  config.features.cache = plain.cache;
  return config;
}

void RankedRun::open(int rank) {
  views_[rank] = std::make_shared<GraphViews>();
  opened_[rank] = open_device(config_of(rank), views_[rank]);
  speeds_[rank] = device_speed(devices_[rank], *opened_[rank], devices_[rank].precision);
}

void RankedRun::open_all() {
  views_.assign(devices_.size(), nullptr);
  opened_.assign(devices_.size(), nullptr);
  for (size_t r = 0; r < devices_.size(); ++r) open(static_cast<int>(r));
}

RankSetup RankedRun::setup(const RankCalls& calls) const {
  const int rank = calls.control.rank();
  return {run_,         partition_, shares_,       config_of(rank), devices_[rank].threads, opened_[rank],
          views_[rank], calls.data, calls.control, needs_,          sharing(rank)};
}

int RankedRun::sharing(int rank) const {
  // Ranks on parts of one GPU share its memory, so the part is cut off the names of devices here.
  const auto memory = [&](size_t r) { return devices_[r].device.substr(0, devices_[r].device.find('@')); };
  int count = 0;
  for (size_t r = 0; r < devices_.size(); ++r)
    count += run_.config.ranks.drives(r) && memory(r) == memory(static_cast<size_t>(rank)) ? 1 : 0;
  return std::max(1, count);
}

void RankedRun::join(MpiTeam& team, const NewShares* wanted) {
  Communicator& control = team.control();
  const int own = control.rank();
  if (wanted != nullptr) take_precisions(*wanted);
  team.connect_devices([&](std::unique_ptr<Communicator> host) {
    // The back end of a GPU finds its copies of the graph by the addresses of arrays, and new parts
    // have new addresses. So the GPU is opened anew.
    opened_[own] = nullptr;
    open(own);
    DeviceLinks links = link_devices(std::move(host), *opened_[own], config_of(own));
    if (wanted == nullptr && !links.note.empty()) run_.notes.push_back(links.note);
    return std::move(links.communicator);
  });
  if (wanted != nullptr) return deal_out_again(*wanted);
  share_speeds(control);
  deal_out();
}

void RankedRun::join(ProcessTeam& team, const NewShares* wanted) {
  if (wanted != nullptr) take_precisions(*wanted);
  std::vector<std::shared_ptr<GpuCompiler>> compilers(devices_.size());
  bool gpus = false;
  for (const int r : team.own()) {
    opened_[r] = nullptr;
    open(r);
    compilers[r] = opened_[r]->gpu_compiler();
    gpus |= compilers[r] != nullptr;
  }
  team.connect_devices(gpus ? make_rank_memory(compilers) : nullptr,
                       [&](int rank, std::unique_ptr<Communicator> host) -> std::unique_ptr<Communicator> {
                         if (compilers[rank] == nullptr) return host;
                         return make_staged_communicator(std::move(host), compilers[rank]);
                       });
  if (wanted != nullptr) return deal_out_again(*wanted);
  if (gpus)
    run_.notes.emplace_back(
        "rows travel directly between the GPUs of a process, and through the memory of the host "
        "between processes");
  share_speeds(team.processes());
  deal_out();
}

RankOrder RankedRun::follow(const RankCalls& calls) {
  const int number = calls.control.rank();
  const int threads = devices_[number].threads;
  const std::unique_ptr<ThreadTeam> team = threads > 0 ? std::make_unique<ThreadTeam>(threads) : nullptr;
  if (in_batches()) {
    BatchRank rank(setup(calls), counts_);
    return obey(calls.control, [&](const RankOrder& order) { return carry_out(rank, order, calls.control); });
  }
  RankSession rank(setup(calls));
  const Listed listed(rank, sessions_[number]);
  return obey(calls.control, [&](const RankOrder& order) { return carry_out(rank, order); });
}

void RankedRun::follow(MpiTeam& team) {
  try {
    std::optional<NewShares> wanted;  // the shares that rank 0 has ordered; none at first
    do {
      join(team, wanted ? &*wanted : nullptr);
      if (follow(team.calls()).kind != RankOrder::Kind::rebuild) return;
      wanted = NewShares::unpacked(team.control().broadcast(0, ""));
    } while (true);
  } catch (...) {
    team.fail();
  }
}

void RankedRun::start_others(ProcessTeam& team) {
  team.start([this](const RankCalls& calls) {
    if (follow(calls).kind == RankOrder::Kind::rebuild) calls.control.broadcast(0, "");
  });
}

void RankedRun::follow(ProcessTeam& team) {
  try {
    std::optional<NewShares> wanted;  // the shares that rank 0 has ordered; none at first
    do {
      join(team, wanted ? &*wanted : nullptr);
      start_others(team);
      const bool again = follow(team.calls()).kind == RankOrder::Kind::rebuild;
      if (again) wanted = NewShares::unpacked(team.control().broadcast(0, ""));
      team.wait();
      if (!again) return;
    } while (true);
  } catch (...) {
    team.fail();
  }
}

void RankedRun::rebuild(const NewShares& wanted, Communicator& control) {
  send({RankOrder::Kind::rebuild}, control);
  control.broadcast(0, wanted.packed());
}

void RankedRun::send(const RankOrder& order, Communicator& control) {
  control.broadcast(0, {reinterpret_cast<const char*>(&order), sizeof order});
}

}  // namespace nacre
