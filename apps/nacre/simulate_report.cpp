#include "simulate_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/base/printable.h"
#include "nacre/base/warnings.h"

namespace nacre::cli {
namespace {

using nlohmann::ordered_json;

constexpr size_t kListedRanks = 64;  // if a run has more ranks, they are not listed one by one

std::vector<std::string> assumptions_of(const SimulationReport& r) {
  std::vector<std::string> lines = r.hardware.assumptions();
  if (r.scale != 1) {
    lines.push_back(fmt::format(
        "the work was counted on {}: each of its nodes and edges stands for {:.4g} nodes and edges; parts of the whole "
        "data set are taken to have the same shares of cut edges and of halo nodes",
        printable(r.counted_on), r.scale));
  }
  lines.emplace_back("an epoch is one step over the whole graph; evaluations and the optimiser are not included");
  return lines;
}

double most_received(const SimulatedRun& run) {
  double most = 0;
  for (const SimulatedRank& rank : run.ranks) most = std::max(most, rank.received);
  return most;
}

ordered_json rank_json(const SimulatedRank& rank) {
  return {{"device", rank.device},
          {"share", rank.share},
          {"nodes", rank.rows.own},
          {"edges", rank.rows.edges},
          {"halo_nodes", rank.rows.halo},
          {"sent_bytes", rank.sent},
          {"received_bytes", rank.received},
          {"received_row_bytes", rank.received_rows},
          {"memory_bytes", rank.memory < 0 ? ordered_json() : ordered_json(rank.memory)},
          {"memory_limit_bytes", rank.limit},
          {"computing_ms", rank.split.computing * 1e3},
          {"communication_ms", rank.split.communicating * 1e3},
          {"waiting_ms", rank.split.waiting * 1e3}};
}

}  // namespace

std::string counted_devices(int64_t count) { return counted(count, "device"); }

std::string simulation_text(const SimulationReport& r) {
  std::string text =
      fmt::format("{} on {}: {} of {}, {}, {}, {}, {}\n", r.model.model, printable(r.data),
                  counted(r.model.layers, "layer"), r.model.hidden, counted(r.nodes, "node"), counted(r.edges, "edge"),
                  counted(r.model.in_dim, "column"), counted(r.model.out_dim, "class", "classes"));
  text += fmt::format("{:<10}{}; assumptions:\n", "hardware", printable(r.hardware.name));
  for (const std::string& line : assumptions_of(r)) text += "  - " + line + "\n";
  text +=
      fmt::format("\n{:>7} {:>8} {:>10} {:>10} {:>10} {:>10} {:>11} {:>11} {:>5} {:>10} {:>7}\n", "devices", "machines",
                  "epoch", "computing", "moving", "waiting", "received", "memory", "fits", "efficiency", "cut");
  for (const SimulatedRun& run : r.runs) {
    const StepSplit longest = run.longest();
    text += fmt::format("{:>7} {:>8} {:>10} {:>10} {:>10} {:>10} {:>11} {:>11} {:>5} {:>8.1f} % {:>5.1f} %\n",
                        run.ranks.size(), run.machines, human_seconds(run.epoch), human_seconds(longest.computing),
                        human_seconds(longest.communicating), human_seconds(longest.waiting),
                        human_bytes(most_received(run)), human_bytes(run.fullest().memory),
                        run.fullest().fits() ? "yes" : "NO", 100 * run.efficiency, 100 * run.cut);
  }
  text += "computing, moving, waiting, received and memory are those of the device with the most of each\n";
  for (const SimulatedRun& run : r.runs) {
    if (run.dropped > 0)
      text += fmt::format("{}: {} computed again in the backward pass, which saves memory\n",
                          counted_devices(std::ssize(run.ranks)), counted(static_cast<int64_t>(run.dropped), "value"));
    if (!run.travels.empty()) text += fmt::format("{}: {}\n", counted_devices(std::ssize(run.ranks)), run.travels);
  }
  return text;
}

std::string simulation_json(const SimulationReport& r) {
  ordered_json runs = ordered_json::array();
  for (const SimulatedRun& run : r.runs) {
    const StepSplit longest = run.longest();
    ordered_json ranks = ordered_json::array();
    for (size_t i = 0; run.ranks.size() <= kListedRanks && i < run.ranks.size(); ++i)
      ranks.push_back(rank_json(run.ranks[i]));
    runs.push_back({{"devices", run.ranks.size()},
                    {"machines", run.machines},
                    {"epoch_ms", run.epoch * 1e3},
                    {"computing_ms", longest.computing * 1e3},
                    {"communication_ms", longest.communicating * 1e3},
                    {"waiting_ms", longest.waiting * 1e3},
                    {"received_bytes", most_received(run)},
                    {"memory_bytes", run.fullest().memory},
                    {"memory_limit_bytes", run.fullest().limit},
                    {"fits", run.fullest().fits()},
                    {"efficiency", run.efficiency},
                    {"cut", run.cut},
                    {"imbalance", std::isfinite(run.imbalance) ? ordered_json(run.imbalance) : ordered_json()},
                    {"computed_again", run.dropped},
                    {"rows", run.travels},
                    {"ranks", ranks}});
  }
  const ordered_json j = {{"data", r.data},
                          {"counted_on", r.counted_on},
                          {"scale", r.scale},
                          {"nodes", r.nodes},
                          {"edges", r.edges},
                          {"model", r.model.model},
                          {"hardware", r.hardware.name},
                          {"assumptions", assumptions_of(r)},
                          {"runs", runs},
                          {"warnings", warnings_so_far()}};
  return j.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace nacre::cli
