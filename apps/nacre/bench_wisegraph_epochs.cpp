// Measures Fig. 13, a training step under the planner's plan and under plans written by hand, and
// Table 3, which says what planning costs in comparison.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench_wisegraph.h"
#include "nacre/base/log.h"
#include "nacre/plan/search.h"
#include "statistics.h"

namespace nacre::cli {
namespace {

constexpr const char* kPlans[] = {"vertex", "edge", "tensor", "off", "auto"};
constexpr size_t kByHand = 3;  // number of plans that are written by hand, the first of kPlans
// A plan is not run if its predicted time is more than this many times the limit.
constexpr double kHopeless = 20;

struct Speedups {
  std::map<std::string, std::vector<double>> by_model;
  std::vector<double> all;
};

// Returns the time of the best plan written by hand over that of the planner's plan.
double speedup(const std::vector<PlanTiming>& timings) {
  double best = -1;
  for (size_t p = 0; p < kByHand; ++p) {
    const double s = timings[p].seconds();
    if (s > 0 && (best < 0 || s < best)) best = s;
  }
  const double own = timings.back().seconds();
  return best > 0 && own > 0 && timings.back().state == "ok" ? best / own : -1;
}

// Returns the times of a training step under each of kPlans. For the last of them, `auto`, it sets
// `planned` to the plan that the planner has made and to how that plan was found. Plans whose
// predicted time is more than kHopeless times --limit-s are not run: their state is "slow", and
// they have no times.
std::vector<PlanTiming> time_all(WiseBench& bench, Workbench& work, PlanAnswer& planned) {
  SearchOptions how;
  how.model = &bench.profile().model;
  how.cache_bytes = bench.profile().cache_bytes;
  std::vector<Plan> plans;
  std::vector<size_t> which;
  std::vector<PlanTiming> timings(std::size(kPlans));
  for (size_t p = 0; p < std::size(kPlans); ++p) {
    PlanAnswer answer = work.answer(kPlans[p]);
    if (predict_plan(answer.plan, work.blocks(), how) > kHopeless * bench.options().limit) {
      timings[p].state = "slow";
    } else {
      plans.push_back(answer.plan);
      which.push_back(p);
    }
    if (p + 1 == std::size(kPlans)) planned = std::move(answer);
  }
  const std::vector<PlanTiming> measured = work.time(plans, bench.timing());
  for (size_t i = 0; i < which.size(); ++i) timings[which[i]] = measured[i];
  return timings;
}

void add_rows(Report& report, const std::string& graph, const std::string& model,
              const std::vector<PlanTiming>& timings, const std::string& source) {
  for (size_t p = 0; p < timings.size(); ++p) {
    const PlanTiming& t = timings[p];
    const auto [low, high] = std::minmax_element(t.steps.begin(), t.steps.end());
    const bool known = !t.steps.empty();
    report.add({graph, model, kPlans[p], t.state, cell(t.seconds() * 1e3), known ? cell(*low * 1e3) : "",
                known ? cell(*high * 1e3) : "", p + 1 == timings.size() ? cell(speedup(timings)) : "",
                p + 1 == timings.size() ? source : ""});
  }
}

void sum_up(WiseBench& bench, const Speedups& found) {
  Report report({"model", "cases", "geometric_mean", "min"});
  for (const auto& [model, list] : found.by_model) {
    report.add({model, std::to_string(list.size()), cell(geometric_mean(list)),
                cell(*std::min_element(list.begin(), list.end()))});
  }
  if (!found.all.empty()) {
    report.add({"all", std::to_string(found.all.size()), cell(geometric_mean(found.all)),
                cell(*std::min_element(found.all.begin(), found.all.end()))});
  }
  bench.keep("fig13-speedup", "Fig. 13: best of vertex, edge and tensor over auto", report);
}

}  // namespace

void bench_epochs(WiseBench& bench) {
  Report report({"graph", "model", "plan", "state", "ms", "min_ms", "max_ms", "speedup", "found"});
  Speedups found;
  for (const std::string& graph : bench.options().graphs) {
    BarPlot plot;
    plot.title = "Training step on " + graph;
    plot.unit = "ms";
    plot.series.assign(std::begin(kPlans), std::end(kPlans));
    for (const std::string& model : bench.options().models) {
      const std::string spec = bench.graph_for(graph, model);
      Workbench work = bench.open(graph, model);
      PlanAnswer planned;
      const std::vector<PlanTiming> timings = time_all(bench, work, planned);
      add_rows(report, spec, model, timings, planned.source);
      const double ratio = speedup(timings);
      if (ratio > 0) {
        found.by_model[model].push_back(ratio);
        found.all.push_back(ratio);
      }
      std::string line = fmt::format("fig. 13: {} on {}:", model, spec);
      plot.groups.push_back(model);
      plot.values.emplace_back();
      for (size_t p = 0; p < timings.size(); ++p) {
        plot.values.back().push_back(timings[p].state == "ok" ? timings[p].seconds() * 1e3 : -1);
        line += fmt::format(" {} {}", kPlans[p],
                            timings[p].steps.empty() ? timings[p].state : human_seconds(timings[p].seconds()));
      }
      bench.say(line);
      bench.keep("fig13", "", report);
    }
    std::string name = graph.substr(graph.find(':') + 1);
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '/' || c == '@'; }, '-');
    bench.keep_svg("fig13-" + name, plot_svg(plot));
  }
  bench.keep("fig13", "Fig. 13: forward and backward pass", report);
  sum_up(bench, found);
}

void bench_overhead(WiseBench& bench) {
  Report report({"graph", "model", "load_s", "search_s", "cached_s", "source_again", "epochs100_s", "search_percent"});
  bench.profile();
  for (const std::string& graph : bench.options().graphs) {
    for (const std::string& model : bench.options().models) {
      Workbench work = bench.open(graph, model);
      const auto timed = [&](bool use_cache, PlanAnswer& answer) {
        const double start = now_seconds();
        answer = work.answer("auto", use_cache);
        return now_seconds() - start;
      };
      // Time both a search and a read of the plan cache. If the first call has found the plan in
      // the cache, the second one must search; otherwise the second one finds the plan of the first
      // in the cache.
      PlanAnswer first, again;
      double cold = timed(true, first);
      double cached = -1;
      if (first.source == "cached") {
        cached = cold;
        cold = timed(false, again);
        again.source = "cached";
      } else {
        cached = timed(true, again);
      }
      const double epoch = work.time({first.plan}, bench.timing())[0].seconds();
      report.add({bench.graph_for(graph, model), model, cell(bench.load_seconds()), cell(cold), cell(cached),
                  again.source, cell(100 * epoch), cell(cold / epoch)});
      bench.say(fmt::format("table 3: {} on {}: search {}, 100 epochs {}", model, bench.graph_for(graph, model),
                            human_seconds(cold), human_seconds(100 * epoch)));
      bench.keep("table3", "", report);
    }
  }
  bench.keep("table3", "Table 3: what planning costs beside loading and 100 epochs", report);
}

}  // namespace nacre::cli
