// A model on a graph, for running and timing any number of plans one after another.
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
  double limit = 60;  // seconds of a step; slower plans are given up after their first step
};

struct PlanTiming {
  std::string state = "ok";     // ok; slow: given up, with the times so far; memory: does not fit
  std::vector<double> steps;    // seconds of forward and backward pass together
  std::vector<double> kernels;  // median seconds of each kernel; empty unless ok
  double seconds() const;       // median of the steps; negative if there are none
};

class Workbench {
 public:
  // Opens the model; the plan in `config` is ignored.
  Workbench(const Dataset& dataset, RunConfig config);

  Session& session() { return session_; }
  const Dfg& dfg() const { return dfg_; }  // the model with its gradient, as written
  const Blocks& blocks() const { return session_.blocks(); }
  const Graph& graph() const { return session_.dataset().graph; }

  Plan plan(const PlanOptions& options) const { return make_plan(dfg_, blocks(), options); }
  PlanAnswer answer(const std::string& plan, bool use_cache = true);
  std::vector<PlanTiming> time(const std::vector<Plan>& plans, const TimingOptions& how);
  // Returns a timer for single kernels, on this graph or on another with the same vertices.
  KernelTimer timer(const Blocks& on);

 private:
  // Runs one turn of a plan. Returns false if the plan is given up.
  bool turn(const Plan& plan, const TimingOptions& how, PlanTiming& timing,
            std::vector<std::vector<double>>& kernel_times);

  Session session_;
  Dfg dfg_;
  std::shared_ptr<GraphViews> views_;
  std::shared_ptr<void> arena_;  // kept while plans take turns
  int64_t arena_bytes_ = 0;
};

// Seconds of kernels on the real graph, remembered by what the kernels do, because plans share most
// of their kernels.
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
