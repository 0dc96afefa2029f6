// Matrix products with cuBLASLt. The library stores matrices by columns, the engine by rows. So out
// = a · b is computed as outᵀ = bᵀ · aᵀ, which is the same memory with the operands in the other
// order.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "nacre/cuda/allocator.h"
#include "nacre/cuda/blaslt.h"

namespace nacre::cuda {

class Gemm {
 public:
  Gemm(const Context& context, Allocator& allocator) : context_(context), allocator_(allocator) {}
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  int prepare(GemmShape shape, int among);
  void release(int handle);
  int64_t workspace(int handle) const;
  void run(int handle, const GemmArgs& args, void* workspace);

 private:
  struct Algorithm {
    cublasLtMatmulAlgo_t choice{};
    int64_t workspace = 0;
  };
  // Alignments of a, b and c in bytes. They are powers of two and at most 16, because no kernel of
  // the library needs more.
  using Alignment = std::array<uint32_t, 3>;
  struct Plan {
    GemmShape shape;
    int users = 0;
    Alignment alignment{};  // alignment that `algorithm` needs
    Algorithm algorithm;
    bool tuned = false;
    bool empty = false;         // k is 0 or there are no elements, so there is no product
    bool own_epilogue = false;  // finish() does what follows the product, not the library
    // The library needs a bias of the type of the result. The engine's bias is always f32. If the
    // result is bf16, the bias is converted into this memory before every product.
    std::unique_ptr<Temporary> narrow_bias;
    BlasLtOwner<cublasLtMatmulDesc_t> desc;
    BlasLtOwner<cublasLtMatrixLayout_t> a, b, c;
    std::map<Alignment, Algorithm> for_other_pointers;
  };
  std::unique_ptr<Plan> make(const GemmShape& shape);
  std::vector<Algorithm> candidates(const Plan& plan, const Alignment& alignment, int most, int64_t workspace);
  void choose(Plan& plan, int among, int64_t workspace);
  bool choose_shared(Plan& plan);
  Plan& plan_of(int handle) const;
  void tune(Plan& plan, const std::vector<Algorithm>& among, const void* bias);
  double time(Plan& plan, const Algorithm& algorithm, const GemmArgs& args, void* workspace);
  cublasStatus_t multiply(Plan& plan, const Algorithm& algorithm, const GemmArgs& args, void* workspace);
  const Algorithm& algorithm_for(Plan& plan, const GemmArgs& args);
  void finish(const Plan& plan, const GemmArgs& args, float scale);
  const void* bias_of(const Plan& plan, const void* bias);
  static Alignment stored_alignment(const GemmShape& shape);

  const Context& context_;
  Allocator& allocator_;
  BlasLtOwner<cublasLtHandle_t> library_;
  mutable std::recursive_mutex mutex_;          // protects the members below
  std::map<int, std::unique_ptr<Plan>> plans_;  // plans by their handle
  std::map<std::string, int> handles_;          // handles by the shape of the product
  int next_handle_ = 0;
  // The choices of the library for rounded shapes, by shape. To ask the library for every shape
  // would take longer than a small product.
  std::map<std::string, std::optional<Algorithm>> choices_;
};

}  // namespace nacre::cuda
