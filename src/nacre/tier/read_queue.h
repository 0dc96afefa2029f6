// ReadQueue: reads pieces of files asynchronously. One thread uses an object. There are two ways:
// io_uring, and threads that call pread() where the system does not allow io_uring.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace nacre {

struct FileRead {
  int file = -1;  // descriptor
  int64_t offset = 0;
  int64_t bytes = 0;
  void* to = nullptr;
  uint64_t tag = 0;  // comes back with the result
};

struct ReadResult {
  uint64_t tag = 0;
  int64_t bytes = 0;  // bytes that were read, fewer than asked for only at the end of the file
  int error = 0;      // errno; 0: the read succeeded
};

class ReadQueue {
 public:
  virtual ~ReadQueue() = default;
  virtual std::string name() const = 0;
  // Returns how many reads can be under way at the same time.
  virtual int depth() const = 0;
  // Starts reads. With those under way there must not be more than depth(). The memory must stay
  // until the results are collected.
  virtual void submit(std::span<const FileRead> reads) = 0;
  // Writes finished reads to `results` and returns their number. Waits for at least one, so reads
  // must be under way.
  virtual size_t collect(std::span<ReadResult> results) = 0;
};

// Returns null if the program was built without liburing or the system forbids io_uring.
std::unique_ptr<ReadQueue> make_uring_queue(int depth);
// Throws a RuntimeError if the system refuses threads.
std::unique_ptr<ReadQueue> make_thread_queue(int depth);
// Returns the first of the two that works.
std::unique_ptr<ReadQueue> make_read_queue(int depth);

}  // namespace nacre
