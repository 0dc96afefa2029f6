#include "support/emulator/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "support/emulator/settings.h"

namespace nacre::emulator {
namespace {

constexpr int64_t kSmallest = 512;
constexpr int64_t kPage = 4096;
constexpr int64_t kPoisoned = 1 << 20;  // bytes that are poisoned at each end of a large block
constexpr unsigned char kPoison = 0xff;

std::atomic<int64_t> taken{0};

// Returns the size of the block for a request. There are only eight sizes per power of two, so that
// freed blocks fit later requests.
int64_t block_bytes(int64_t bytes) {
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(bytes, 1))));
  const int64_t step = std::max(power / 8, kSmallest);
  return std::max((bytes + step - 1) / step * step, kSmallest);
}

// Poisons a block of `bytes` bytes, of which `asked` bytes were asked for.
void poison(char* memory, int64_t asked, int64_t bytes) {
  if (bytes <= 2 * kPoisoned) {
    std::memset(memory, kPoison, static_cast<size_t>(bytes));
    return;
  }
  std::memset(memory, kPoison, kPoisoned);
  std::memset(memory + bytes - kPoisoned, kPoison, kPoisoned);
  // A block that is used again may be far larger than what is asked for, so the bytes that
  // check_end() reads are poisoned, too.
  std::memset(memory + asked, kPoison, static_cast<size_t>(std::min(bytes - asked, kPage)));
}

// Checks the poison behind the requested bytes, up to the end of the block, but one page at most.
// Behind the block lies a page that cannot be touched.
void check_end(const char* memory, int64_t asked, int64_t bytes) {
  for (int64_t i = asked; i < std::min(bytes, asked + kPage); ++i) {
    NACRE_CHECK(static_cast<unsigned char>(memory[i]) == kPoison,
                "a kernel or a copy wrote behind a block of " + std::to_string(asked) + " bytes of device memory");
  }
}

// Holds the sizes of blocks by their addresses.
struct Blocks {
  std::mutex mutex;
  std::map<uintptr_t, int64_t> blocks;

  void add(const void* memory, int64_t bytes) {
    const std::lock_guard lock(mutex);
    blocks.emplace(reinterpret_cast<uintptr_t>(memory), bytes);
  }
  void remove(const void* memory) {
    const std::lock_guard lock(mutex);
    blocks.erase(reinterpret_cast<uintptr_t>(memory));
  }
  bool contain(const void* memory, int64_t bytes) {
    const auto at = reinterpret_cast<uintptr_t>(memory);
    const std::lock_guard lock(mutex);
    auto found = blocks.upper_bound(at);
    if (found == blocks.begin()) return false;
    --found;
    return at + static_cast<uintptr_t>(bytes) <= found->first + static_cast<uintptr_t>(found->second);
  }
};
Blocks& pinned() {
  static auto* all = new Blocks;
  return *all;
}
Blocks& given_out() {
  static auto* all = new Blocks;
  return *all;
}

}  // namespace

int64_t Memory::taken_bytes() { return taken; }

Memory::~Memory() {
  for (const auto& [memory, block] : live_) {
    given_out().remove(memory);
    unmap(block);
  }
  for (const auto& [bytes, block] : free_) unmap(block);
}

void Memory::unmap(const Block& block) {
  munmap(block.mapped, static_cast<size_t>(block.map_bytes));
  taken -= block.bytes;
}

void* Memory::allocate(int64_t bytes) {
  NACRE_CHECK(bytes >= 0, "the number of bytes to allocate is negative");
  if (bytes > int64_t{1} << 56) refuse(bytes);
  Settings::get().count(Fault::allocation, human_bytes(static_cast<double>(bytes)) + " wanted");
  const int64_t size = block_bytes(bytes);
  Block block = reuse(size);
  if (block.memory == nullptr) block = take(size);
  if (block.memory == nullptr) {
    trim();
    block = take(size);
  }
  if (block.memory == nullptr) refuse(bytes);
  block.asked = bytes;
  {
    const std::lock_guard lock(mutex_);
    live_.emplace(block.memory, block);
    given_out().add(block.memory, bytes);
    used_ += block.bytes;
    peak_ = std::max(peak_, used_);
  }
  stream_.queue([block](BlockRunner&) { poison(block.memory, block.asked, block.bytes); });
  return block.memory;
}

