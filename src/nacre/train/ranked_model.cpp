#include "nacre/train/ranked_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/cluster/rank_threads.h"
#include "nacre/engine/rank_memory.h"

namespace nacre {
namespace {

std::string size_of(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

// Gives the process at least as many threads as its ranks have together.
void take_threads(const std::vector<RankDevice>& devices) {
  int threads = 0;
  for (const RankDevice& rank : devices) threads += std::max(1, rank.threads);
  set_num_threads(std::max(threads, num_threads()));
}

}  // namespace

RankedModel::RankedModel(Dataset dataset, RunConfig config, const SessionNeeds& needs)
    : start_(now_seconds()), run_(std::move(dataset), std::move(config), needs) {}

void RankedModel::connect() {
  const RankOptions& ranks = config().ranks;
  MpiRanks* mpi = run_.needs().mpi;
  if (mpi != nullptr && !ranks.processes.empty()) {
    auto team = std::make_unique<ProcessTeam>(*mpi, ranks.processes, ranks.timeout);
    grouped_ = team.get();
    team_ = std::move(team);
    join(nullptr);
  } else if (mpi != nullptr) {
    auto team = std::make_unique<MpiTeam>(*mpi, ranks.timeout);
    processes_ = team.get();
    team_ = std::move(team);
    join(nullptr);
  } else {
    take_threads(devices());
    team_ = start_threads(nullptr);
  }
}

void RankedModel::join(const NewShares* wanted) {
  try {
    if (grouped_ == nullptr) return run_.join(*processes_, wanted);
    run_.join(*grouped_, wanted);
    run_.start_others(*grouped_);
  } catch (...) {
    fail();
  }
}

std::unique_ptr<RankTeam> RankedModel::start_threads(const NewShares* wanted) {
  GroupOptions group;
  group.timeout = config().ranks.timeout;
  if (wanted != nullptr) run_.take_precisions(*wanted);
  run_.open_all();
  run_.leave_out_weak();
  std::vector<std::shared_ptr<GpuCompiler>> compilers;
  compilers.reserve(ranks());
  for (int r = 0; r < ranks(); ++r) compilers.push_back(run_.device(r)->gpu_compiler());
  if (wanted == nullptr) {
    run_.deal_out();
  } else {
    run_.deal_out_again(*wanted);
  }
  if (std::any_of(compilers.begin(), compilers.end(), [](const auto& c) { return c != nullptr; }))
    group.memory = make_rank_memory(std::move(compilers));
  return std::make_unique<RankThreads>(ranks(), group, [this](const RankCalls& calls) { run_.follow(calls); });
}

void RankedModel::make_own(FunctionRef<void()> make) {
  const int threads = devices()[0].threads;
  threads_ = threads > 0 ? std::make_unique<ThreadTeam>(threads) : nullptr;
  try {
    make();
  } catch (...) {
    fail();
  }
  planned_ = figures();
}

void RankedModel::give(const RankOrder& order, FunctionRef<void()> own) {
  try {
    RankedRun::send(order, team_->calls().control);
    own();
  } catch (...) {
    fail();
  }
}

void RankedModel::fail() {
  failed_ = true;
  team_->fail();
  std::abort();  // fail() throws; the compiler does not know this of a virtual function
}

void RankedModel::end_ranks() {
  if (failed_) return;  // the ranks have ended
  try {
    give({RankOrder::Kind::end}, [] {});
  } catch (const std::exception& error) {
    // Destructors call this function, so it only logs the error. give() has called fail(), which
    // ends the ranks.
    log_verbose(std::string("a failure ended the ranks: ") + error.what());
  }
}

std::string RankedModel::take_rank_times() {
  std::vector<RankTimes> all = all_times();
  nlohmann::json list = nlohmann::json::array();
  for (size_t r = 0; r < all.size(); ++r) {
    // Ranks that were made anew count from 0 again, so nothing is subtracted from their times.
    const RankTimes before = told_.empty() || told_[r].count > all[r].count ? RankTimes() : told_[r];
    list.push_back({{"steps", all[r].count - before.count},
                    {"computing_s", all[r].computing() - before.computing()},
                    {"communication_s", all[r].communication - before.communication},
                    {"reduction_s", all[r].reduction - before.reduction},
                    {"waiting_s", all[r].waiting - before.waiting}});
  }
  told_ = std::move(all);
  return list.dump();
}

std::vector<MemoryItem> RankedModel::memory() const {
  std::vector<MemoryItem> items;
  for (int r = 0; r < ranks(); ++r) {
    if (run_.device(r) != nullptr && run_.device(r)->on_host() == run_.device(0)->on_host())
      items.push_back({fmt::format("rank {} ({})", r, devices()[r].text), planned_[r].device_bytes});
  }
  return items;
}

std::vector<MemoryItem> RankedModel::host_of_ranks() const {
  std::vector<MemoryItem> items;
  for (int r = 0; r < ranks(); ++r) {
    if (run_.device(r) == nullptr) continue;  // another process drives this rank
    const bool on_host = run_.device(r)->on_host();
    items.push_back({fmt::format("rank {} ({})", r, devices()[r].text),
                     on_host ? planned_[r].device_bytes : planned_[r].host_bytes});
  }
  return items;
}

// Ranks of one process may share a memory: virtual devices of one GPU share that of the GPU, and
// ranks on cores share that of the host. If MPI has started the processes, each rank is compared
// with the limit of its own process.
void RankedModel::require_memory(const std::string& remedy) const {
  if (in_processes()) {
    for (int r = 0; r < ranks(); ++r) {
      if (planned_[r].device_bytes <= planned_[r].memory_limit) continue;
      throw UserError(
          "memory",
          fmt::format("rank {} ({}) needs {}, but only {} may be used{}", r, devices()[r].text,
                      size_of(planned_[r].device_bytes), size_of(std::max<int64_t>(0, planned_[r].memory_limit)),
                      devices()[r].device == "cpu" ? " beside the data of the whole graph" : ""),
          "use " + remedy + ", or raise --memory-limit");
    }
    return;
  }
  std::map<int, int64_t> needed;  // bytes by the number of the GPU; -1 stands for the host
  const auto memory_of = [&](int r) {
    return run_.device(r)->on_host() ? -1 : choose_device(devices()[r].device, devices()[r].precision).index;
  };
  for (int r = 0; r < ranks(); ++r) needed[memory_of(r)] += planned_[r].device_bytes;
  for (int r = 0; r < ranks(); ++r) {
    const RunDevice& device = *run_.device(r);
    const int64_t free = device.memory_limit(config(), device.free_at_start());
    const int64_t need = needed[memory_of(r)];
    if (need <= free) continue;
    throw UserError(
        "memory",
        fmt::format("the ranks on {} need {} together, but only {} may be used",
                    memory_of(r) < 0 ? "the host" : fmt::format("cuda:{}", memory_of(r)), size_of(need), size_of(free)),
        "use " + remedy);
  }
}

}  // namespace nacre
