// The steps of a kernel in the making, and the workspace they share.
#pragma once

#include <functional>
#include <vector>

#include "nacre/engine/gpu/context.h"

namespace nacre {

// Places in a workspace. Over nothing it only counts.
class Carve {
 public:
  explicit Carve(void* base) : base_(static_cast<char*>(base)) {}
  void* take(int64_t bytes) {
    char* at = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (bytes + 255) / 256 * 256;
    return at;
  }
  float* floats(int64_t count) { return static_cast<float*>(take(count * static_cast<int64_t>(sizeof(float)))); }
  int64_t used() const { return used_; }

 private:
  char* base_;
  int64_t used_ = 0;
};

// A pointer moved on, where there is memory already.
template <class T>
T* at(T* base, int64_t offset) {
  return base == nullptr ? nullptr : base + offset;
}

// The steps of a kernel in the making. A kernel is made twice alike: without a workspace, to learn what it needs
// (products are prepared, nothing is compiled or copied), and with it.
class StepList {
 public:
  StepList(GpuContext& context, void* workspace, bool sizing) : carve(workspace), context_(context), sizing_(sizing) {}

  // `params` is called unless sizing.
  void launch(const cuda::Source& source, int64_t blocks, const std::function<cuda::LaunchParams()>& params);
  // out = alpha · op(a) · op(b) + beta · out; nothing where there are no elements. Small products are timed among the
  // library's ways only if `worth_timing`.
  void product(GemmShape shape, const GemmArgs& args, bool worth_timing = false);
  void zero(void* memory, int64_t bytes);
  void then(Step step);
  bool sizing() const { return sizing_; }

  // To be called last: the products' workspace follows what was carved.
  int64_t bytes() const { return carve.used() + gemm_bytes_; }
  Step finish(void* workspace);

  Carve carve;

 private:
  GpuContext& context_;
  bool sizing_;
  int64_t gemm_bytes_ = 0;
  struct Call {
    Step launch;  // or, where empty, a product
    int handle = -1;
    GemmArgs args;
  };
  std::vector<Call> calls_;
};

}  // namespace nacre
