// Times kernels and steps of plans on the real graph, for the planner's search: memory is planned and taken as in
// training and inputs are bound; a kernel runs after the one before it, on whatever its operands hold.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "nacre/engine/executor.h"

namespace nacre {

class KernelTimer {
 public:
  // `bind` gives an executor its leaves.
  // `memory`: the most it may take, in bytes.
  KernelTimer(const Blocks& blocks, std::shared_ptr<Backend> backend, std::function<void(Executor&)> bind,
              int64_t memory = std::numeric_limits<int64_t>::max())
      : blocks_(blocks), backend_(std::move(backend)), bind_(std::move(bind)), memory_(memory) {}

  // Seconds of one run; -1 when the plan does not fit into memory.
  double operator()(const Plan& plan, size_t kernel);
  // All kernels of a step, one after the other, once; the state of the model is left as it is. Two plans may take
  // turns.
  double step(const Plan& plan);

 private:
  Executor* load(const Plan& plan);

  const Blocks& blocks_;
  std::shared_ptr<Backend> backend_;
  std::function<void(Executor&)> bind_;
  int64_t memory_;
  std::vector<std::unique_ptr<Executor>> executors_;  // the plans used last, at most two; they share the arena
  ConstantPool constants_;
  std::shared_ptr<void> arena_;
  int64_t arena_bytes_ = 0;
};

}  // namespace nacre
