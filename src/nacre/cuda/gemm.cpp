#include "nacre/cuda/gemm.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "nacre/cuda/primitives.h"

namespace nacre::cuda {
namespace {

constexpr int64_t kMostWorkspace = int64_t{32} << 20;
constexpr uint32_t kMostAlignment = 16;

bool has_bias(const GemmShape& s) { return s.epilogue == GemmEpilogue::bias || s.epilogue == GemmEpilogue::relu_bias; }
bool has_relu(const GemmShape& s) { return s.epilogue == GemmEpilogue::relu || s.epilogue == GemmEpilogue::relu_bias; }
bool is_bf16(const GemmShape& s) { return s.type == GemmType::bf16; }
int64_t in_bytes(const GemmShape& s) { return is_bf16(s) ? 2 : 4; }
int64_t out_bytes(const GemmShape& s) { return s.bf16_out ? 2 : 4; }

// Returns a text that is equal for equal shapes only.
std::string key(const GemmShape& s) {
  std::string text;
  const auto add = [&](auto value) { text.append(reinterpret_cast<const char*>(&value), sizeof value); };
  const auto numbers = {s.m, s.n, s.k, s.lda, s.ldb, s.ldc, s.batch, s.stride_a, s.stride_b, s.stride_c};
  for (const int64_t number : numbers) add(number);
  add(s.alpha);
  add(s.beta);
  for (const int choice : {int{s.transpose_a}, int{s.transpose_b}, int{s.bf16_out}}) add(choice);
  add(s.type);
  add(s.epilogue);
  return text;
}

std::string text(const GemmShape& s) {
  return "product " + std::to_string(s.m) + " x " + std::to_string(s.k) + " x " + std::to_string(s.n) +
         (s.transpose_a ? ", a transposed" : "") + (s.transpose_b ? ", b transposed" : "") +
         (s.batch != 1 ? ", batch " + std::to_string(s.batch) : "");
}

// Describes a matrix as it lies in memory.
struct Stored {
  int64_t rows, columns, ld, stride;
};
Stored stored_a(const GemmShape& s) {
  return s.transpose_a ? Stored{s.k, s.m, s.lda, s.stride_a} : Stored{s.m, s.k, s.lda, s.stride_a};
}
Stored stored_b(const GemmShape& s) {
  return s.transpose_b ? Stored{s.n, s.k, s.ldb, s.stride_b} : Stored{s.k, s.n, s.ldb, s.stride_b};
}
Stored stored_c(const GemmShape& s) { return {s.m, s.n, s.ldc, s.stride_c}; }

int64_t elements(const Stored& x, int64_t batch) { return (batch - 1) * x.stride + (x.rows - 1) * x.ld + x.columns; }

// Returns the description of a matrix for the library, which stores matrices by columns: a row of
// the engine is a column for the library.
BlasLtOwner<cublasLtMatrixLayout_t> layout(const Stored& x, cudaDataType type, int64_t batch) {
  cublasLtMatrixLayout_t made = nullptr;
  NACRE_CUDA(
      blaslt().layout_create(&made, type, static_cast<uint64_t>(x.columns), static_cast<uint64_t>(x.rows), x.ld));
  BlasLtOwner<cublasLtMatrixLayout_t> owner(made);
  if (batch > 1) {
    set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(batch));
    set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, x.stride);
  }
  return owner;
}

uint32_t alignment_of(int64_t bytes) {
  if (bytes == 0) return kMostAlignment;
  return static_cast<uint32_t>(
      std::min<uint64_t>(kMostAlignment, uint64_t{1} << std::countr_zero(static_cast<uint64_t>(bytes))));
}
uint32_t alignment_of(const void* pointer) {
  return alignment_of(static_cast<int64_t>(reinterpret_cast<intptr_t>(pointer)));
}

uint32_t alignment_of(const Stored& x, int64_t bytes, int64_t batch) {
  const uint32_t rows = x.rows > 1 ? alignment_of(x.ld * bytes) : kMostAlignment;
  return batch > 1 ? std::min(rows, alignment_of(x.stride * bytes)) : rows;
}

