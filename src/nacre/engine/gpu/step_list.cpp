#include "nacre/engine/gpu/step_list.h"

#include <algorithm>

namespace nacre {
namespace {

// Floating-point operations below which a product is not worth timing.
constexpr double kTuneFlops = 1e8;

}  // namespace

void StepList::launch(const cuda::Source& source, int64_t blocks, const std::function<cuda::LaunchParams()>& params) {
  if (sizing_ || blocks == 0) return;
  calls_.push_back({context_.launch(source, blocks, params()), -1, {}});
}

void StepList::product(GemmShape shape, const GemmArgs& args, bool worth_timing) {
  if (shape.m == 0 || shape.n == 0) return;
  const double flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  const int handle = context_.prepare_gemm(shape, context_.options().tune && (worth_timing || flops >= kTuneFlops));
  gemm_bytes_ = std::max(gemm_bytes_, context_.device().gemm_workspace(handle));
  if (!sizing_) calls_.push_back({{}, handle, args});
}

void StepList::zero(void* memory, int64_t bytes) {
  if (sizing_ || bytes == 0) return;
  calls_.push_back({[&device = context_.device(), memory, bytes] { device.fill(memory, 0, bytes); }, -1, {}});
}

void StepList::then(Step step) {
  if (!sizing_) calls_.push_back({std::move(step), -1, {}});
}

Step StepList::finish(void* workspace) {
  void* scratch = workspace == nullptr ? nullptr : static_cast<char*>(workspace) + carve.used();
  return [&device = context_.device(), calls = std::move(calls_), scratch] {
    for (const Call& call : calls) {
      if (call.launch) {
        call.launch();
      } else {
        device.run_gemm(call.handle, call.args, scratch);
      }
    }
  };
}

}  // namespace nacre
