// Thread: a CUDA thread as both the compiled kernel and the emulator see it. The kernel is compiled
// on its own at run time, so this header includes nothing.
#pragma once

namespace nacre::emulator {

using Word = __UINT64_TYPE__;

struct Triple {
  unsigned x = 1, y = 1, z = 1;
};

struct Thread;

enum class Access : unsigned char { read, write, atomic };

// Holds the functions of the emulator that a kernel calls. Functions that wait for other threads
// let those threads run, and return when they have arrived.
struct Calls {
  void (*block_barrier)(Thread*);
  // Waits until the threads of `mask` have arrived, as __syncwarp() does.
  void (*warp_barrier)(Thread*, unsigned mask);
  // Notes an access to shared memory. A watched kernel calls this before the access.
  void (*touch)(Thread*, const void* pointer, unsigned bytes, Access access);
  // Returns the value that lane `from` gave. Every thread of `mask` gives a value.
  Word (*exchange)(Thread*, unsigned mask, Word value, int from);
  // Returns a word in which bit i is set if lane i of `mask` gave a true predicate.
  unsigned (*ballot)(Thread*, unsigned mask, bool predicate);
  // Returns a piece of the block's shared memory. Number 0 is the dynamic memory; the static pieces
  // are numbered from 1 on.
  void* (*shared)(Thread*, int number, Word bytes);
  unsigned (*shared_address)(Thread*, const void* pointer);
  // Copies bytes as cp.async does: they arrive when the thread waits for them, not earlier. If
  // there are fewer bytes than `room`, the rest is zero.
  void (*copy_later)(Thread*, unsigned to, const void* from, unsigned room, unsigned bytes);
  void (*end_copies)(Thread*);
  void (*await_copies)(Thread*, int groups_left);
  // These functions compute products as tensor cores do: each thread of the warp, or of four warps,
  // gives its registers.
  void (*warp_product)(Thread*, float* const* sums, const unsigned* a, const unsigned* b);
  void (*warpgroup_product)(Thread*, int columns, float* const* sums, const unsigned* a, Word a_at, Word b_at);
};

// A Thread lies at the top of the thread's stack. kStack is the size and the alignment of the
// stack, so a kernel finds its Thread from any address of its own frame.
struct Thread {
  const Calls* calls;
  const char* shared;  // the shared memory of the block
  Word shared_room;    // number of bytes of that memory, used or not
  Triple index, block, block_size, grid_size;
};

inline constexpr Word kStack = 128UL << 10;
// This many bytes at the top of a stack are for the Thread object and the emulator's own data.
inline constexpr Word kThreadRoom = 512;

inline __attribute__((always_inline)) Thread* self() {
  const auto here = reinterpret_cast<Word>(__builtin_frame_address(0));
  return reinterpret_cast<Thread*>((here | (kStack - 1)) + 1 - kThreadRoom);
}

}  // namespace nacre::emulator
