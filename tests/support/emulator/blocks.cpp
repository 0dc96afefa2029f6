#include "support/emulator/blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "nacre/base/error.h"
#include "support/emulator/block.h"
#include "support/emulator/settings.h"

#ifndef __x86_64__
#error "the emulated device switches stacks by instructions of x86-64"
#endif

// Switches from one stack to another: saves the registers that a called function must keep and the
// stack pointer in *from, and continues where `to` was saved.
extern "C" void nacre_emulator_switch(void** from, void* to);
asm(R"(
.text
.globl nacre_emulator_switch
.hidden nacre_emulator_switch
.type nacre_emulator_switch, @function
nacre_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size nacre_emulator_switch, .-nacre_emulator_switch
)");

namespace nacre::emulator {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kSharedRoom = 260 << 10;
// There are this many bytes of poison between pieces of shared memory. They are checked when the
// block has ended.
constexpr int64_t kSharedGap = 128;
// This byte fills memory without a value: every floating type reads it as NaN, and as an index it
// is far out of range.
constexpr int kPoison = 0xff;

thread_local const char* running = nullptr;

Fiber& fiber_of(Thread* thread) { return *static_cast<Fiber*>(thread); }

const Calls& calls() {
  static const Calls table = {
      .block_barrier = [](Thread* t) { fiber_of(t).owner->barrier(fiber_of(t)); },
      .warp_barrier =
          [](Thread* t, unsigned mask) {
            fiber_of(t).owner->meet(fiber_of(t), {Meeting::barrier, mask, 0, 0, nullptr, nullptr, nullptr, 0});
          },
      .touch = [](Thread* t, const void* pointer, unsigned bytes,
                  Access access) { fiber_of(t).owner->touch(fiber_of(t), pointer, bytes, access); },
      .exchange =
          [](Thread* t, unsigned mask, Word value, int from) {
            return fiber_of(t).owner->meet(fiber_of(t),
                                           {Meeting::exchange, mask, value, from, nullptr, nullptr, nullptr, 0});
          },
      .ballot =
          [](Thread* t, unsigned mask, bool predicate) {
            return static_cast<unsigned>(fiber_of(t).owner->meet(
                fiber_of(t), {Meeting::ballot, mask, predicate ? 1ULL : 0ULL, 0, nullptr, nullptr, nullptr, 0}));
          },
      .shared = [](Thread* t, int number, Word bytes) { return fiber_of(t).owner->shared(fiber_of(t), number, bytes); },
      .shared_address = [](Thread* t, const void* p) { return fiber_of(t).owner->shared_address(fiber_of(t), p); },
      .copy_later =
          [](Thread* t, unsigned to, const void* from, unsigned room, unsigned bytes) {
            Fiber& f = fiber_of(t);
            if (!f.owner->in_shared(to, room)) f.owner->fail(f, "a copy goes outside of shared memory");
            if (to % room != 0 || (bytes > 0 && reinterpret_cast<uintptr_t>(from) % room != 0)) {
              f.owner->fail(f, "a copy of " + std::to_string(room) + " bytes is not aligned to them");
            }
            // The bytes may arrive at any time from now on, so the write is noted now.
            f.owner->touch(f, f.owner->shared_at(to), room, Access::write);
            f.copies.push_back({f.owner->shared_at(to), from, room, bytes});
          },
      .end_copies = [](Thread* t) { fiber_of(t).groups.push_back(fiber_of(t).copies.size()); },
      .await_copies =
          [](Thread* t, int left) {
            Fiber& f = fiber_of(t);
            if (f.groups.size() <= static_cast<size_t>(left)) return;
            const size_t done = f.groups.size() - static_cast<size_t>(left), end = f.groups[done - 1];
            for (size_t i = 0; i < end; ++i) {
              const Copy& c = f.copies[i];
              f.owner->touch(f, c.to, c.room, Access::write);
              if (c.bytes > 0) std::memcpy(c.to, c.from, c.bytes);
              std::memset(c.to + c.bytes, 0, c.room - c.bytes);
            }
            f.copies.erase(f.copies.begin(), f.copies.begin() + static_cast<int64_t>(end));
            f.groups.erase(f.groups.begin(), f.groups.begin() + static_cast<int64_t>(done));
            for (size_t& at : f.groups) at -= end;
          },
      .warp_product =
          [](Thread* t, float* const* sums, const unsigned* a, const unsigned* b) {
            fiber_of(t).owner->meet(fiber_of(t), {Meeting::product, 0xffffffffU, 0, 0, sums, a, b, 0});
          },
      .warpgroup_product =
          [](Thread* t, int columns, float* const* sums, const unsigned* a, Word a_at, Word b_at) {
            fiber_of(t).owner->multiply_warpgroup(fiber_of(t), {sums, a, a_at, b_at, columns});
          },
  };
  return table;
}

[[noreturn]] void run_thread() {
  Fiber& fiber = fiber_of(self());
  fiber.owner->enter();
  fiber.owner->end(fiber);
}

// Returns mapped memory that lies between two pages that must not be touched.
char* map_guarded(int64_t bytes) {
  void* memory = mmap(nullptr, static_cast<size_t>(bytes + 2 * kPage), PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  NACRE_CHECK(memory != MAP_FAILED, "no memory for the emulated device");
  char* inside = static_cast<char*>(memory) + kPage;
  NACRE_CHECK(mprotect(inside, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE) == 0,
              "no memory for the emulated device");
  return inside;
}

}  // namespace

const char* kernel_running() { return running; }

Block::Block() : shared_(map_guarded(kSharedRoom)) {
  if (Settings::get().finds_races()) races_ = std::make_unique<SharedRaces>(kSharedRoom);
}

Block::~Block() {
  for (char* stack : stacks_) {
    reinterpret_cast<Fiber*>(stack + kStack - kThreadRoom)->~Fiber();
    munmap(stack, kStack);
  }
  munmap(shared_ - kPage, kSharedRoom + 2 * kPage);
}

Fiber* Block::take_stack() {
  if (free_.empty()) {
    // The size of a stack is also its alignment, so this maps twice the size and keeps the aligned
    // half.
    void* both = mmap(nullptr, 2 * kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    NACRE_CHECK(both != MAP_FAILED, "no stack for a thread of the emulated device");
    auto* first = static_cast<char*>(both);
    const Word before = (kStack - reinterpret_cast<uintptr_t>(both) % kStack) % kStack;
    char* stack = first + before;
    if (before > 0) munmap(first, before);
    munmap(stack + kStack, kStack - before);
    mprotect(stack, kPage, PROT_NONE);
    stacks_.push_back(stack);
    auto* fiber = new (stack + kStack - kThreadRoom) Fiber;
    fiber->stack = stack;
    free_.push_back(fiber);
  }
  Fiber* fiber = free_.back();
  free_.pop_back();
  return fiber;
}

void Block::start(int number) {
  Fiber& fiber = *take_stack();
  fiber.calls = &calls();
  fiber.shared = shared_;
  fiber.shared_room = kSharedRoom;
  fiber.index = {static_cast<unsigned>(number), 0, 0};
  fiber.block = {number_, 0, 0};
  fiber.block_size = {grid_->threads, 1, 1};
  fiber.grid_size = {grid_->blocks, 1, 1};
  fiber.owner = this;
  fiber.number = number;
  fiber.waits = fiber.ended = fiber.at_barrier = false;
  fiber.copies.clear();
  fiber.groups.clear();
  // The stack looks as if a function was about to return to run_thread(), with six registers saved
  // below.
  auto** top = reinterpret_cast<void**>(fiber.stack + kStack - kThreadRoom) - 1;
  *--top = reinterpret_cast<void*>(&run_thread);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  fiber.stack_pointer = top;
  fibers_[static_cast<size_t>(number)] = &fiber;
  resume(fiber);
}

void Block::resume(Fiber& fiber) {
  nacre_emulator_switch(&runner_, fiber.stack_pointer);
  if (!fiber.ended || stopped_) return;
  fibers_[static_cast<size_t>(fiber.number)] = nullptr;
  free_.push_back(&fiber);
}

void Block::wait(Fiber& fiber) {
  fiber.waits = true;
  nacre_emulator_switch(&fiber.stack_pointer, runner_);
}

void Block::end(Fiber& fiber) {
  fiber.ended = true;
  --live_;
  if (at_barrier_ > 0 && at_barrier_ == live_) release_barrier();
  Warp& warp = warps_[static_cast<size_t>(fiber.number / 32)];
  warp.ended |= 1U << (fiber.number % 32);
  for (int lane = 0; lane < 32; ++lane) {
    if ((warp.arrived >> lane & 1U) != 0) complete(warp, fiber.number / 32 * 32, lane);
  }
  nacre_emulator_switch(&fiber.stack_pointer, runner_);
  __builtin_unreachable();
}

void Block::fail(Fiber& fiber, const std::string& why) {
  error_ = "thread " + std::to_string(fiber.number) + " of block " + std::to_string(number_) + ": " + why;
  stopped_ = true;
  nacre_emulator_switch(&fiber.stack_pointer, runner_);
  __builtin_unreachable();
}

void Block::release_barrier() {
  at_barrier_ = 0;
  if (races_ != nullptr) races_->pass_barrier();
  for (Fiber* fiber : fibers_) {
    if (fiber == nullptr || !fiber->at_barrier) continue;
    fiber->at_barrier = fiber->waits = false;
  }
}

void Block::barrier(Fiber& fiber) {
  if (++at_barrier_ == live_) {
    release_barrier();
    return;
  }
  fiber.at_barrier = true;
  wait(fiber);
}

Word Block::meet(Fiber& fiber, const Warp::Lane& gives) {
  Warp& warp = warps_[static_cast<size_t>(fiber.number / 32)];
  const int lane = fiber.number % 32;
  if ((gives.mask >> lane & 1U) == 0) fail(fiber, "a call for threads of a mask comes from a thread that is not in it");
  warp.lanes[static_cast<size_t>(lane)] = gives;
  warp.arrived |= 1U << lane;
  if (!complete(warp, fiber.number / 32 * 32, lane)) wait(fiber);
  return warp.lanes[static_cast<size_t>(lane)].result;
}

// If all threads that `lane` waits for have arrived, gives each of them its result, lets them
// continue, and returns true. Returns false otherwise.
bool Block::complete(Warp& warp, int first, int lane) {
  const Warp::Lane gives = warp.lanes[static_cast<size_t>(lane)];
  const unsigned mask = gives.mask & ~warp.ended;
  if ((warp.arrived & mask) != mask) return false;
  unsigned votes = 0;
  for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
    const int i = __builtin_ctz(rest);
    const Warp::Lane& other = warp.lanes[static_cast<size_t>(i)];
    if (other.mask != gives.mask || other.kind != gives.kind) return false;
    votes |= static_cast<unsigned>(other.value & 1U) << i;
  }
  if (gives.kind == Meeting::product) multiply_warp(warp.lanes);
  if (gives.kind == Meeting::barrier && races_ != nullptr) races_->meet(first, mask);
  for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<size_t>(__builtin_ctz(rest));
    Warp::Lane& other = warp.lanes[i];
    if (other.kind == Meeting::ballot) {
      other.result = votes;
    } else {
      const bool given = other.from >= 0 && other.from < 32 && (mask >> other.from & 1U) != 0;
      other.result = given ? warp.lanes[static_cast<size_t>(other.from)].value : ~0ULL;
    }
    if (Fiber* fiber = fibers_[static_cast<size_t>(first) + i]; fiber != nullptr) fiber->waits = false;
  }
  warp.arrived &= ~mask;
  return true;
}

