#include "nacre/engine/measure.h"

#include <algorithm>

namespace nacre {
namespace {

// A kernel is run again until its runs have taken this many seconds, because one short run says
// little.
constexpr double kEnough = 0.02;
constexpr int kMaxRuns = 4;
constexpr size_t kExecutors = 2;

// Returns the kernel that runs before this one in a step; the first kernel follows the last one of
// the step before.
size_t step_predecessor(const Plan& plan, size_t kernel) {
  size_t k = kernel;
  do {
    k = (k == 0 ? plan.kernels.size() : k) - 1;
  } while (k != kernel && plan.kernels[k].once);
  return k;
}

}  // namespace

Executor* KernelTimer::load(const Plan& plan) {
  for (const auto& known : executors_) {
    if (known->plan().options == plan.options && known->plan().dfg == plan.dfg) return known.get();
  }
  if (executors_.size() >= kExecutors) executors_.erase(executors_.begin());
  auto executor = std::make_unique<Executor>(plan, blocks_, backend_);
  const int64_t bytes = executor->arena_bytes();
  if (bytes > arena_bytes_) {
    executors_.clear();
    arena_.reset();
    arena_bytes_ = 0;
    const int64_t room = std::min(memory_, backend_->available_bytes() / 10 * 9);
    if (bytes + executor->constant_bytes(constants_) > room) return nullptr;
    arena_ = backend_->allocate(bytes);
    arena_bytes_ = bytes;
    // Pages that were never written all map to one page of zeros, so their reads would be timed as
    // if they were in cache.
    backend_->clear(arena_.get(), bytes);
  }
  bind_(*executor);
  executor->allocate(arena_, constants_);
  executor->prepare();
  executors_.push_back(std::move(executor));
  return executors_.back().get();
}

double KernelTimer::operator()(const Plan& plan, size_t kernel) {
  Executor* executor = load(plan);
  if (executor == nullptr) return -1;
  // A kernel that runs after itself would find its own operands and results in cache. So the kernel
  // before it in the step is run first, which leaves the cache as it is in a step.
  const size_t before = step_predecessor(plan, kernel);
  if (backend_->needs_warm_up()) executor->time_kernel(kernel);
  double best = -1, spent = 0;
  for (int run = 0; run < kMaxRuns && spent < kEnough; ++run) {
    spent += executor->time_kernel(before);
    const double seconds = executor->time_kernel(kernel);
    best = run == 0 ? seconds : std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

double KernelTimer::step(const Plan& plan) {
  Executor* executor = load(plan);
  if (executor == nullptr) return -1;
  double seconds = 0;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    if (!plan.kernels[k].once) seconds += executor->time_kernel(k);
  }
  return seconds;
}

}  // namespace nacre
