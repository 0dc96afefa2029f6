// This header declares StepList, which collects the steps of a kernel that is being bound, and
// Carve, which divides the workspace they share.
#pragma once

#include <functional>
#include <vector>

#include "nacre/engine/gpu/context.h"
#include "nacre/plan/variants/chunks.h"

namespace nacre {

// Hands out places in a workspace. Without a workspace (base null), it only counts the bytes.
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

// Returns base + offset, or null if there is no memory yet.
template <class T>
T* at(T* base, int64_t offset) {
  return base == nullptr ? nullptr : base + offset;
}

// Says how the algorithms of a kernel's products are found.
struct ProductTiming {
  int algorithms = 0;      // number of algorithms that a product is timed with; 0: not known yet
  double least_flops = 0;  // products with fewer operations are not timed
  // Returns the number of algorithms that this product is timed with; 1: it is not timed.
  int among(const GemmShape& shape) const;
};
// Returns what the plan decides about the products of a kernel (plan/variants/chunks.h).
ProductTiming product_timing(const GpuKernel& g);

// Collects the steps of a kernel that is being bound. The same code runs twice: first without a
// workspace, to find out how large it must be (products are prepared, but nothing is compiled or
// copied), then with it.
class StepList {
 public:
  StepList(GpuContext& context, void* workspace, bool sizing) : carve(workspace), context_(context), sizing_(sizing) {}

  // Adds the launch of a kernel on `blocks` blocks of threads. `params` is not called while sizing.
  void launch(const cuda::Source& source, int64_t blocks, const std::function<cuda::LaunchParams()>& params);
  // Sets how the algorithms of the products are found. Call this before product().
  void time_products(const ProductTiming& timing) { timing_ = timing; }
  // Adds the product out = alpha · op(a) · op(b) + beta · out, unless it has no elements.
  void product(const GemmShape& shape, const GemmArgs& args);
  void zero(void* memory, int64_t bytes);
  void then(Step step);
  bool sizing() const { return sizing_; }

  // bytes() returns the size of the workspace, and finish() the step that runs all steps of the
  // list. Both must be called last, because the workspace of the products follows the places that
  // were handed out.
  int64_t bytes() const { return carve.used() + gemm_bytes_; }
  Step finish(void* workspace);

  Carve carve;

 private:
  GpuContext& context_;
  bool sizing_;
  ProductTiming timing_;
  int64_t gemm_bytes_ = 0;
  struct Call {
    Step launch;  // empty if the call is a product
    int handle = -1;
    GemmArgs args;
  };
  std::vector<Call> calls_;
};

// Returns how many of its rows a kernel takes at a time, by the plan's decision
// (plan/variants/chunks.h).
int64_t rows_of_chunk(const GpuKernel& g, const ChunkFacts& facts);

}  // namespace nacre