cublasLtEpilogue_t library_epilogue(GemmEpilogue epilogue) {
  switch (epilogue) {
    case GemmEpilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case GemmEpilogue::relu:
      return CUBLASLT_EPILOGUE_RELU;
    case GemmEpilogue::relu_bias:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case GemmEpilogue::none:
      break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

// Sets leading dimensions that are 0 to those of rows without gaps.
void complete(GemmShape& s) {
  NACRE_CHECK(s.m >= 0 && s.n >= 0 && s.k >= 0 && s.batch >= 0, text(s) + ": a size is negative");
  if (s.lda == 0) s.lda = stored_a(s).columns;
  if (s.ldb == 0) s.ldb = stored_b(s).columns;
  if (s.ldc == 0) s.ldc = s.n;
  NACRE_CHECK(s.lda >= stored_a(s).columns && s.ldb >= stored_b(s).columns && s.ldc >= s.n,
              text(s) + ": a leading dimension is shorter than a row");
  NACRE_CHECK(!s.bf16_out || is_bf16(s), text(s) + ": bf16 results need bf16 operands");
  NACRE_CHECK(s.batch <= std::numeric_limits<int32_t>::max(), text(s) + ": too many products in a batch");
  NACRE_CHECK(s.batch <= 1 || s.m * s.n == 0 || s.stride_c >= (s.m - 1) * s.ldc + s.n,
              text(s) + ": results of a batch overlap");
}

// Returns the shape with the number of rows, which differs from batch to batch, rounded up by at
// most an eighth.
GemmShape rounded(GemmShape s) {
  if (s.transpose_a && s.transpose_b) return s;
  int64_t& rows = s.transpose_a ? s.k : s.m;
  const auto step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(rows, 8)))) / 8;
  rows = (rows + step - 1) / step * step;
  return s;
}

}  // namespace

Gemm::~Gemm() {
  try {
    const Current current(context_);
    plans_.clear();
    library_.reset();
  } catch (const std::exception&) {
    // The calls throw if the process ends and the driver is already gone, and with it the device
    // memory of the library.
    static_cast<void>(library_.release());
  }
}

Gemm::Alignment Gemm::stored_alignment(const GemmShape& s) {
  return {alignment_of(stored_a(s), in_bytes(s), s.batch), alignment_of(stored_b(s), in_bytes(s), s.batch),
          alignment_of(stored_c(s), out_bytes(s), s.batch)};
}

int Gemm::prepare(GemmShape shape, int among) {
  const bool tune = among > 1;
  complete(shape);
  const std::lock_guard lock(mutex_);
  const auto known = handles_.find(key(shape));
  Plan* before = known == handles_.end() ? nullptr : &plan_of(known->second);
  if (before != nullptr && (before->tuned || !tune)) {
    ++before->users;
    return known->second;
  }
  const Current current(context_);
  // Callers that already have this handle know the size of its workspace, so the size must not
  // grow.
  const int64_t workspace = before != nullptr ? before->algorithm.workspace : kMostWorkspace;
  auto plan = make(shape);
  plan->users = before != nullptr ? before->users + 1 : 1;
  if (!plan->empty && (tune || !choose_shared(*plan))) choose(*plan, among, workspace);
  const int handle = before != nullptr ? known->second : next_handle_++;
  plans_[handle] = std::move(plan);
  handles_[key(shape)] = handle;
  return handle;
}

void Gemm::release(int handle) {
  const std::lock_guard lock(mutex_);
  Plan& plan = plan_of(handle);
  if (--plan.users > 0 || plan.tuned) return;
  const Current current(context_);
  handles_.erase(key(plan.shape));
  plans_.erase(handle);
}

Gemm::Plan& Gemm::plan_of(int handle) const {
  const auto found = plans_.find(handle);
  NACRE_CHECK(found != plans_.end(), "the product was not prepared");
  return *found->second;
}

