// Matrix products by cuBLASLt. The library stores columns, the engine rows: out = a · b is computed as outᵀ = bᵀ · aᵀ,
// which is the same memory with the operands in the other order.
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

  int prepare(GemmShape shape, bool tune);
  void release(int handle);
  int64_t workspace(int handle) const;
  void run(int handle, const GemmArgs& args, void* workspace);

 private:
  struct Algorithm {
    cublasLtMatmulAlgo_t choice{};
    int64_t workspace = 0;
  };
  // Of a, b and c, in bytes: powers of two, at most 16, since no kernel of the library asks for more.
  using Alignment = std::array<uint32_t, 3>;
  struct Plan {
    GemmShape shape;
    int users = 0;
    Alignment alignment{};  // that `algorithm` needs
    Algorithm algorithm;
    bool tuned = false;
    bool empty = false;         // k = 0 or no elements: no product at all
    bool own_epilogue = false;  // not the library's
    // The library wants a bias of the result's type; ours is f32 always, and is copied here before every product.
    std::unique_ptr<Temporary> narrow_bias;
    BlasLtOwner<cublasLtMatmulDesc_t> desc;
    BlasLtOwner<cublasLtMatrixLayout_t> a, b, c;
    std::map<Alignment, Algorithm> for_other_pointers;
  };
  std::unique_ptr<Plan> make(const GemmShape& shape);
  std::vector<Algorithm> candidates(const Plan& plan, const Alignment& alignment, int most, int64_t workspace);
  void choose(Plan& plan, bool tune, int64_t workspace);
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
  mutable std::recursive_mutex mutex_;          // of all below
  std::map<int, std::unique_ptr<Plan>> plans_;  // by handle
  std::map<std::string, int> handles_;          // by shape
  int next_handle_ = 0;
  // What the library chooses for rounded shapes: asking it for each takes longer than a small product.
  std::map<std::string, std::optional<Algorithm>> choices_;
};

}  // namespace nacre::cuda
