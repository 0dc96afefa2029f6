#include "nacre/data/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/printable.h"
#include "nacre/tensor/array.h"

namespace nacre {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

// The files that are mapped now, for a signal handler to read. If all places are taken, further
// files are not guarded.
struct MappedRange {
  std::atomic<const char*> begin{nullptr};  // null if this place is free
  std::atomic<size_t> bytes{0};
  std::array<char, 512> message{};  // the message if this file is cut short
};
std::array<MappedRange, 512> g_ranges;
std::mutex g_ranges_mutex;  // held by those who change g_ranges

void list_range(const void* begin, size_t bytes, const std::string& path) {
  const std::lock_guard lock(g_ranges_mutex);
  for (MappedRange& range : g_ranges) {
    if (range.begin.load() != nullptr) continue;
    const auto said =
        fmt::format_to_n(range.message.data(), range.message.size() - 1,
                         "nacre: {}: was cut short by another program while it was read\n", printable(path));
    *said.out = '\0';
    range.bytes = bytes;
    range.begin = static_cast<const char*>(begin);
    return;
  }
}

void unlist_range(const void* begin) {
  const std::lock_guard lock(g_ranges_mutex);
  for (MappedRange& range : g_ranges) {
    if (range.begin.load() == begin) range.begin = nullptr;
  }
}

extern "C" void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  const auto* at = static_cast<const char*>(info->si_addr);
  for (const MappedRange& range : g_ranges) {
    const char* begin = range.begin.load();
    if (begin == nullptr || at < begin || at >= begin + range.bytes.load()) continue;
    const char* message = range.message.data();
    if (write(STDERR_FILENO, message, std::strlen(message)) < 0) _exit(1);
    remove_pending_files();
    _exit(1);
  }
  // The address belongs to no mapped file, so the system does what it does without a handler.
  std::signal(signal, SIG_DFL);
}

std::shared_ptr<void> map(const Descriptor& file, int64_t size, const std::string& path) {
  if (size == 0) return nullptr;
  const auto bytes = static_cast<size_t>(size);
  // With NORESERVE, a private writable mapping that is larger than memory is not refused. In
  // practice it is only read.
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.fd, 0);
  if (p == MAP_FAILED && errno == ENOMEM) {
    throw UserError("memory",
                    fmt::format("{} cannot be mapped: there is no address space left for its {}", path,
                                human_bytes(static_cast<double>(size))),
                    "raise ulimit -v, or use fewer --threads");
  }
  if (p == MAP_FAILED) throw RuntimeError(path, std::string("cannot map the file: ") + std::strerror(errno));
  list_range(p, bytes, path);
  return {p, [bytes](void* q) {
            unlist_range(q);
            munmap(q, bytes);
          }};
}

}  // namespace

MappedFile::MappedFile(std::string name, std::shared_ptr<void> memory, int64_t size)
    : name_(std::move(name)),
      memory_(std::move(memory)),
      data_(static_cast<const std::byte*>(memory_.get())),
      size_(size) {}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  // With NONBLOCK, opening a pipe that nobody writes to does not hang. It is refused below.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR) throw UserError(path, "no such file", "check the path");
    throw UserError(path, std::string("cannot open: ") + std::strerror(errno));
  }
  struct stat status {};
  if (fstat(file.fd, &status) != 0) throw UserError(path, std::string("cannot open: ") + std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw UserError(path, "is a folder", "name a file inside it");
  if (!S_ISREG(status.st_mode)) throw UserError(path, "is not a regular file", "write it to a file first");
  const int64_t size = status.st_size;
  return std::shared_ptr<const MappedFile>(new MappedFile(path, map(file, size, path), size));
}

std::shared_ptr<const MappedFile> MappedFile::from_bytes(std::span<const std::byte> bytes, std::string name) {
  const auto size = static_cast<int64_t>(bytes.size());
  std::shared_ptr<void> copy = allocate_bytes(size);
  if (size > 0) std::memcpy(copy.get(), bytes.data(), bytes.size());
  return std::shared_ptr<const MappedFile>(new MappedFile(std::move(name), std::move(copy), size));
}

void guard_mapped_files() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

bool MappedFile::starts_with(std::string_view magic) const {
  return size_ >= static_cast<int64_t>(magic.size()) && std::memcmp(data_, magic.data(), magic.size()) == 0;
}

}  // namespace nacre