void Block::touch(Fiber& fiber, const void* pointer, int64_t bytes, Access access) {
  if (races_ == nullptr) return;
  const std::string race = races_->touch(fiber.number, static_cast<const char*>(pointer) - shared_, bytes, access);
  if (!race.empty()) fail(fiber, race);
}

// Notes that the four warps read the factors of their product from shared memory. The last thread
// that has arrived counts as the reader.
void Block::touch_factors(Fiber& fiber, const WarpgroupProduct& product) {
  if (races_ == nullptr) return;
  const WarpgroupProduct::Part& first = product.parts[0];
  const auto rows = [&](Word at, int count) {
    for (int row = 0; row < count; ++row) {
      for (int k = 0; k < 8; k += 4) touch(fiber, shared_ + described_place(at, row, k), 16, Access::read);
    }
  };
  rows(first.b_at, first.columns);
  if (first.a == nullptr) rows(first.a_at, 64);
}

void Block::multiply_warpgroup(Fiber& fiber, const WarpgroupProduct::Part& gives) {
  const int group = fiber.number / 128;
  WarpgroupProduct& product = warpgroups_[static_cast<size_t>(group)];
  product.parts[static_cast<size_t>(fiber.number % 128)] = gives;
  if (++product.arrived < 128) {
    wait(fiber);
    return;
  }
  product.arrived = 0;
  touch_factors(fiber, product);
  multiply_four_warps(product.parts, shared_);
  for (int i = group * 128; i < group * 128 + 128; ++i) {
    if (Fiber* other = fibers_[static_cast<size_t>(i)]; other != nullptr) other->waits = false;
  }
}

