// ReadQueue: reads pieces of files asynchronously. Only one thread at a time may use an object.
// There are two implementations: one with io_uring, and one with threads that call pread(), for
// systems that do not allow io_uring.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace nacre {

struct FileRead {
  int file = -1;  // file descriptor
  int64_t offset = 0;
  int64_t bytes = 0;
  void* to = nullptr;
  uint64_t tag = 0;  // number of the caller's choice, which comes back with the result
};

struct ReadResult {
  uint64_t tag = 0;
  int64_t bytes = 0;  // bytes that were read, fewer than asked for only at the end of the file
  int error = 0;      // errno of the read; 0 if the read succeeded
};

class ReadQueue {
 public:
  virtual ~ReadQueue() = default;
  virtual std::string name() const = 0;
  // Returns how many reads can be under way at the same time.
  virtual int depth() const = 0;
  // Starts reads. Together with the reads under way there must not be more than depth(). The memory
  // that is read into must stay valid until the results are collected.
  virtual void submit(std::span<const FileRead> reads) = 0;
  // Writes finished reads to `results` and returns their number. Waits for at least one, so reads
  // must be under way.
  virtual size_t collect(std::span<ReadResult> results) = 0;
};

// Returns a queue that uses io_uring, or null if the program was built without liburing or the
// system forbids io_uring.
std::unique_ptr<ReadQueue> make_uring_queue(int depth);
// Returns a queue that uses threads. Throws a RuntimeError if the system refuses threads.
std::unique_ptr<ReadQueue> make_thread_queue(int depth);
// Returns a queue that uses io_uring or, if that does not work here, one that uses threads.
std::unique_ptr<ReadQueue> make_read_queue(int depth);

}  // namespace nacre
