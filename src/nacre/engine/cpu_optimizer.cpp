#include <algorithm>
#include <cmath>

#include "nacre/engine/optimizer.h"
#include "nacre/kernel/cpu/optimizer.h"

namespace nacre {
namespace {

class CpuOptimizer : public Optimizer {
 public:
  CpuOptimizer(const OptimizerOptions& options, const std::vector<TrainedParameter>& parameters,
               const OptimizerMemory& memory)
      : Optimizer(options), memory_(memory) {
    for (const TrainedParameter& p : parameters) {
      if (p.gradient != nullptr) parameters_.push_back(p);
    }
  }

  void step(double lr) override {
    const OptimizerNumbers numbers = count_step(lr);
    const auto step = options().name == "sgd" ? cpu::sgd_step : cpu::adam_step;
    float clip = 1;
    if (options().clip_norm > 0) clip = static_cast<float>(clip_factor(options().clip_norm, gradient_norm()));
    for (const TrainedParameter& p : parameters_) {
      const auto part = [&](float* all) { return all == nullptr ? nullptr : all + p.offset; };
      step(numbers, clip,
           {part(memory_.weights), p.gradient, part(memory_.first), part(memory_.second), part(memory_.average),
            p.size});
    }
  }

  void exchange_average() override {
    if (memory_.average != nullptr) std::swap_ranges(memory_.average, memory_.average + memory_.size, memory_.weights);
  }

 private:
  double gradient_norm() {
    double sum = 0;
    for (const TrainedParameter& p : parameters_) sum = cpu::add_squares(sum, p.gradient, p.size, squares_);
    return std::sqrt(sum);
  }

  OptimizerMemory memory_;
  std::vector<TrainedParameter> parameters_;
  std::vector<double> squares_;  // squares of the gradient, chunk by chunk
};

}  // namespace

std::unique_ptr<Optimizer> make_cpu_optimizer(const OptimizerOptions& options,
                                              const std::vector<TrainedParameter>& parameters,
                                              const OptimizerMemory& memory) {
  return std::make_unique<CpuOptimizer>(options, parameters, memory);
}

}  // namespace nacre
