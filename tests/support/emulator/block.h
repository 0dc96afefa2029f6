// Declares the state of a block of CUDA threads while it runs. Only the files that implement such
// blocks include this header.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/emulator/blocks.h"
#include "support/emulator/races.h"

namespace nacre::emulator {

struct Copy {
  char* to;
  const void* from;
  unsigned room, bytes;
};

// A Fiber is a CUDA thread of the block. It lies at the upper end of its stack.
struct Fiber : Thread {
  Block* owner;
  void* stack_pointer;
  char* stack;  // the lowest address of the stack
  int number;
  bool waits, ended, at_barrier;
  std::vector<Copy> copies;
  std::vector<size_t> groups;  // for each group of copies, the number of copies up to its end
};
static_assert(sizeof(Fiber) <= kThreadRoom);

enum class Meeting : uint8_t { barrier, exchange, ballot, product };

struct Warp {
  unsigned arrived = 0, ended = 0;
  struct Lane {
    Meeting kind;
    unsigned mask;
    Word value;
    int from;
    float* const* sums;
    const unsigned *a, *b;
    Word result;
  };
  std::array<Lane, 32> lanes;
};

// Holds the operands of a product that four warps compute together (wgmma).
struct WarpgroupProduct {
  int arrived = 0;
  struct Part {
    float* const* sums;
    const unsigned* a;
    Word a_at, b_at;
    int columns;
  };
  std::array<Part, 128> parts;
};

class Block {
 public:
  Block();
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  void run(const Grid& grid, void** args, unsigned number, uint64_t order);

  // ---- Threads of the block call the functions of this section.
  void barrier(Fiber& fiber);
  Word meet(Fiber& fiber, const Warp::Lane& gives);
  // Notes an access to shared memory, if races are looked for. Does nothing otherwise.
  void touch(Fiber& fiber, const void* pointer, int64_t bytes, Access access);
  void multiply_warpgroup(Fiber& fiber, const WarpgroupProduct::Part& gives);
  void* shared(Fiber& fiber, int number, Word bytes);
  unsigned shared_address(Fiber& fiber, const void* pointer);
  char* shared_at(unsigned address) { return shared_ + address; }
  bool in_shared(unsigned address, unsigned bytes) const { return int64_t{address} + bytes <= shared_used_; }
  // Stops the whole block with an error, and does not return.
  [[noreturn]] void fail(Fiber& fiber, const std::string& why);
  [[noreturn]] void end(Fiber& fiber);
  void enter() { entry_(args_, nullptr); }

 private:
  Fiber* take_stack();
  void start(int number);
  void resume(Fiber& fiber);
  void wait(Fiber& fiber);
  void touch_factors(Fiber& fiber, const WarpgroupProduct& product);
  bool complete(Warp& warp, int first, int lane);
  void release_barrier();
  void check_shared(const Grid& grid) const;
  void begin_shared(const Grid& grid);

  const Grid* grid_ = nullptr;
  Entry entry_ = nullptr;
  void** args_ = nullptr;
  unsigned number_ = 0;
  std::string error_;
  int live_ = 0, at_barrier_ = 0;
  // These are the fibers by the number of their thread; null if the thread has ended.
  std::vector<Fiber*> fibers_;
  std::vector<Fiber*> free_;
  std::vector<char*> stacks_;
  std::vector<Warp> warps_;
  std::vector<WarpgroupProduct> warpgroups_;
  char* shared_ = nullptr;
  int64_t shared_used_ = 0;
  std::unique_ptr<SharedRaces> races_;  // null if races are not looked for
  std::vector<int64_t> shared_places_;  // places of static shared memory, by number
  void* runner_ = nullptr;              // stack pointer of the host thread that runs the block
  bool stopped_ = false;                // whether fail() stopped the block
};

// multiply_warp() and multiply_four_warps() compute the products of tensor cores by their
// definition: operands lose their low 13 bits, and sums are f32.
void multiply_warp(const std::array<Warp::Lane, 32>& lanes);
// Returns the place of element (row, k) of a factor in shared memory, as a descriptor says: rows
// have 128 bytes, and their words of 16 bytes are exchanged according to the row.
unsigned described_place(Word descriptor, int row, int k);
void multiply_four_warps(const std::array<WarpgroupProduct::Part, 128>& parts, const char* shared);

}  // namespace nacre::emulator
