// A library for LD_PRELOAD that makes chosen system calls of the program fail.
//   NACRE_FAULT=KIND:N      The N-th call of a kind fails. With KIND:N+ all calls from the N-th on
//                           fail, as on a full disk.
//   NACRE_FAULT_LOG=FILE    FILE gets one line when the N-th call failed, and one line with the
//                           number of calls of each kind when main() returns.
//   NACRE_FAULT_AFTER=TEXT  Calls are counted from the first mkdir() whose path contains TEXT
//                           instead of from the beginning of main().
// The kinds, and the errors they fail with:
//   memory  malloc and related functions: ENOMEM   write   write, pwrite, writev, ftruncate: ENOSPC
//   sync    fsync, fdatasync: EIO                  rename  EIO
//   open    of files to be written: ENOSPC         folder  mkdir: ENOSPC
//   map     mmap of a file: ENOMEM                 thread  pthread_create: EAGAIN
//   read    pread: EIO                             ring    io_uring_queue_init: EPERM
// With NACRE_FAULT_NO_RING, every io_uring_queue_init fails, as in containers that forbid io_uring.
// Calls that the C library makes inside itself (for stdout, stderr and the stacks of threads) are
// neither counted nor changed.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

enum Kind { kMemory, kWrite, kSync, kRename, kOpen, kFolder, kMap, kThread, kRead, kRing, kKinds };
constexpr const char* kNames[kKinds] = {"memory", "write", "sync",   "rename", "open",
                                        "folder", "map",   "thread", "read",   "ring"};

std::atomic<bool> g_counting{false};
std::atomic<long> g_calls[kKinds];
int g_kind = -1;
long g_nth = 0;
bool g_onwards = false;
const char* g_log = nullptr;
const char* g_after = nullptr;
int (*g_main)(int, char**, char**) = nullptr;

void note(const char* line, int length) {
  if (g_log == nullptr) return;
  const long fd = syscall(SYS_openat, AT_FDCWD, g_log, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (fd < 0) return;
  syscall(SYS_write, fd, line, length);
  syscall(SYS_close, fd);
}

bool fails(Kind kind, int error) {
  if (!g_counting.load(std::memory_order_relaxed)) return false;
  const long call = ++g_calls[kind];
  if (kind != g_kind || (g_onwards ? call < g_nth : call != g_nth)) return false;
  if (call == g_nth) {
    char line[64];
    note(line, std::snprintf(line, sizeof line, "failed %s %ld\n", kNames[kind], call));
  }
  errno = error;
  return true;
}

void read_settings() {
  g_log = std::getenv("NACRE_FAULT_LOG");
  g_after = std::getenv("NACRE_FAULT_AFTER");
  const char* text = std::getenv("NACRE_FAULT");
  if (text == nullptr) return;
  const char* colon = std::strchr(text, ':');
  if (colon == nullptr) return;
  for (int k = 0; k < kKinds; ++k) {
    if (std::strncmp(text, kNames[k], static_cast<size_t>(colon - text)) == 0) g_kind = k;
  }
  char* end = nullptr;
  g_nth = std::strtol(colon + 1, &end, 10);
  g_onwards = *end == '+';
}

int counted_main(int argc, char** argv, char** environment) {
  read_settings();
  g_counting = g_after == nullptr;
  const int result = g_main(argc, argv, environment);
  g_counting = false;
  char line[256];
  int length = std::snprintf(line, sizeof line, "calls");
  for (int k = 0; k < kKinds; ++k)
    length += std::snprintf(line + length, sizeof line - static_cast<size_t>(length), " %s=%ld", kNames[k],
                            g_calls[k].load());
  line[length++] = '\n';
  note(line, length);
  return result;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

}  // namespace

extern "C" {

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  g_main = main;
  using Start = int(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  return next<Start>("__libc_start_main")(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

void* malloc(size_t bytes) { return fails(kMemory, ENOMEM) ? nullptr : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) { return fails(kMemory, ENOMEM) ? nullptr : __libc_calloc(count, bytes); }
void* realloc(void* old, size_t bytes) { return fails(kMemory, ENOMEM) ? nullptr : __libc_realloc(old, bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) {
  return fails(kMemory, ENOMEM) ? nullptr : __libc_memalign(alignment, bytes);
}
void* memalign(size_t alignment, size_t bytes) { return aligned_alloc(alignment, bytes); }
int posix_memalign(void** to, size_t alignment, size_t bytes) {
  if (fails(kMemory, ENOMEM)) return ENOMEM;
  *to = __libc_memalign(alignment, bytes);
  return *to == nullptr ? ENOMEM : 0;
}

ssize_t write(int fd, const void* bytes, size_t count) {
  if (fd > 2 && fails(kWrite, ENOSPC)) return -1;
  return syscall(SYS_write, fd, bytes, count);
}
ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  if (fails(kWrite, ENOSPC)) return -1;
  return syscall(SYS_pwrite64, fd, bytes, count, offset);
}
ssize_t pwrite64(int fd, const void* bytes, size_t count, off_t offset) { return pwrite(fd, bytes, count, offset); }
ssize_t pread(int fd, void* bytes, size_t count, off_t offset) {
  if (fails(kRead, EIO)) return -1;
  return syscall(SYS_pread64, fd, bytes, count, offset);
}
ssize_t pread64(int fd, void* bytes, size_t count, off_t offset) { return pread(fd, bytes, count, offset); }
int io_uring_queue_init(unsigned entries, void* ring, unsigned flags) {
  if (std::getenv("NACRE_FAULT_NO_RING") != nullptr || fails(kRing, EPERM)) return -EPERM;
  return next<int(unsigned, void*, unsigned)>("io_uring_queue_init")(entries, ring, flags);
}
ssize_t writev(int fd, const iovec* parts, int count) {
  if (fd > 2 && fails(kWrite, ENOSPC)) return -1;
  return syscall(SYS_writev, fd, parts, count);
}
int ftruncate(int fd, off_t length) noexcept {
  return fails(kWrite, ENOSPC) ? -1 : static_cast<int>(syscall(SYS_ftruncate, fd, length));
}
int ftruncate64(int fd, off_t length) noexcept { return ftruncate(fd, length); }
int fsync(int fd) { return fails(kSync, EIO) ? -1 : static_cast<int>(syscall(SYS_fsync, fd)); }
int fdatasync(int fd) { return fails(kSync, EIO) ? -1 : static_cast<int>(syscall(SYS_fdatasync, fd)); }
int rename(const char* from, const char* to) noexcept {
  return fails(kRename, EIO) ? -1 : static_cast<int>(syscall(SYS_rename, from, to));
}
int mkdir(const char* path, mode_t mode) noexcept {
  if (g_after != nullptr && std::strstr(path, g_after) != nullptr) g_counting = true;
  return fails(kFolder, ENOSPC) ? -1 : static_cast<int>(syscall(SYS_mkdir, path, mode));
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, unsigned) : 0;
  va_end(rest);
  if (writes(flags) && fails(kOpen, ENOSPC)) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, unsigned) : 0;
  va_end(rest);
  return open(path, flags, mode);
}

void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  if (fd >= 0 && fails(kMap, ENOMEM)) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, fd, offset));
}
void* mmap64(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  return mmap(at, bytes, protection, flags, fd, offset);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) noexcept {
  if (fails(kThread, EAGAIN)) return EAGAIN;
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  return next<Create>("pthread_create")(thread, attributes, run, argument);
}

}  // extern "C"