// Takes the smallest free block that is large enough, unless it is more than a quarter larger than
// the request. Returns an empty block if there is none.
Memory::Block Memory::reuse(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = free_.lower_bound(bytes);
  if (found == free_.end() || found->first > bytes + bytes / 4) return {};
  const Block block = found->second;
  free_.erase(found);
  return block;
}

Memory::Block Memory::take(int64_t bytes) {
  if (taken.fetch_add(bytes) + bytes > Settings::get().memory_bytes()) {
    taken -= bytes;
    return {};
  }
  Block block;
  block.bytes = bytes;
  const int64_t inside = (bytes + kPage - 1) / kPage * kPage;
  block.map_bytes = inside + 2 * kPage;
  void* mapped = mmap(nullptr, static_cast<size_t>(block.map_bytes), PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED ||
      mprotect(static_cast<char*>(mapped) + kPage, static_cast<size_t>(inside), PROT_READ | PROT_WRITE) != 0) {
    taken -= bytes;
    return {};
  }
  block.mapped = static_cast<char*>(mapped);
  // Sizes are multiples of 512, so the block is aligned although it ends where the page ends.
  block.memory = block.mapped + kPage + inside - bytes;
  return block;
}

void Memory::refuse(int64_t bytes) const {
  const auto text = [](auto number) { return human_bytes(static_cast<double>(number)); };
  const int64_t all = Settings::get().memory_bytes();
  throw UserError("device memory",
                  text(bytes) + " are needed, " + text(std::max<int64_t>(all - taken, 0)) + " of " + text(all) +
                      " are free, " + text(used_bytes()) + " are in use by this run",
                  "train a smaller model (--hidden, --layers), end other programs on this GPU, or take a larger one");
}

void Memory::release(void* memory) {
  if (memory == nullptr) return;
  Block block;
  {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(memory);
    NACRE_CHECK(found != live_.end(), "released memory that was not allocated here");
    block = found->second;
    live_.erase(found);
    given_out().remove(memory);
    used_ -= block.bytes;
  }
  // The stream poisons the block in its order: work that was queued before may still use the
  // memory, and later work must not.
  stream_.queue([block](BlockRunner&) {
    check_end(block.memory, block.asked, block.bytes);
    poison(block.memory, block.asked, block.bytes);
  });
  const std::lock_guard lock(mutex_);
  free_.emplace(block.bytes, block);
}

void Memory::trim() {
  std::multimap<int64_t, Block> blocks;
  {
    const std::lock_guard lock(mutex_);
    blocks.swap(free_);
  }
  if (blocks.empty()) return;
  stream_.synchronize();
  for (const auto& [bytes, block] : blocks) unmap(block);
}

int64_t Memory::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_;
}
int64_t Memory::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}
void Memory::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_ = used_;
}

void* allocate_pinned(int64_t bytes) {
  const int64_t inside = (std::max<int64_t>(bytes, 1) + kPage - 1) / kPage * kPage;
  void* memory = mmap(nullptr, static_cast<size_t>(inside), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw UserError("host memory", std::to_string(bytes) + " bytes of page-locked memory are not available",
                    "end other programs or raise the limit of locked memory (ulimit -l)");
  }
  pinned().add(memory, inside);
  return memory;
}

void release_pinned(void* memory) {
  int64_t bytes = 0;
  {
    const std::lock_guard lock(pinned().mutex);
    const auto found = pinned().blocks.find(reinterpret_cast<uintptr_t>(memory));
    NACRE_CHECK(found != pinned().blocks.end(), "released page-locked memory that was not allocated here");
    bytes = found->second;
    pinned().blocks.erase(found);
  }
  munmap(memory, static_cast<size_t>(bytes));
}

bool is_pinned(const void* memory) { return pinned().contain(memory, 1); }

bool is_device_memory(const void* memory, int64_t bytes) { return given_out().contain(memory, bytes); }

}  // namespace nacre::emulator
