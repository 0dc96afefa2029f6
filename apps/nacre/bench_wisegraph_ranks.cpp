// Measures Fig. 20 of the WiseGraph paper: which rows travel between devices, for several hidden
// sizes. Measures Table 2: a training step on several devices, with one choice of rows for all
// layers and with a choice for each layer.
#include <fmt/format.h>

#include <algorithm>

#include "bench_wisegraph.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/train/ranked_session.h"
#include "statistics.h"

namespace nacre::cli {
namespace {

constexpr int64_t kHidden[] = {16, 32, 64, 128, 256, 512, 1024};
// These are the values of --halo-rows, which says what travels between devices. With auto, each
// layer and direction has a choice of its own.
constexpr const char* kRows[] = {"late", "narrow", "early", "columns", "sums", "auto"};
constexpr double kClose = 1.03;
constexpr double kRate = 0.01;  // the optimiser's learning rate; it does not matter for times
constexpr int kWarmUp = 2;      // the first steps of a turn do not count, because they load kernels
// A run of so few epochs does not move work between devices, which would disturb the timing.
constexpr int kEpochs = 9;

struct RankTiming {
  // The state is "ok" if the timing is complete, "slow" if it was given up and has the times so
  // far, and "memory" if the run does not fit into memory.
  std::string state = "ok";
  std::vector<double> steps;
  std::string chosen;  // the placement in words
  std::string dfg;     // what a device computes in a step, with its communication
  PlacementCost predicted;
  int64_t received = 0;  // the most bytes of rows that a device was counted to receive in a step

  double ms() const { return steps.empty() ? -1 : median(steps) * 1e3; }
  bool counted() const { return !steps.empty(); }
  bool as_predicted() const { return received == predicted.received; }
};

RunConfig ranked_config(const WiseBench& bench, const std::string& model, const std::string& rows) {
  RunConfig config = bench.config_for(model);
  config.ranks.devices = bench.options().devices;
  config.ranks.halo_rows = rows;
  config.epochs = kEpochs;
  return config;
}

// Makes a session and times some steps of it. Returns false if the run does not fit into memory or
// is too slow, so that it should not get another turn.
bool turn(const Dataset& data, const RunConfig& config, const TimingOptions& how, RankTiming& timing) {
  RankedSession session(data, config, {});
  timing.chosen = placement_text(session.placement().placement);
  timing.dfg = print_dfg(session.plan().dfg);
  timing.predicted = session.placement().cost;
  try {
    session.start();
  } catch (const UserError&) {
    timing.state = "memory";
    return false;
  }
  for (int step = 0; step < kWarmUp + how.steps; ++step) {
    const double start = now_seconds();
    session.train_step(step, kRate);
    const double seconds = now_seconds() - start;
    const bool slow = seconds > how.limit;
    if (slow || step >= kWarmUp) timing.steps.push_back(seconds);
    if (!slow) continue;
    timing.state = "slow";
    break;
  }
  timing.received = 0;
  for (const RankFigures& rank : session.figures()) timing.received = std::max(timing.received, rank.received);
  return timing.state == "ok";
}

// Times the configurations in turn, several times, so that a slow spell of the machine hits all of
// them.
std::vector<RankTiming> take_turns(const WiseBench& bench, const Dataset& data, const std::vector<RunConfig>& configs) {
  const TimingOptions how = bench.timing();
  std::vector<RankTiming> timings(configs.size());
  for (int round = 0; round < how.rounds; ++round) {
    for (size_t i = 0; i < configs.size(); ++i) {
      if (timings[i].state == "ok") turn(data, configs[i], how, timings[i]);
    }
  }
  return timings;
}

// Returns the milliseconds of the fastest timing that has one choice for all layers; a negative
// number if none was measured.
double best_fixed(const std::vector<RankTiming>& timings) {
  double best = -1;
  for (size_t i = 0; i + 1 < std::size(kRows); ++i) {
    const double ms = timings[i].ms();
    if (timings[i].state == "ok" && (best < 0 || ms < best)) best = ms;
  }
  return best;
}

// Returns the names of the choices for all layers with which devices do the same step as with
// `own`, for example "late narrow".
std::string same_as(const RankTiming& own, const std::vector<RankTiming>& timings) {
  std::string names;
  for (size_t i = 0; i + 1 < std::size(kRows); ++i) {
    if (timings[i].dfg == own.dfg && &timings[i] != &own) names += (names.empty() ? "" : " ") + std::string(kRows[i]);
  }
  return names;
}

struct Verdict {
  int cases = 0, close = 0, same = 0, volumes = 0, equal = 0;

