#include "ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "commands.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/names.h"
#include "nacre/base/parallel.h"
#include "nacre/base/printable.h"
#include "nacre/device/device.h"
#include "nacre/train/ranked_batches.h"
#include "nacre/train/ranked_session.h"
#include "options.h"
#include "terminal.h"

namespace nacre::cli {
namespace {

constexpr double kLongTimeout = 1e6;  // a timeout must be shorter than this many seconds
constexpr double kEndLimit = 30;      // seconds that a process may take to end after MPI has ended

RankedModel* ranked(VertexModel& session) { return dynamic_cast<RankedModel*>(&session); }

double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

BatchSession* batches_of(VertexModel& session) {
  if (auto* several = dynamic_cast<RankedBatchSession*>(&session)) return &several->own();
  return dynamic_cast<BatchSession*>(&session);
}

std::string device_text(const VertexModel& session) {
  const auto* several = dynamic_cast<const RankedModel*>(&session);
  if (several == nullptr) return session.device().name();
  std::string text;
  for (const RankDevice& rank : several->devices()) text += (text.empty() ? "" : ",") + rank.text;
  return text;
}

namespace {

// Returns the figures of a rank that owns a part of the graph.
nlohmann::ordered_json part_json(const RankedSession& session, const RankFigures& rank, int r) {
  const std::vector<PartTime>& predicted = session.predicted();
  const auto ms = [](double seconds) { return nlohmann::ordered_json(seconds * 1e3); };
  const bool known = !predicted.empty();
  return {{"nodes", rank.vertices},
          {"edges", rank.edges},
          {"halo_nodes", rank.halo},
          {"step_planned_bytes", rank.planned_received},
          {"step_received_bytes", rank.received},
          {"kernels_ms", rank.kernel_seconds * 1e3},
          {"predicted_kernels_ms", known ? ms(predicted[r].compute) : nullptr},
          {"predicted_exchange_ms", known ? ms(predicted[r].communicate) : nullptr},
          {"exchange_ms", ms(rank.times.exchanging() / std::max<double>(1, rank.times.count))}};
}

}  // namespace

nlohmann::ordered_json ranks_json(VertexModel& session) {
  RankedModel* several = ranked(session);
  if (several == nullptr) return {};
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const std::vector<RankFigures> figures = several->figures();
  const auto* parts = dynamic_cast<const RankedSession*>(several);
  const auto* batches = dynamic_cast<const RankedBatchSession*>(several);
  for (int r = 0; r < several->ranks(); ++r) {
    const RankFigures& rank = figures[r];
    list.push_back({{"device", several->devices()[r].text},
                    {"precision", several->devices()[r].precision},
                    {"share", several->shares()[r]},
                    {"planned_mb", static_cast<double>(rank.device_bytes) / (1 << 20)},
                    {"sent_mb", static_cast<double>(rank.sent) / (1 << 20)},
                    {"step_s", rank.times.steps},
                    {"computing_s", rank.times.computing()},
                    {"communication_s", rank.times.communication},
                    {"reduction_s", rank.times.reduction},
                    {"waiting_s", rank.times.waiting}});
    if (parts != nullptr) list.back().update(part_json(*parts, rank, r));
    if (batches != nullptr) list.back()["step_batches"] = batches->counts()[r];
  }
  return list;
}

nlohmann::ordered_json halo_rows_json(VertexModel& session) {
  const auto* several = dynamic_cast<const RankedSession*>(&session);
  if (several == nullptr) return {};
  return nlohmann::ordered_json::parse(placement_json(several->placement()));
}

void say_ranks(VertexModel& session, bool json) {
  RankedModel* several = ranked(session);
  if (several == nullptr) return;
  const auto* parts = dynamic_cast<const RankedSession*>(several);
  const std::vector<RankFigures> figures = several->figures();
  for (int r = 0; r < several->ranks(); ++r) {
    const RankTimes& t = figures[r].times;
    say_line(json,
             fmt::format("rank {} ({}): {:.1f} % of its steps' time spent computing, {:.1f} % sending and receiving "
                         "({:.1f} % for sums over ranks), {:.1f} % waiting for other ranks; {} sent",
                         r, several->devices()[r].text, share(t.computing(), t.steps), share(t.communication, t.steps),
                         share(t.reduction, t.steps), share(t.waiting, t.steps),
                         human_bytes(static_cast<double>(figures[r].sent))));
    if (parts == nullptr || parts->predicted().empty() || figures[r].kernel_seconds <= 0) continue;
    say_line(json, fmt::format("rank {}: kernels were predicted to take {} per step, and took {}", r,
                               human_seconds(parts->predicted()[r].compute), human_seconds(figures[r].kernel_seconds)));
  }
}

namespace {

// Prints why this process ends. Ranks after the first have no log, so the text does not go there.
void say_last_words(const std::string& why) {
  std::fprintf(stderr, "nacre: %s\n", printable(why).c_str());
  std::fflush(stderr);
}

}  // namespace

void run_launched(double timeout, const std::function<void(MpiRanks*)>& body) {
  if (!launched_by_mpi()) return body(nullptr);
  // A wrong --comm-timeout is refused later, by all processes together, so MPI starts with the
  // default instead.
  const double wait = timeout > 0 && timeout < kLongTimeout ? timeout : kCommTimeout;
  MpiRanks processes(wait, say_last_words);
  processes.promise_to_exit(kEndLimit);
  std::optional<Interrupted> interrupted;
  if (processes.rank() > 0) {
    // The launcher passes signals on to all processes. The first process ends the run in good
    // order.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    set_log_sink(nullptr);
  }
  try {
    processes.run(
        [&](Communicator&) {
          try {
            body(&processes);
          } catch (const Interrupted& signal) {
            interrupted = signal;
          }
        },
        wait);
  } catch (const std::exception& error) {
    if (processes.tells(error)) say_last_words(error.what());
    processes.end_all(dynamic_cast<const UserError*>(&error) != nullptr ? 2 : 1);
  }
  if (interrupted) throw Interrupted(*interrupted);
}

namespace {

// Returns the device of this process if the user named none: a GPU of its own if that is asked for
// or if the machine has enough of them, and otherwise threads of the host. Returns an empty text if
// the machine has too few GPUs.
std::string own_device(const MpiRanks& processes, const RunConfig& config) {
  DevicePlugin* plugin = config.device == "cpu" ? nullptr : device_plugin();
  const bool enough = plugin != nullptr && plugin->devices().size() >= static_cast<size_t>(processes.local_size());
  if (enough) return fmt::format("cuda:{}", processes.local_rank());
  if (config.device == "cuda") return "";
  return fmt::format("cpu:{}",
                     config.threads > 0 ? config.threads : std::max(1, usable_cpus() / processes.local_size()));
}

// Returns the devices of all processes. All processes call this at the same time.
std::vector<std::string> own_devices(MpiRanks& processes, const RunConfig& config) {
  if (config.device != "auto" && config.device != "cpu" && config.device != "cuda") {
    throw UserError("--device", "'" + config.device + "' names one device, but there are several processes",
                    "use --device cuda, which gives each process a GPU of its own, or name one device for each process "
                    "with --devices");
  }
  std::vector<std::string> devices = processes.connect(config.ranks.timeout)->all_gather(own_device(processes, config));
  for (size_t r = 0; r < devices.size(); ++r) {
    if (devices[r].empty()) {
      throw UserError("--device cuda", fmt::format("the machine of rank {} has fewer GPUs than processes", r),
                      "start fewer processes, or let them share GPUs, for example --devices cuda:0@32,cuda:0@64");
    }
  }
  return devices;
}

}  // namespace

namespace {

// Adds the devices of one entry of --devices to the list, and returns how many there are.
int append_devices(const std::string& entry, std::vector<std::string>& devices) {
  int count = 0;
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1, ++count) {
    end = entry.find('+', begin);
    devices.push_back(device_name(entry.substr(begin, end == std::string::npos ? end : end - begin)));
  }
  return count;
}

}  // namespace

void join_devices(RankOptions& ranks) {
  for (const std::string& entry : std::exchange(ranks.devices, {})) append_devices(entry, ranks.devices);
}

void divide_devices(const MpiRanks& processes, RankOptions& ranks) {
  ranks.own = processes.rank();
  const auto joined = [](const std::string& entry) { return entry.find('+') != std::string::npos; };
  if (std::none_of(ranks.devices.begin(), ranks.devices.end(), joined)) return;
  std::vector<std::string> entries = std::move(ranks.devices);
  const auto size = static_cast<size_t>(processes.size());
  if (entries.size() == 1) entries.assign(size, std::string(entries[0]));
  if (entries.size() != size) {
    throw UserError("--devices",
                    fmt::format("names the devices of {} processes, but {} were started", entries.size(), size),
                    "give an entry such as cuda:0+cuda:1 for each process, or one for all of them");
  }
  ranks.devices.clear();
  for (size_t p = 0; p < size; ++p) {
    ranks.processes.insert(ranks.processes.end(), append_devices(entries[p], ranks.devices), static_cast<int>(p));
  }
}

void take_processes(MpiRanks& processes, RunConfig& config) {
  std::vector<std::string>& devices = config.ranks.devices;
  const auto size = static_cast<size_t>(processes.size());
  const bool grouped = !config.ranks.processes.empty();
  if (devices.empty()) devices = own_devices(processes, config);
  if (grouped && config.ranks.comm == "nccl")
    throw UserError("--comm nccl", "connects processes that drive one GPU each",
                    "use --comm auto, or start a process for each GPU");
  if (!grouped && devices.size() != size) {
    throw UserError(
        "--devices",
        fmt::format("names {} for {} processes", counted(static_cast<int64_t>(devices.size()), "device"), size),
        fmt::format("use mpirun -n {}, join the devices of a process by +, as in cuda:0+cuda:1, or leave out --devices",
                    devices.size()));
  }
  check_ranks(config);
  // A process whose ranks are on GPUs uses the threads of the host to read data and to prepare its
  // parts.
  int threads = 0;
  const std::vector<RankDevice> ranks = rank_devices(config);
  for (size_t r = 0; r < ranks.size(); ++r) threads += config.ranks.drives(r) ? ranks[r].threads : 0;
  set_num_threads(threads > 0 ? threads : std::max(1, usable_cpus() / processes.local_size()));
}

void follow_first(Dataset dataset, const RunConfig& config, const SessionNeeds& needs) {
  RankedRun run(std::move(dataset), config, needs);
  if (!config.ranks.processes.empty()) {
    ProcessTeam team(*needs.mpi, config.ranks.processes, config.ranks.timeout);
    return run.follow(team);
  }
  MpiTeam team(*needs.mpi, config.ranks.timeout);
  run.follow(team);
}

}  // namespace nacre::cli
