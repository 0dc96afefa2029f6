// Compares one plan, tuned on a few batches and used for others, with plans tuned for each of those
// batches.
#include <fmt/format.h>

#include <algorithm>

#include "bench_graphtensor.h"
#include "nacre/base/log.h"
#include "nacre/engine/measure.h"
#include "statistics.h"

namespace nacre::cli {
namespace {

constexpr int kTuned = 5;        // number of batches that a session's plan is tuned on
constexpr int kSteps = 1 << 20;  // a run long enough for any search to pay

struct ReuseTimes {
  std::vector<double> reused, own;
  double reused_sum = 0, own_sum = 0;
};

// Returns `count` batches that are drawn with another seed number and from epoch 1 on, so that the
// session's plan was not tuned on them.
std::vector<Sample> other_batches(const BatchSession& session, int count) {
  BatchOrder order(session.dataset().splits.train, session.config().batch_size, session.config().seed + 1, true);
  std::vector<Sample> list;
  for (uint64_t epoch = 1; static_cast<int>(list.size()) < count; ++epoch) {
    order.begin_epoch(epoch);
    for (int64_t b = 0; b < order.num_batches() && static_cast<int>(list.size()) < count; ++b)
      list.push_back(session.sampler().sample(order.batch(b), {epoch, static_cast<uint64_t>(b)}));
  }
  return list;
}

ReuseTimes compare(GraphTensorBench& bench, BatchSession& session) {
  ReuseTimes t;
  const auto backend = make_cpu_backend(std::make_shared<GraphViews>());
  PlanRequest request;
  request.epochs = kSteps;
  request.use_cache = false;
  request.budget_share = 1e-4;
  for (const Sample& sample : other_batches(session, bench.options().blocks)) {
    const auto values = session.leaves(session.dfg(), sample);
    const TrialBlocks trial{session.blocks(sample), [&](Executor& e) { session.bind(e, values); }};
    const Plan own = plan_batches(session.dfg(), {trial}, backend, request).plan;
    KernelTimer timer(trial.blocks, backend->scoped(), trial.bind);
    std::vector<double> reused_steps, own_steps;
    for (int r = 0; r <= bench.options().rounds; ++r) {
      reused_steps.push_back(timer.step(session.plan()));
      own_steps.push_back(timer.step(own));
    }
    // The first step is left out, because it allocates memory.
    t.reused.push_back(median({reused_steps.begin() + 1, reused_steps.end()}));
    t.own.push_back(median({own_steps.begin() + 1, own_steps.end()}));
    t.reused_sum += t.reused.back();
    t.own_sum += t.own.back();
  }
  return t;
}

}  // namespace

void bench_reuse(GraphTensorBench& bench) {
  Report report({"graph", "model", "tuned_on", "blocks", "reused_ms", "own_ms", "speed_of_own_percent"});
  Report blocks({"graph", "model", "block", "reused_ms", "own_ms"});
  BarPlot plot;
  plot.title = "A plan tuned on five batches and used for others: speed beside plans of their own";
  plot.unit = "%";
  plot.series = {"reused"};
  for (const std::string& graph : bench.options().graphs) {
    for (const std::string& model : bench.options().models) {
      RunConfig config = bench.config_for(model);
      config.device = "cpu";
      config.plan = "auto";
      config.plan_cache = false;
      config.epochs = kSteps / 100;
      BatchSession session(bench.data(graph), config, {.evaluation = false});
      const ReuseTimes t = compare(bench, session);
      const double percent = 100 * t.own_sum / t.reused_sum;
      report.add({graph, model, std::to_string(kTuned), std::to_string(t.own.size()), cell(t.reused_sum * 1e3),
                  cell(t.own_sum * 1e3), cell(percent)});
      for (size_t i = 0; i < t.own.size(); ++i)
        blocks.add({graph, model, std::to_string(i), cell(t.reused[i] * 1e3), cell(t.own[i] * 1e3)});
      plot.groups.push_back(graph.substr(graph.find(':') + 1) + " " + model);
      plot.values.push_back({percent});
      bench.say(fmt::format("reuse: {} {}: {:.1f} %", graph, model, percent));
      bench.keep("reuse", "", report);
      bench.keep("reuse-blocks", "", blocks);
    }
  }
  bench.keep("reuse", "Plan reuse (sums over blocks, CPU)", report);
  bench.write("reuse.svg", plot_svg(plot));
}

}  // namespace nacre::cli