bool Gemm::choose_shared(Plan& plan) {
  const GemmShape shape = rounded(plan.shape);
  if (shape.epilogue != GemmEpilogue::none || shape.batch > 1) return false;
  const auto [known, fresh] = choices_.try_emplace(key(shape));
  if (fresh) {
    const auto of_rounded = make(shape);
    const auto found = candidates(*of_rounded, of_rounded->alignment, 1, kMostWorkspace);
    if (!found.empty()) known->second = found.front();
  }
  if (!known->second) return false;
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status = blaslt().check(library_.get(), plan.desc.get(), plan.b.get(), plan.a.get(),
                                               plan.c.get(), plan.c.get(), &known->second->choice, &result);
  if (status != CUBLAS_STATUS_SUCCESS || result.state != CUBLAS_STATUS_SUCCESS) return false;
  if (static_cast<int64_t>(result.workspaceSize) > kMostWorkspace) return false;
  plan.algorithm = {known->second->choice, static_cast<int64_t>(result.workspaceSize)};
  return true;
}

std::unique_ptr<Gemm::Plan> Gemm::make(const GemmShape& shape) {
  auto plan = std::make_unique<Plan>();
  plan->shape = shape;
  plan->empty = shape.m == 0 || shape.n == 0 || shape.k == 0 || shape.batch == 0;
  if (plan->empty) {
    plan->tuned = true;
    return plan;
  }
  if (library_ == nullptr) {
    cublasLtHandle_t made = nullptr;
    NACRE_CUDA(blaslt().create(&made));
    library_.reset(made);
  }
  if (shape.bf16_out && has_bias(shape)) plan->narrow_bias = std::make_unique<Temporary>(allocator_, shape.n * 2);
  plan->alignment = stored_alignment(shape);
  const cublasComputeType_t compute = shape.type == GemmType::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t desc = nullptr;
  NACRE_CUDA(blaslt().desc_create(&desc, compute, CUDA_R_32F));
  plan->desc.reset(desc);
  // The library computes bᵀ · aᵀ, so its first operand is b (gemm.h).
  set(desc, CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(desc, CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, library_epilogue(shape.epilogue));
  if (context_.is_virtual()) {
    set(desc, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, static_cast<int32_t>(context_.info().multiprocessors));
  }
  const cudaDataType in = is_bf16(shape) ? CUDA_R_16BF : CUDA_R_32F;
  plan->a = layout(stored_a(shape), in, shape.batch);
  plan->b = layout(stored_b(shape), in, shape.batch);
  plan->c = layout(stored_c(shape), shape.bf16_out ? CUDA_R_16BF : CUDA_R_32F, shape.batch);
  return plan;
}

std::vector<Gemm::Algorithm> Gemm::candidates(const Plan& plan, const Alignment& alignment, int most,
                                              int64_t workspace) {
  cublasLtMatmulPreference_t preference = nullptr;
  NACRE_CUDA(blaslt().preference_create(&preference));
  const BlasLtOwner<cublasLtMatmulPreference_t> owner(preference);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(workspace));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment[1]);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment[0]);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment[2]);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment[2]);
  std::vector<cublasLtMatmulHeuristicResult_t> results(most);
  int found = 0;
  const cublasStatus_t status =
      blaslt().heuristic(library_.get(), plan.desc.get(), plan.b.get(), plan.a.get(), plan.c.get(), plan.c.get(),
                         preference, most, results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  NACRE_CHECK(status == CUBLAS_STATUS_SUCCESS, text(plan.shape) + ": " + describe(status));
  std::vector<Algorithm> algorithms;
  for (int i = 0; i < found; ++i) {
    const auto& result = results[i];
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    algorithms.push_back({result.algo, static_cast<int64_t>(result.workspaceSize)});
  }
  return algorithms;
}

