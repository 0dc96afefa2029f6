#include "workbench.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/parallel.h"
#include "nacre/plan/work.h"
#include "options.h"
#include "statistics.h"

namespace nacre::cli {
namespace {

RunConfig unplanned(RunConfig config) {
  config.plan = "off";
  config.device = "cpu";
  return config;
}

// Returns a text that is equal for kernels that do the same to values of the same types, and that
// therefore take equally long.
std::string signature(const Plan& plan, const Kernel& k, const Work& work) {
  std::string text = fmt::format("{} {} {} {}", work.kind, static_cast<int>(k.direction), k.transpose,
                                 type_text(plan.dfg[k.root].type));
  for (const NodeRef r : k.reads) text += " " + type_text(plan.dfg[r].type);
  for (const double a : work.amount) text += fmt::format(" {}", a);
  return text + k.table.text();
}

}  // namespace

double PlanTiming::seconds() const { return steps.empty() ? -1 : median(steps); }

Workbench::Workbench(const Dataset& dataset, RunConfig config)
    : session_(dataset, unplanned(std::move(config)), {.evaluation = false}), dfg_(written_dfg(session_)) {}

PlanAnswer Workbench::answer(const std::string& plan, bool use_cache) {
  PlanRequest request;
  request.plan = plan;
  request.epochs = session_.config().epochs;
  request.use_cache = use_cache;
  return plan_training(dfg_, blocks(), make_cpu_backend(std::make_shared<GraphViews>()), request,
                       [this](Executor& executor) { session_.bind(executor); });
}

KernelTimer Workbench::timer(const Blocks& on) {
  return {on, make_cpu_backend(std::make_shared<GraphViews>()),
          [this](Executor& executor) { session_.bind(executor); }};
}

bool Workbench::turn(const Plan& plan, const TimingOptions& how, PlanTiming& timing,
                     std::vector<std::vector<double>>& kernel_times) {
  Executor executor(plan, blocks(), views_);
  ConstantPool constants;
  const int64_t bytes = executor.arena_bytes() + executor.constant_bytes(constants);
  const int64_t limit = session_.config().memory_limit;
  if (bytes > (limit > 0 ? limit : (available_memory() + arena_bytes_) / 100 * 95)) {
    timing.state = "memory";
    return false;
  }
  // All turns share one arena. If each plan freed gigabytes, the system would be busy with them
  // during the steps of the next plan.
  if (executor.arena_bytes() > arena_bytes_) {
    arena_.reset();
    arena_bytes_ = executor.arena_bytes();
    arena_ = allocate_bytes(arena_bytes_);
  }
  session_.bind(executor);
  executor.allocate(arena_, constants);
  executor.prepare();
  for (int step = 0; step <= how.steps; ++step) {
    executor.reset_times();
    const double start = now_seconds();
    executor.run({session_.config().seed, static_cast<uint64_t>(step)});
    const double seconds = now_seconds() - start;
    if (seconds > how.limit) {
      timing.state = "slow";
      timing.steps = {seconds};
      return false;
    }
    if (step == 0) continue;
    timing.steps.push_back(seconds);
    for (size_t k = 0; k < kernel_times.size(); ++k) kernel_times[k].push_back(executor.times()[k].seconds);
  }
  return true;
}

std::vector<PlanTiming> Workbench::time(const std::vector<Plan>& plans, const TimingOptions& how) {
  std::vector<PlanTiming> timings(plans.size());
  std::vector<std::vector<std::vector<double>>> kernels;
  kernels.reserve(plans.size());
  for (const Plan& plan : plans) kernels.emplace_back(plan.kernels.size());
  views_ = std::make_shared<GraphViews>();
  for (int round = 0; round < how.rounds; ++round) {
    for (size_t p = 0; p < plans.size(); ++p) {
      if (timings[p].state == "ok") turn(plans[p], how, timings[p], kernels[p]);
    }
  }
  views_.reset();
  arena_.reset();
  arena_bytes_ = 0;
  for (size_t p = 0; p < plans.size(); ++p) {
    if (timings[p].state != "ok") continue;
    for (const auto& times : kernels[p]) timings[p].kernels.push_back(median(times));
  }
  return timings;
}

double KernelLedger::kernel(const Plan& plan, size_t k) {
  const Work work = kernel_work(plan.kernels[k], plan, bench_.blocks(), profile_.cache_bytes);
  const auto [entry, fresh] = known_.try_emplace(signature(plan, plan.kernels[k], work), -1);
  if (!fresh) return entry->second;
  for (int i = 0; i < repeats_; ++i) {
    const double seconds = timer_(plan, k);
    if (seconds < 0) return -1;
    entry->second = entry->second < 0 ? seconds : std::min(entry->second, seconds);
  }
  samples_.push_back({work, entry->second});
  return entry->second;
}

double KernelLedger::plan(const Plan& plan) {
  double sum = 0;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    if (plan.kernels[k].once) continue;
    const double seconds = kernel(plan, k);
    if (seconds < 0) return -1;
    sum += seconds;
  }
  return sum;
}

double KernelLedger::predicted(const Plan& plan) const {
  double sum = 0;
  for (const Kernel& k : plan.kernels) {
    if (!k.once) sum += profile_.model.predict(kernel_work(k, plan, bench_.blocks(), profile_.cache_bytes));
  }
  return sum;
}

}  // namespace nacre::cli
