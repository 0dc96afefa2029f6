// Measures Figs. 10 to 13 and Tables 5 and 6 of the νGNN paper: epochs on unequal devices, with
// shares by simple rules and with those that a run finds by itself. One sweep over graphs, models,
// sets of devices and ways to share out the work gives all of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "bench_nugnn.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/train/ranked_session.h"
#include "options.h"
#include "statistics.h"

namespace nacre::cli {
namespace {

// Number of steps before the timed ones. A run that moves work between ranks has moved it and has
// timed the kernels of the new parts before these steps are over.
constexpr int64_t kWarm = 2 * (kTimedSteps + 2) + 1;
constexpr const char* kOwn = "auto";

struct ShareCell {
  std::string graph, model, devices, method;
  std::string failure;          // why the cell was not measured; empty if it was
  std::vector<double> seconds;  // seconds of each timed step
  std::vector<RankDevice> names;
  std::vector<double> shares;
  std::vector<RankFigures> ranks;
  std::vector<PartTime> predicted;

  bool measured() const { return failure.empty(); }
  double epoch() const { return median(seconds); }
  double waiting(size_t r) const { return ranks[r].times.waiting / std::max(1e-12, ranks[r].times.steps); }
  double longest_wait() const {
    double longest = 0;
    for (size_t r = 0; r < ranks.size(); ++r) longest = std::max(longest, waiting(r));
    return longest;
  }
  // Returns the standard deviation of the seconds that the ranks compute in a step.
  double deviation() const {
    double sum = 0, squares = 0;
    for (const RankFigures& rank : ranks) {
      sum += rank.kernel_seconds;
      squares += rank.kernel_seconds * rank.kernel_seconds;
    }
    const auto n = static_cast<double>(ranks.size());
    return std::sqrt(std::max(0.0, squares / n - sum / n * sum / n));
  }
  double received() const {
    double bytes = 0;
    for (const RankFigures& rank : ranks) bytes += static_cast<double>(rank.received);
    return bytes;
  }
};

double mib(double bytes) { return bytes / (1 << 20); }

void run_cell(const Dataset& data, RunConfig config, int timed, ShareCell& cell) {
  RankedSession session(data, std::move(config), {});
  session.start();
  const double lr = session.config().optimizer.lr;
  for (int64_t step = 0; step < kWarm; ++step) session.train_step(step, lr);
  for (int64_t step = 0; step < timed; ++step) {
    const double start = now_seconds();
    session.train_step(kWarm + step, lr);
    cell.seconds.push_back(now_seconds() - start);
  }
  cell.names = session.devices();
  cell.shares = session.shares();
  cell.ranks = session.figures();
  cell.predicted = session.predicted();
}

std::vector<std::string> device_sets(const NugnnCommand& c) {
  return c.device_sets.empty() ? std::vector<std::string>{"cpu:1,cpu:2"} : c.device_sets;
}

std::vector<std::string> share_graphs(const NugnnCommand& c) {
  if (!c.graphs.empty()) return split_list(c.graphs);
  return {"twin:arxiv@0.2", "twin:reddit@0.02", "twin:products@0.02", "twin:proteins@0.05"};
}

// Holds all cells of one graph, model and set of devices.
using ShareGroup = std::vector<ShareCell>;

const ShareCell* find_cell(const ShareGroup& group, const std::string& method) {
  const auto found = std::find_if(group.begin(), group.end(),
                                  [&](const ShareCell& cell) { return cell.method == method && cell.measured(); });
  return found == group.end() ? nullptr : &*found;
}

// Returns the fastest cell whose shares follow a simple rule; null if no such cell was measured.
const ShareCell* best_simple(const ShareGroup& group) {
  const ShareCell* best = nullptr;
  for (const ShareCell& cell : group) {
    if (cell.method == kOwn || !cell.measured()) continue;
    if (best == nullptr || cell.epoch() < best->epoch()) best = &cell;
  }
  return best;
}

std::string ratio(double of, double to) { return of > 0 && to > 0 ? fmt::format("{:.3f}", of / to) : ""; }
std::string ms(double seconds) { return fmt::format("{:.3f}", seconds * 1e3); }

// Returns a table with a row for each cell: Figs. 10 and 11 (epochs), Figs. 12 and 13 (rows that
// travel) and Table 6.
Report epochs_table(const std::vector<ShareGroup>& groups) {
  Report report({"graph", "model", "devices", "shares", "epoch_ms", "over_uniform", "of_best_simple", "waiting_percent",
                 "deviation_ms", "received_mb", "received_of_auto", "memory_mb", "state"});
  for (const ShareGroup& group : groups) {
    const ShareCell* uniform = find_cell(group, "uniform");
    const ShareCell* simple = best_simple(group);
    const ShareCell* own = find_cell(group, kOwn);
    for (const ShareCell& cell : group) {
      std::vector<std::string> row = {cell.graph, cell.model, cell.devices, cell.method};
      if (cell.measured()) {
        double memory = 0;
        for (const RankFigures& rank : cell.ranks) memory += static_cast<double>(rank.device_bytes);
        row.insert(row.end(), {ms(cell.epoch()), uniform != nullptr ? ratio(uniform->epoch(), cell.epoch()) : "",
                               simple != nullptr ? ratio(cell.epoch(), simple->epoch()) : "",
                               fmt::format("{:.1f}", 100 * cell.longest_wait()), ms(cell.deviation()),
                               fmt::format("{:.3f}", mib(cell.received())),
                               own != nullptr ? ratio(cell.received(), own->received()) : "",
                               fmt::format("{:.1f}", mib(memory)), "ok"});
      } else {
        row.insert(row.end(), {"", "", "", "", "", "", "", "", cell.failure});
      }
      report.add(std::move(row));
    }
  }
  return report;
}

// Returns a table with a row for each rank of a cell: where the rank's time went, and how much
// memory it took (Table 5).
Report ranks_table(const std::vector<ShareGroup>& groups) {
  Report report({"graph", "model", "devices", "shares", "rank", "device", "share", "nodes", "edges", "halo",
                 "memory_mb", "received_mb", "kernels_ms", "predicted_ms", "computing_ms", "exchanging_ms",
                 "reduction_ms", "waiting_ms", "waiting_percent"});
  for (const ShareGroup& group : groups) {
    for (const ShareCell& cell : group) {
      for (size_t r = 0; r < cell.ranks.size(); ++r) {
        const RankFigures& rank = cell.ranks[r];
        const double steps = std::max<double>(1, static_cast<double>(rank.times.count));
        report.add({cell.graph, cell.model, cell.devices, cell.method, std::to_string(r), cell.names[r].text,
                    fmt::format("{:.4f}", cell.shares[r]), std::to_string(rank.vertices), std::to_string(rank.edges),
                    std::to_string(rank.halo), fmt::format("{:.1f}", mib(static_cast<double>(rank.device_bytes))),
                    fmt::format("{:.3f}", mib(static_cast<double>(rank.received))), ms(rank.kernel_seconds),
                    cell.predicted.empty() ? "" : ms(cell.predicted[r].compute), ms(rank.times.computing() / steps),
                    ms(rank.times.exchanging() / steps), ms(rank.times.reduction / steps),
                    ms(rank.times.waiting / steps), fmt::format("{:.1f}", 100 * cell.waiting(r))});
      }
    }
  }
  return report;
}

// Returns a table that says, for each model, how much faster a run is with the shares that it finds
// by itself.
Report summary_table(const std::vector<ShareGroup>& groups, const std::vector<std::string>& methods) {
  std::vector<std::string> columns = {"model", "cells"};
  for (const std::string& method : methods) {
    if (method != kOwn) columns.push_back("over_" + method);
  }
  columns.insert(columns.end(), {"least_over_uniform", "worst_of_best_simple", "longest_wait_percent"});
  Report report(columns);
  std::map<std::string, std::vector<const ShareGroup*>> by_model;
  for (const ShareGroup& group : groups) by_model[group.front().model].push_back(&group);
  for (const auto& [model, list] : by_model) {
    std::map<std::string, std::vector<double>> gains;
    double worst = 0, wait = 0;
    int cells = 0;
    for (const ShareGroup* group : list) {
      const ShareCell* own = find_cell(*group, kOwn);
      if (own == nullptr) continue;
      ++cells;
      wait = std::max(wait, own->longest_wait());
      if (const ShareCell* simple = best_simple(*group)) worst = std::max(worst, own->epoch() / simple->epoch());
      for (const std::string& method : methods) {
        if (const ShareCell* other = find_cell(*group, method)) gains[method].push_back(other->epoch() / own->epoch());
      }
    }
    std::vector<std::string> row = {model, std::to_string(cells)};
    for (const std::string& method : methods) {
      if (method == kOwn) continue;
      row.push_back(gains[method].empty() ? "" : fmt::format("{:.3f}", geometric_mean(gains[method])));
    }
    const std::vector<double>& uniform = gains["uniform"];
    row.push_back(uniform.empty() ? "" : fmt::format("{:.3f}", *std::min_element(uniform.begin(), uniform.end())));
    row.push_back(worst > 0 ? fmt::format("{:.3f}", worst) : "");
    row.push_back(fmt::format("{:.1f}", 100 * wait));
    report.add(std::move(row));
  }
  return report;
}

ShareCell measured_cell(const NugnnCommand& c, const Dataset& data, RunConfig config, ShareCell cell) {
  config.ranks.share_rule = cell.method;
  try {
    run_cell(data, std::move(config), c.timed, cell);
    log_info(fmt::format("{} on {}, {}, shares {}: {} per epoch, longest wait {:.1f} %", cell.model, cell.graph,
                         cell.devices, cell.method, human_seconds(cell.epoch()), 100 * cell.longest_wait()));
  } catch (const UserError& error) {
    cell.failure = error.what();
    log_info(
        fmt::format("{} on {}, {}, shares {}: {}", cell.model, cell.graph, cell.devices, cell.method, cell.failure));
  }
  return cell;
}

}  // namespace

void bench_shares(const NugnnCommand& c, Tables& tables) {
  const std::vector<std::string> methods = split_list(c.methods);
  std::vector<ShareGroup> groups;
  for (const std::string& graph : share_graphs(c)) {
    RunConfig base = c.config;
    base.data = graph;
    const Dataset data = open_data(base);
    for (const std::string& model : split_list(c.models)) {
      for (const std::string& devices : device_sets(c)) {
        RunConfig config = config_for(c, model);
        config.data = graph;
        config.plan = "off";
        config.epochs = c.epochs;
        config.ranks.devices = split_list(devices);
        ShareGroup group;
        for (const std::string& method : methods) {
          ShareCell cell;
          cell.graph = graph;
          cell.model = model;
          cell.devices = devices;
          cell.method = method;
          group.push_back(measured_cell(c, data, config, std::move(cell)));
        }
        groups.push_back(std::move(group));
        tables.keep("shares-epochs", "", epochs_table(groups));
        tables.keep("shares-ranks", "", ranks_table(groups));
      }
    }
  }
  tables.keep("shares-ranks", "Figs. 10, 11 and Table 5: where the time of each rank goes, and its memory",
              ranks_table(groups));
  tables.keep("shares-epochs", "Figs. 10 to 13 and Table 6: epochs, rows that travel, and balance",
              epochs_table(groups));
  tables.keep("shares-summary", "What a run gains if it finds its shares by itself (geometric means over all cells)",
              summary_table(groups, methods));
}

}  // namespace nacre::cli