void Gemm::choose(Plan& plan, int among, int64_t workspace) {
  // The library looks at the address of the bias when it chooses an algorithm, so there must be
  // memory for a bias.
  const Temporary bias(allocator_, has_bias(plan.shape) ? plan.shape.n * 4 : 0);
  const auto ask = [&] {
    if (has_bias(plan.shape) && !plan.own_epilogue) {
      void* there = plan.narrow_bias ? plan.narrow_bias->get() : bias.get();
      set(plan.desc.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, there);
    }
    return candidates(plan, plan.alignment, std::max(1, among), workspace);
  };
  auto found = ask();
  if (found.empty() && plan.shape.epilogue != GemmEpilogue::none && !plan.own_epilogue) {
    plan.own_epilogue = true;
    set(plan.desc.get(), CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
    found = ask();
  }
  NACRE_CHECK(!found.empty(), text(plan.shape) + ": cuBLASLt has no algorithm");
  plan.algorithm = found.front();
  plan.tuned = among > 1;
  if (found.size() > 1) tune(plan, found, bias.get());
}

void Gemm::tune(Plan& plan, const std::vector<Algorithm>& among, const void* bias) {
  const GemmShape& s = plan.shape;
  const int64_t a_bytes = elements(stored_a(s), s.batch) * in_bytes(s);
  const int64_t b_bytes = elements(stored_b(s), s.batch) * in_bytes(s);
  const int64_t c_bytes = elements(stored_c(s), s.batch) * out_bytes(s);
  int64_t workspace_bytes = 0;
  for (const Algorithm& algorithm : among) workspace_bytes = std::max(workspace_bytes, algorithm.workspace);
  try {
    const Temporary a(allocator_, a_bytes);
    const Temporary b(allocator_, b_bytes);
    const Temporary c(allocator_, c_bytes);
    const Temporary workspace(allocator_, workspace_bytes);
    // Operands of these bytes have the value 0.0115, as f32 and as bf16. Zeros would draw less
    // power than other numbers, so that the GPU would run at a higher clock than in training.
    constexpr int kSomeNumber = 0x3c;
    NACRE_CUDA(cudaMemsetAsync(a.get(), kSomeNumber, static_cast<size_t>(a_bytes), context_.stream()));
    NACRE_CUDA(cudaMemsetAsync(b.get(), kSomeNumber, static_cast<size_t>(b_bytes), context_.stream()));
    NACRE_CUDA(cudaMemsetAsync(c.get(), 0, static_cast<size_t>(c_bytes), context_.stream()));
    const GemmArgs args{a.get(), b.get(), c.get(), bias};
    double best = std::numeric_limits<double>::infinity();
    for (const Algorithm& algorithm : among) {
      const double seconds = time(plan, algorithm, args, workspace.get());
      if (seconds >= best) continue;
      best = seconds;
      plan.algorithm = algorithm;
    }
  } catch (const UserError&) {
    // There is no room for operands to time the candidates with, so the library's first choice
    // stays.
    return;
  }
  // Gives the memory of the operands back to the driver. It can be most of the memory of the
  // device, and the arena of the plan needs it next.
  allocator_.trim();
}

// Times a product as a recorded step runs it. If the host launched each run, all short products
// would seem to take as long as their launches.
double Gemm::time(Plan& plan, const Algorithm& algorithm, const GemmArgs& args, void* workspace) {
  constexpr int kRuns = 8;
  // If all runs together take less than this many milliseconds, they are timed again.
  constexpr float kShort = 1;
  const auto destroy = [](cudaEvent_t event) { cudaEventDestroy(event); };
  using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, decltype(destroy)>;
  cudaEvent_t made = nullptr;
  NACRE_CUDA(cudaEventCreate(&made));
  const Event start(made, destroy);
  NACRE_CUDA(cudaEventCreate(&made));
  const Event end(made, destroy);
  // This first run loads the code of the candidate. A candidate that fails is left out.
  if (multiply(plan, algorithm, args, workspace) != CUBLAS_STATUS_SUCCESS)
    return std::numeric_limits<double>::infinity();
  Recording recording(context_);
  for (int i = 0; i < kRuns; ++i) multiply(plan, algorithm, args, workspace);
  const cudaGraphExec_t runs = recording.finish();
  const std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, cudaError_t (*)(cudaGraphExec_t)> recorded(
      runs, cudaGraphExecDestroy);
  float best = std::numeric_limits<float>::infinity();
  for (int again = 0; again < 4; ++again) {
    NACRE_CUDA(cudaEventRecord(start.get(), context_.stream()));
    NACRE_CUDA(cudaGraphLaunch(runs, context_.stream()));
    NACRE_CUDA(cudaEventRecord(end.get(), context_.stream()));
    NACRE_CUDA(cudaEventSynchronize(end.get()));
    float milliseconds = 0;
    NACRE_CUDA(cudaEventElapsedTime(&milliseconds, start.get(), end.get()));
    best = std::min(best, milliseconds);
    if (best > kShort) break;
  }
  return best / 1e3 / kRuns;
}

int64_t Gemm::workspace(int handle) const {
  const std::lock_guard lock(mutex_);
  return plan_of(handle).algorithm.workspace;
}

const void* Gemm::bias_of(const Plan& plan, const void* bias) {
  if (!plan.narrow_bias) return bias;
  FinishProduct work;
  work.c = plan.narrow_bias->get();
  work.bf16 = true;
  work.m = 1;
  work.n = plan.shape.n;
  work.ldc = work.n;
  work.batch = 1;
  work.scale = 0;
  work.bias = static_cast<const float*>(bias);
  NACRE_CUDA(finish_product(work, context_.stream()));
  return work.c;
}

cublasStatus_t Gemm::multiply(Plan& plan, const Algorithm& algorithm, const GemmArgs& args, void* workspace) {
  const GemmShape& s = plan.shape;
  if (has_bias(s) && !plan.own_epilogue)
    set(plan.desc.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias_of(plan, args.bias));
  return blaslt().matmul(library_.get(), plan.desc.get(), &s.alpha, args.b, plan.b.get(), args.a, plan.a.get(), &s.beta,
                         args.add != nullptr ? args.add : args.c, plan.c.get(), args.c, plan.c.get(), &algorithm.choice,
                         workspace, static_cast<size_t>(algorithm.workspace), context_.stream());
}

// Returns the algorithm of the plan. If an operand begins at an address that its kernels cannot
// read from, returns an algorithm for this alignment instead, which is chosen once and needs no
// more workspace.
const Gemm::Algorithm& Gemm::algorithm_for(Plan& plan, const GemmArgs& args) {
  const Alignment there{std::min(plan.alignment[0], alignment_of(args.a)),
                        std::min(plan.alignment[1], alignment_of(args.b)),
                        std::min({plan.alignment[2], alignment_of(args.c), alignment_of(args.add)})};
  if (there == plan.alignment) return plan.algorithm;
  const auto known = plan.for_other_pointers.find(there);
  if (known != plan.for_other_pointers.end()) return known->second;
  const auto found = candidates(plan, there, 1, plan.algorithm.workspace);
  NACRE_CHECK(!found.empty(), text(plan.shape) + ": cuBLASLt has no algorithm for operands at these addresses");
  return plan.for_other_pointers.emplace(there, found.front()).first->second;
}

void Gemm::finish(const Plan& plan, const GemmArgs& args, float scale) {
  const GemmShape& s = plan.shape;
  FinishProduct work;
  work.c = args.c;
  work.bf16 = s.bf16_out;
  work.m = s.m;
  work.n = s.n;
  work.ldc = s.ldc;
  work.batch = s.batch;
  work.stride = s.stride_c;
  work.scale = scale;
  work.bias = has_bias(s) ? static_cast<const float*>(args.bias) : nullptr;
  work.relu = has_relu(s);
  NACRE_CUDA(finish_product(work, context_.stream()));
}

void Gemm::run(int handle, const GemmArgs& args, void* workspace) {
  const std::lock_guard lock(mutex_);
  Plan& plan = plan_of(handle);
  const Current current(context_);
  if (plan.empty) {
    if (args.add != nullptr && args.add != args.c && plan.shape.m > 0) {
      const GemmShape& s = plan.shape;
      NACRE_CUDA(cudaMemcpyAsync(args.c, args.add, static_cast<size_t>(elements(stored_c(s), s.batch) * out_bytes(s)),
                                 cudaMemcpyDeviceToDevice, context_.stream()));
    }
    finish(plan, args, plan.shape.beta);
    return;
  }
  NACRE_CHECK(!has_bias(plan.shape) || args.bias != nullptr, text(plan.shape) + ": no bias");
  NACRE_CHECK(plan.algorithm.workspace == 0 || workspace != nullptr,
              text(plan.shape) + ": the product was given no workspace");
  const cublasStatus_t status = multiply(plan, algorithm_for(plan, args), args, workspace);
  NACRE_CHECK(status == CUBLAS_STATUS_SUCCESS, text(plan.shape) + ": " + describe(status));
  if (plan.own_epilogue) finish(plan, args, 1);
}

}  // namespace nacre::cuda