  void add(const std::vector<RankTiming>& timings) {
    const RankTiming& own = timings.back();
    const double best = best_fixed(timings);
    if (best > 0 && own.counted()) {
      ++cases;
      close += own.ms() <= kClose * best ? 1 : 0;
      same += same_as(own, timings).empty() ? 0 : 1;
    }
    for (const RankTiming& timing : timings) {
      volumes += timing.counted() ? 1 : 0;
      equal += timing.counted() && timing.as_predicted() ? 1 : 0;
    }
  }
  std::string text() const {
    return fmt::format(
        "\na choice for each layer takes at most 3 % longer than the best choice for all layers in {} of {} cases; in "
        "{} "
        "of them it makes the same step as a choice for all layers, so that these times differ by chance only; the "
        "counted bytes are those predicted in {} of {} cases\n",
        close, cases, same, equal, volumes);
  }
};

std::string devices_text(const WiseBench& bench) {
  std::string text;
  for (const std::string& device : bench.options().devices) text += (text.empty() ? "" : ",") + device;
  return text;
}

}  // namespace

void bench_rank_placement(WiseBench& bench) {
  const std::string& model = bench.options().models.front();
  const std::string spec = bench.graph_for(bench.options().graphs.front(), model);
  Report report({"graph", "model", "hidden", "rows", "state", "ms", "min_ms", "max_ms", "predicted_ms",
                 "predicted_bytes", "counted_bytes", "over_best_percent", "chosen", "same_as"});
  LinePlot plot;
  plot.title = fmt::format("Training step of {} on {}, {}", model, spec, devices_text(bench));
  plot.x_name = "hidden size";
  plot.y_name = "ms";
  plot.log_x = true;
  for (const char* rows : kRows) plot.series.push_back({rows, {}, {}});
  Verdict verdict;
  for (const int64_t hidden : kHidden) {
    std::vector<RunConfig> configs;
    for (const char* rows : kRows) {
      configs.push_back(ranked_config(bench, model, rows));
      configs.back().model.hidden = hidden;
    }
    const std::vector<RankTiming> timings = take_turns(bench, bench.data(spec), configs);
    const double best = best_fixed(timings);
    std::string line = fmt::format("fig. 20: hidden {}:", hidden);
    for (size_t i = 0; i < timings.size(); ++i) {
      const RankTiming& t = timings[i];
      const auto [low, high] = std::minmax_element(t.steps.begin(), t.steps.end());
      report.add({spec, model, std::to_string(hidden), kRows[i], t.state, cell(t.ms()),
                  t.counted() ? cell(*low * 1e3) : "", t.counted() ? cell(*high * 1e3) : "",
                  cell(t.predicted.seconds * 1e3), std::to_string(t.predicted.received),
                  t.counted() ? std::to_string(t.received) : "",
                  t.counted() && best > 0 ? fmt::format("{:.1f}", 100 * (t.ms() / best - 1)) : "", t.chosen,
                  same_as(t, timings)});
      line += fmt::format(" {} {}", kRows[i], t.counted() ? human_seconds(t.ms() / 1e3) : t.state);
      if (t.state != "ok") continue;
      plot.series[i].x.push_back(static_cast<double>(hidden));
      plot.series[i].y.push_back(t.ms());
    }
    verdict.add(timings);
    bench.say(line);
    bench.keep("fig20", "", report);
  }
  bench.keep("fig20", "Fig. 20: which rows travel between " + devices_text(bench), report);
  bench.keep_svg("fig20", plot_svg(plot));
  fmt::print("{}", verdict.text());
}

void bench_rank_epochs(WiseBench& bench) {
  std::vector<std::string> head = {"graph", "model", "devices", "one_device_ms"};
  for (const char* rows : kRows) head.push_back(std::string(rows) + "_ms");
  head.insert(head.end(), {"speedup", "over_best_percent", "predicted_bytes", "counted_bytes", "chosen", "same_as"});
  Report report(head);
  Verdict verdict;
  for (const std::string& graph : bench.options().graphs) {
    for (const std::string& model : bench.options().models) {
      const std::string spec = bench.graph_for(graph, model);
      std::vector<RunConfig> configs;
      for (const char* rows : kRows) configs.push_back(ranked_config(bench, model, rows));
      RunConfig alone = configs.front();
      alone.ranks.devices.resize(1);
      configs.push_back(alone);
      std::vector<RankTiming> timings = take_turns(bench, bench.data(spec), configs);
      const RankTiming one = timings.back();
      timings.pop_back();
      const RankTiming& own = timings.back();
      const double best = best_fixed(timings);
      std::vector<std::string> row = {spec, model, devices_text(bench), one.counted() ? cell(one.ms()) : one.state};
      for (const RankTiming& t : timings) row.push_back(t.counted() ? cell(t.ms()) : t.state);
      row.push_back(one.counted() && own.counted() ? cell(one.ms() / own.ms()) : "");
      row.push_back(best > 0 && own.counted() ? fmt::format("{:.1f}", 100 * (own.ms() / best - 1)) : "");
      row.insert(row.end(), {std::to_string(own.predicted.received), own.counted() ? std::to_string(own.received) : "",
                             own.chosen, same_as(own, timings)});
      report.add(row);
      verdict.add(timings);
      bench.say(fmt::format("table 2: {} on {} done", model, spec));
      bench.keep("table2", "", report);
    }
  }
  bench.keep("table2", "Table 2: a training step on several devices, by the rows that travel; speedup over one device",
             report);
  fmt::print("{}", verdict.text());
}

}  // namespace nacre::cli
