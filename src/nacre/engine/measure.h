// KernelTimer: times kernels and steps of plans on the real graph, for the planner's search. Memory
// is planned and taken as in training, and inputs are bound. A kernel runs after the one before it
// in the step, on whatever its operands hold.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "nacre/engine/executor.h"

namespace nacre {

class KernelTimer {
 public:
  // `bind` gives an executor its leaves. `memory` is the largest number of bytes that the timer may
  // take.
  KernelTimer(const Blocks& blocks, std::shared_ptr<Backend> backend, std::function<void(Executor&)> bind,
              int64_t memory = std::numeric_limits<int64_t>::max())
      : blocks_(blocks), backend_(std::move(backend)), bind_(std::move(bind)), memory_(memory) {}

  // Returns the seconds of one run of a kernel; -1 if the plan does not fit in memory.
  double operator()(const Plan& plan, size_t kernel);
  // Runs all kernels of a step once, one after another, and returns the sum of their seconds; -1 if
  // the plan does not fit in memory. The state of the model does not change. The executors of the
  // last two plans are kept, so two plans can be timed in turn.
  double step(const Plan& plan);

 private:
  Executor* load(const Plan& plan);

  const Blocks& blocks_;
  std::shared_ptr<Backend> backend_;
  std::function<void(Executor&)> bind_;
  int64_t memory_;
  // The executors of the plans used last, at most two. They share the arena.
  std::vector<std::unique_ptr<Executor>> executors_;
  ConstantPool constants_;
  std::shared_ptr<void> arena_;
  int64_t arena_bytes_ = 0;
};

}  // namespace nacre
