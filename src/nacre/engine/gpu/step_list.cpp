#include "nacre/engine/gpu/step_list.h"

#include <algorithm>

#include "nacre/base/error.h"

namespace nacre {

void StepList::launch(const cuda::Source& source, int64_t blocks, const std::function<cuda::LaunchParams()>& params) {
  if (sizing_ || blocks == 0) return;
  calls_.push_back({context_.launch(source, blocks, params()), -1, {}});
}

int ProductTiming::among(const GemmShape& shape) const {
  NACRE_CHECK(algorithms > 0, "the plan does not say how the algorithm of a product is found");
  const double flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  return flops >= least_flops ? algorithms : 1;
}

ProductTiming product_timing(const GpuKernel& g) {
  const auto taken = g.take<AlgorithmWay>(algorithm_variants(), algorithm_facts(g.kernel.kind));
  if (taken.way == AlgorithmWay::first) return {1, 0};
  return {static_cast<int>(taken.limit), taken.way == AlgorithmWay::large_timed ? kLargeProduct : 0};
}

void StepList::product(const GemmShape& shape, const GemmArgs& args) {
  if (shape.m == 0 || shape.n == 0) return;
  const int handle = context_.prepare_gemm(shape, timing_.among(shape));
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

int64_t rows_of_chunk(const GpuKernel& g, const ChunkFacts& facts) {
  const auto run = g.take<ChunkRun>(chunk_variants(), facts);
  return run.way == ChunkRun::all ? facts.rows : std::min(facts.rows, run.limit);
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