void Block::begin_shared(const Grid& grid) {
  shared_used_ = (grid.shared_bytes + kSharedGap - 1) / kSharedGap * kSharedGap + kSharedGap;
  std::memset(shared_, kPoison, static_cast<size_t>(shared_used_));
  shared_places_.clear();
}

// Checks that the poison between the pieces of shared memory is unchanged.
void Block::check_shared(const Grid& grid) const {
  for (int64_t i = grid.shared_bytes; i < (grid.shared_bytes + kSharedGap - 1) / kSharedGap * kSharedGap + kSharedGap;
       ++i) {
    NACRE_CHECK(
        static_cast<unsigned char>(shared_[i]) == kPoison,
        grid.name + " writes behind its " + std::to_string(grid.shared_bytes) + " bytes of dynamic shared memory");
  }
}

void* Block::shared(Fiber& fiber, int number, Word bytes) {
  if (number == 0) return shared_;
  const auto at = static_cast<size_t>(number);
  if (shared_places_.size() <= at) shared_places_.resize(at + 1, -1);
  if (shared_places_[at] < 0) {
    shared_places_[at] = shared_used_;
    const int64_t room = (static_cast<int64_t>(bytes) + kSharedGap - 1) / kSharedGap * kSharedGap + kSharedGap;
    if (shared_used_ + room > kSharedRoom) fail(fiber, "more shared memory than a block can have");
    std::memset(shared_ + shared_used_, kPoison, static_cast<size_t>(room));
    shared_used_ += room;
  }
  return shared_ + shared_places_[at];
}

