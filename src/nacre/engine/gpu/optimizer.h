// GpuOptimizer: takes an optimiser step on a GPU with one launch over all parameters. The numbers
// that change from step to step are written to device memory before the launch.
#pragma once

#include <memory>
#include <vector>

#include "nacre/engine/gpu/context.h"
#include "nacre/engine/optimizer.h"

namespace nacre {

class GpuOptimizer : public Optimizer {
 public:
  // `memory` and the gradients of `parameters` must lie in device memory.
  GpuOptimizer(std::shared_ptr<GpuContext> context, const OptimizerOptions& options,
               const std::vector<TrainedParameter>& parameters, const OptimizerMemory& memory);

  void step(double lr) override;
  void exchange_average() override;

 private:
  std::shared_ptr<GpuContext> context_;
  OptimizerMemory memory_;
  std::shared_ptr<void> spare_, numbers_, pieces_, squares_, factor_;
  Step launch_;
};

}  // namespace nacre
