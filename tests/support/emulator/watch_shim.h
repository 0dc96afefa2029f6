// Watched kernels tell the emulator of every access of shared memory (docs/dev/emulator.md,
// NACRE_EMULATOR_RACES). They are compiled with -fsanitize=thread, which calls a function of a
// given name before each access. The functions below take the place of those of the thread
// sanitizer. Kernels that are not watched call none of them.
#pragma once

#include "thread.h"

#ifdef NACRE_WATCHED
#define NACRE_UNWATCHED __attribute__((no_sanitize("thread"), noinline))

NACRE_UNWATCHED inline void nacre_touch(const volatile void* p, unsigned bytes, nacre::emulator::Access access) {
  nacre::emulator::Thread* t = nacre::emulator::self();
  if ((unsigned long)((const volatile char*)p - t->shared) >= t->shared_room) return;
  t->calls->touch(t, (const void*)p, bytes, access);
}

#define NACRE_WATCH(name, bytes, access)                                \
  extern "C" NACRE_UNWATCHED __attribute__((used)) void name(void* p) { \
    nacre_touch(p, bytes, nacre::emulator::Access::access);             \
  }
NACRE_WATCH(__tsan_read1, 1, read)
NACRE_WATCH(__tsan_read2, 2, read)
NACRE_WATCH(__tsan_read4, 4, read)
NACRE_WATCH(__tsan_read8, 8, read)
NACRE_WATCH(__tsan_read16, 16, read)
NACRE_WATCH(__tsan_write1, 1, write)
NACRE_WATCH(__tsan_write2, 2, write)
NACRE_WATCH(__tsan_write4, 4, write)
NACRE_WATCH(__tsan_write8, 8, write)
NACRE_WATCH(__tsan_write16, 16, write)
NACRE_WATCH(__tsan_unaligned_read2, 2, read)
NACRE_WATCH(__tsan_unaligned_read4, 4, read)
NACRE_WATCH(__tsan_unaligned_read8, 8, read)
NACRE_WATCH(__tsan_unaligned_read16, 16, read)
NACRE_WATCH(__tsan_unaligned_write2, 2, write)
NACRE_WATCH(__tsan_unaligned_write4, 4, write)
NACRE_WATCH(__tsan_unaligned_write8, 8, write)
NACRE_WATCH(__tsan_unaligned_write16, 16, write)
#undef NACRE_WATCH
extern "C" NACRE_UNWATCHED __attribute__((used)) void __tsan_read_range(void* p, unsigned long bytes) {
  nacre_touch(p, (unsigned)bytes, nacre::emulator::Access::read);
}
extern "C" NACRE_UNWATCHED __attribute__((used)) void __tsan_write_range(void* p, unsigned long bytes) {
  nacre_touch(p, (unsigned)bytes, nacre::emulator::Access::write);
}
extern "C" NACRE_UNWATCHED __attribute__((used)) void __tsan_init() {}
extern "C" NACRE_UNWATCHED __attribute__((used)) void __tsan_func_entry(void*) {}
extern "C" NACRE_UNWATCHED __attribute__((used)) void __tsan_func_exit(void*) {}
#else
#define NACRE_UNWATCHED
inline void nacre_touch(const volatile void*, unsigned, nacre::emulator::Access) {}
#endif