unsigned Block::shared_address(Fiber& fiber, const void* pointer) {
  const auto at = static_cast<const char*>(pointer) - shared_;
  if (at < 0 || at >= kSharedRoom) fail(fiber, "the address of something that is not in shared memory");
  return static_cast<unsigned>(at);
}

void Block::run(const Grid& grid, void** args, unsigned number, uint64_t order) {
  grid_ = &grid;
  entry_ = grid.entry;
  args_ = args;
  number_ = number;
  error_.clear();
  stopped_ = false;
  live_ = static_cast<int>(grid.threads);
  at_barrier_ = 0;
  fibers_.assign(grid.threads, nullptr);
  warps_.assign((grid.threads + 31) / 32, Warp{});
  if (grid.threads % 32 != 0) warps_.back().ended = ~0U << (grid.threads % 32);
  warpgroups_.resize((grid.threads + 127) / 128);
  for (WarpgroupProduct& product : warpgroups_) product.arrived = 0;
  begin_shared(grid);
  if (races_ != nullptr) races_->begin_block(live_);

  const int threads = live_;
  // Kernels must give right results in any order of threads, so each block runs them in another
  // one.
  const auto thread_at = [&](int i) {
    const int turned = static_cast<int>((static_cast<uint64_t>(i) + (order >> 1)) % static_cast<uint64_t>(threads));
    return (order & 1U) != 0 ? threads - 1 - turned : turned;
  };
  for (int i = 0; i < threads && !stopped_; ++i) start(thread_at(i));
  while (live_ > 0 && !stopped_) {
    bool moved = false;
    for (int i = 0; i < threads && !stopped_; ++i) {
      Fiber* fiber = fibers_[static_cast<size_t>(thread_at(i))];
      if (fiber == nullptr || fiber->waits) continue;
      resume(*fiber);
      moved = true;
    }
    if (moved) continue;
    error_ = std::to_string(live_) + " threads of block " + std::to_string(number) +
             " wait for threads that have ended or wait elsewhere";
    stopped_ = true;
  }
  if (stopped_) {
    free_.clear();
    for (char* stack : stacks_) free_.push_back(reinterpret_cast<Fiber*>(stack + kStack - kThreadRoom));
    throw InternalError(__FILE__, __LINE__, grid.name + " on the emulated device: " + error_);
  }
  check_shared(grid);
}

BlockRunner::BlockRunner() : block_(std::make_unique<Block>()) {}
BlockRunner::~BlockRunner() = default;

void BlockRunner::run(const Grid& grid, void** args) {
  NACRE_CHECK(grid.threads >= 1 && grid.threads <= 1024,
              "launch of " + grid.name + ": " + std::to_string(grid.threads) + " threads in a block");
  const uint64_t order = Settings::get().order();
  struct Named {
    explicit Named(const char* name) { running = name; }
    ~Named() { running = nullptr; }
  } const named(grid.name.c_str());
  for (unsigned i = 0; i < grid.blocks; ++i) {
    const unsigned turned = static_cast<unsigned>((i + (order >> 33)) % grid.blocks);
    block_->run(grid, args, (order & 2U) != 0 ? grid.blocks - 1 - turned : turned,
                order == 0 ? 0 : order * (2 * turned + 1) >> 7);
  }
}

}  // namespace nacre::emulator
