// Runs and times any number of plans of a model on a graph, one after another.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nacre/engine/calibrate.h"
#include "nacre/engine/measure.h"
#include "nacre/train/session.h"

namespace nacre::cli {

struct TimingOptions {
  int rounds = 3;     // number of turns of each plan; each turn warms up with one step
  int steps = 2;      // number of timed steps in a turn
  double limit = 60;  // seconds of a step; a plan is given up at its first slower step
};

struct PlanTiming {
  std::string state = "ok";     // ok; slow: given up, has the slow step only; memory: does not fit
  std::vector<double> steps;    // seconds of forward and backward pass together
  std::vector<double> kernels;  // median seconds of each kernel; empty unless ok
  double seconds() const;       // median of the steps; negative if there are none
};

class Workbench {
 public:
  // Opens a session with the model. The plan in `config` is ignored.
  Workbench(const Dataset& dataset, RunConfig config);

  Session& session() { return session_; }
  const Dfg& dfg() const { return dfg_; }  // returns the model with its gradient, as written
  const Blocks& blocks() const { return session_.blocks(); }
  const Graph& graph() const { return session_.dataset().graph; }

  Plan plan(const PlanOptions& options) const { return make_plan(dfg_, blocks(), options); }
  PlanAnswer answer(const std::string& plan, bool use_cache = true);
  std::vector<PlanTiming> time(const std::vector<Plan>& plans, const TimingOptions& how);
  // Returns a timer for single kernels on the blocks `on`: those of this graph, or of another graph
  // with the same vertices.
  KernelTimer timer(const Blocks& on);

 private:
  // Runs one turn of a plan. Returns false if the plan is given up.
  bool turn(const Plan& plan, const TimingOptions& how, PlanTiming& timing,
            std::vector<std::vector<double>>& kernel_times);

  Session session_;
  Dfg dfg_;
  std::shared_ptr<GraphViews> views_;
  std::shared_ptr<void> arena_;  // the arena that all plans share while they take turns
  int64_t arena_bytes_ = 0;
};

// Times kernels on the real graph, and keeps the seconds by what the kernels do, because plans
// share most of their kernels.
class KernelLedger {
 public:
  KernelLedger(Workbench& bench, const DeviceProfile& profile, int repeats)
      : bench_(bench), profile_(profile), timer_(bench.timer(bench.blocks())), repeats_(repeats) {}

  double kernel(const Plan& plan, size_t k);  // negative if it does not fit in memory
  double plan(const Plan& plan);              // seconds of a step, without kernels that run once
  double predicted(const Plan& plan) const;   // predicted seconds of a step
  const std::vector<Timing>& samples() const { return samples_; }

 private:
  Workbench& bench_;
  const DeviceProfile& profile_;
  KernelTimer timer_;
  int repeats_;
  std::map<std::string, double> known_;
  std::vector<Timing> samples_;
};

}  // namespace nacre::cli
