#include "ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/names.h"
#include "nacre/base/parallel.h"
#include "nacre/base/printable.h"
#include "nacre/train/ranked_session.h"
#include "options.h"
#include "terminal.h"

namespace nacre::cli {
namespace {

RankedSession* ranked(VertexModel& session) { return dynamic_cast<RankedSession*>(&session); }

double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

std::string device_text(const VertexModel& session) {
  const auto* several = dynamic_cast<const RankedSession*>(&session);
  if (several == nullptr) return session.device().name();
  std::string text;
  for (const RankDevice& rank : several->devices()) text += (text.empty() ? "" : ",") + rank.text;
  return text;
}

nlohmann::ordered_json ranks_json(VertexModel& session) {
  RankedSession* several = ranked(session);
  if (several == nullptr) return {};
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const std::vector<double>& shares = several->shares();
  const std::vector<RankFigures> figures = several->figures();
  for (int r = 0; r < several->ranks(); ++r) {
    const RankFigures& rank = figures[r];
    list.push_back({{"device", several->devices()[r].text},
                    {"share", shares[r]},
                    {"nodes", rank.vertices},
                    {"edges", rank.edges},
                    {"halo_nodes", rank.halo},
                    {"planned_mb", static_cast<double>(rank.device_bytes) / (1 << 20)},
                    {"sent_mb", static_cast<double>(rank.sent) / (1 << 20)},
                    {"kernels_ms", rank.kernel_seconds * 1e3},
                    {"step_s", rank.times.steps},
                    {"computing_s", rank.times.computing()},
                    {"communication_s", rank.times.communication},
                    {"reduction_s", rank.times.reduction},
                    {"waiting_s", rank.times.waiting}});
  }
  return list;
}

void say_ranks(VertexModel& session, bool json) {
  RankedSession* several = ranked(session);
  if (several == nullptr) return;
  const std::vector<RankFigures> figures = several->figures();
  for (int r = 0; r < several->ranks(); ++r) {
    const RankTimes& t = figures[r].times;
    say_line(json,
             fmt::format("rank {} ({}): {:.1f} % of its steps' time spent computing, {:.1f} % sending and receiving "
                         "({:.1f} % for sums over ranks), {:.1f} % waiting for other ranks; {} sent",
                         r, several->devices()[r].text, share(t.computing(), t.steps), share(t.communication, t.steps),
                         share(t.reduction, t.steps), share(t.waiting, t.steps),
                         human_bytes(static_cast<double>(figures[r].sent))));
  }
}

void run_launched(const std::function<void(MpiRanks*)>& body) {
  if (!launched_by_mpi()) return body(nullptr);
  MpiRanks processes;
  std::optional<Interrupted> interrupted;
  if (processes.rank() > 0) {
    // The launcher passes signals on to all processes. The first process ends the run in good
    // order.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    set_log_sink(nullptr);
  }
  try {
    processes.run([&](Communicator&) {
      try {
        body(&processes);
      } catch (const Interrupted& signal) {
        interrupted = signal;
      }
    });
  } catch (const std::exception& error) {
    if (processes.tells(error)) std::fprintf(stderr, "nacre: %s\n", printable(error.what()).c_str());
    std::fflush(stderr);
    processes.end_all(dynamic_cast<const UserError*>(&error) != nullptr ? 2 : 1);
  }
  if (interrupted) throw Interrupted(*interrupted);
}

void take_processes(const MpiRanks& processes, RunConfig& config) {
  std::vector<std::string>& devices = config.ranks.devices;
  const auto size = static_cast<size_t>(processes.size());
  if (config.mode == "minibatch") {
    throw UserError("--mode minibatch", "several processes train on the whole graph, not in mini-batches",
                    "start nacre without mpirun");
  }
  if (devices.empty()) {
    const int threads = config.threads > 0 ? config.threads : std::max(1, usable_cpus() / processes.local_size());
    if (config.device.starts_with("cuda"))
      throw UserError("--device", "processes that MPI has started cannot use GPUs yet",
                      "use --devices cuda:0,cuda:1 in one process, or --device cpu");
    devices.assign(size, fmt::format("cpu:{}", threads));
  }
  if (devices.size() != size) {
    throw UserError(
        "--devices",
        fmt::format("names {} for {} processes", counted(static_cast<int64_t>(devices.size()), "device"), size),
        "give one device for each process, or leave out --devices");
  }
  for (const std::string& device : devices) {
    if (device.starts_with("cuda"))
      throw UserError("--devices", "processes that MPI has started cannot use GPUs yet",
                      "use --devices cuda:0,cuda:1 in one process");
  }
  check_ranks(config);
  set_num_threads(rank_devices(config)[processes.rank()].threads);
}

void follow_first(Dataset dataset, const RunConfig& config, const SessionNeeds& needs) {
  MpiRanks& processes = *needs.mpi;
  RankedRun run(std::move(dataset), config, needs);
  run.open(processes.rank());
  run.deal_out();
  MpiTeam team(processes, config.ranks.timeout);
  try {
    run.follow(team.calls());
  } catch (...) {
    team.fail();
  }
}

}  // namespace nacre::cli
