// A model on a graph, on which any number of plans are run and timed one after the other.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nacre/engine/calibrate.h"
#include "nacre/engine/measure.h"
#include "nacre/train/session.h"

namespace nacre::cli {

struct TimingOptions {
  int rounds = 3;     // plans take turns this many times; each turn warms up with one step
  int steps = 2;      // timed in a turn
  double limit = 60;  // seconds of a step: slower plans are given up after their first one
};

struct PlanTiming {
  std::string state = "ok";     // ok, slow (given up; what is known), memory (does not fit)
  std::vector<double> steps;    // seconds of forward and backward pass
  std::vector<double> kernels;  // median seconds of each kernel; empty unless ok
  double seconds() const;       // median; negative when there is none
};

class Workbench {
 public:
  // `config`: its plan does not matter here.
  Workbench(const Dataset& dataset, RunConfig config);

  Session& session() { return session_; }
  const Dfg& dfg() const { return dfg_; }  // with its gradient, as written
  const Blocks& blocks() const { return session_.blocks(); }
  const Graph& graph() const { return session_.dataset().graph; }

  Plan plan(const PlanOptions& options) const { return make_plan(dfg_, blocks(), options); }
  PlanAnswer answer(const std::string& plan, bool use_cache = true);
  std::vector<PlanTiming> time(const std::vector<Plan>& plans, const TimingOptions& how);
  // Times kernels one by one, on this graph or on another with the same vertices.
  KernelTimer timer(const Blocks& on);

 private:
  // False when the plan is given up.
  bool turn(const Plan& plan, const TimingOptions& how, PlanTiming& timing,
            std::vector<std::vector<double>>& kernel_times);

  Session session_;
  Dfg dfg_;
  std::shared_ptr<GraphViews> views_;
  std::shared_ptr<void> arena_;  // while plans take turns
  int64_t arena_bytes_ = 0;
};

// Seconds of kernels on the real graph, remembered by what they do: plans share most of theirs.
class KernelLedger {
 public:
  KernelLedger(Workbench& bench, const DeviceProfile& profile, int repeats)
      : bench_(bench), profile_(profile), timer_(bench.timer(bench.blocks())), repeats_(repeats) {}

  double kernel(const Plan& plan, size_t k);  // negative: does not fit into memory
  double plan(const Plan& plan);              // a step; kernels computed once are left out
  double predicted(const Plan& plan) const;   // likewise
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
