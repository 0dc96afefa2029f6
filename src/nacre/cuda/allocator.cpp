#include "nacre/cuda/allocator.h"

#include <algorithm>
#include <bit>

#include "nacre/base/log.h"

namespace nacre::cuda {
namespace {

constexpr int64_t kSmallest = 512;
constexpr int64_t kPage = int64_t{2} << 20;  // large blocks of the driver are multiples of this

// Small blocks have one of eight sizes for each power of two, so that many requests share few
// sizes. Large blocks are whole pages.
int64_t block_bytes(int64_t bytes) {
  if (bytes >= kPage / 2) return (bytes + kPage - 1) / kPage * kPage;
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(bytes, 1))));
  const int64_t step = std::max(power / 8, kSmallest);
  return std::max((bytes + step - 1) / step * step, kSmallest);
}

}  // namespace

Allocator::~Allocator() {
  try {
    trim();
    const Current current(context_);
    for (const auto& [memory, bytes] : live_) cudaFree(memory);
  } catch (const std::exception&) {
    // The calls throw if the process ends and the driver is already gone. The memory is gone with
    // the driver.
    return;
  }
}

void* Allocator::allocate(int64_t bytes) {
  NACRE_CHECK(bytes >= 0, "the number of bytes to allocate is negative");
  // No device has this much memory. Larger numbers are refused here, because sums of them could
  // overflow.
  if (bytes > int64_t{1} << 56) refuse(bytes);
  const int64_t block = block_bytes(bytes);
  const std::lock_guard lock(mutex_);
  void* memory = reuse(block);
  if (memory == nullptr) memory = take(block);
  if (memory == nullptr) refuse(bytes);
  return memory;
}

// Returns the smallest free block that is large enough; null if there is none, or if it is larger
// than `block` by more than a quarter.
void* Allocator::reuse(int64_t block) {
  const auto found = free_.lower_bound(block);
  if (found == free_.end() || found->first > block + block / 4) return nullptr;
  const auto [size, memory] = *found;
  live_.emplace(memory, size);
  free_.erase(found);
  used_ += size;
  peak_ = std::max(peak_, used_);
  return memory;
}

void* Allocator::take(int64_t block) {
  void* memory = nullptr;
  const auto ask = [&] {
    const Current current(context_);
    const cudaError_t code = cudaMalloc(&memory, static_cast<size_t>(block));
    if (code == cudaSuccess) return true;
    cudaGetLastError();
    NACRE_CHECK(code == cudaErrorMemoryAllocation, "cudaMalloc: " + describe(code));
    return false;
  };
  if (!ask()) {
    trim();
    if (!ask()) return nullptr;
  }
  live_.emplace(memory, block);
  used_ += block;
  peak_ = std::max(peak_, used_);
  return memory;
}

void Allocator::refuse(int64_t bytes) const {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  {
    const Current current(context_);
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) cudaGetLastError();
  }
  const auto text = [](auto number) { return human_bytes(static_cast<double>(number)); };
  throw UserError("device memory",
                  text(bytes) + " are needed, " + text(free_bytes) + " of " + text(total_bytes) + " are free, " +
                      text(used_) + " are in use by this run",
                  "train a smaller model (--hidden, --layers), end other programs on this GPU, or take a larger one");
}

void Allocator::release(void* memory) {
  if (memory == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(memory);
  NACRE_CHECK(found != live_.end(), "released memory that was not allocated here");
  used_ -= found->second;
  free_.emplace(found->second, memory);
  live_.erase(found);
}

void Allocator::trim() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return;
  const Current current(context_);
  cudaStreamSynchronize(context_.copy_stream());
  // Errors of earlier work are ignored here, because those who wait for that work report them.
  cudaStreamSynchronize(context_.stream());
  for (const auto& [bytes, memory] : free_) cudaFree(memory);
  cudaGetLastError();
  free_.clear();
}

}  // namespace nacre::cuda
