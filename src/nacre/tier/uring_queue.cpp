#include "nacre/tier/read_queue.h"

#ifdef NACRE_HAS_URING
#include <liburing.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "nacre/base/error.h"
#endif

namespace nacre {

#ifdef NACRE_HAS_URING
namespace {

class UringQueue : public ReadQueue {
 public:
  explicit UringQueue(int depth) : depth_(depth), reads_(static_cast<size_t>(depth)) {
    for (int i = depth; i-- > 0;) free_.push_back(i);
    works_ = io_uring_queue_init(static_cast<unsigned>(depth), &ring_, 0) == 0;
  }
  ~UringQueue() override {
    if (works_) io_uring_queue_exit(&ring_);
  }
  UringQueue(const UringQueue&) = delete;
  UringQueue& operator=(const UringQueue&) = delete;

  bool works() const { return works_; }
  std::string name() const override { return "io_uring"; }
  int depth() const override { return depth_; }

  void submit(std::span<const FileRead> reads) override {
    for (const FileRead& read : reads) {
      NACRE_CHECK(!free_.empty(), "too many reads are under way");
      const int place = free_.back();
      free_.pop_back();
      reads_[static_cast<size_t>(place)] = {read, 0};
      prepare(place);
    }
    flush();
  }

  size_t collect(std::span<ReadResult> results) override {
    size_t count = 0;
    while (count == 0) {
      io_uring_cqe* done = nullptr;
      const int waited = io_uring_wait_cqe(&ring_, &done);
      if (waited == -EINTR) continue;
      if (waited < 0) throw RuntimeError("io_uring", std::string("cannot wait for reads: ") + std::strerror(-waited));
      bool again = false;
      do {
        const auto place = static_cast<int>(io_uring_cqe_get_data64(done));
        const int got = done->res;
        io_uring_cqe_seen(&ring_, done);
        if (goes_on(place, got)) {
          prepare(place);
          again = true;
        } else {
          const Under& read = reads_[static_cast<size_t>(place)];
          results[count++] = {read.read.tag, read.done, got < 0 ? -got : 0};
          free_.push_back(place);
        }
      } while (count < results.size() && io_uring_peek_cqe(&ring_, &done) == 0);
      if (again) flush();
    }
    return count;
  }

 private:
  struct Under {
    FileRead read;
    int64_t done = 0;
  };

  // Returns whether the rest of a read must be asked for: the system may read less than it was
  // asked for, also before the end of a file.
  bool goes_on(int place, int got) {
    Under& u = reads_[static_cast<size_t>(place)];
    if (got == -EINTR || got == -EAGAIN) return true;
    if (got <= 0) return false;
    u.done += got;
    return u.done < u.read.bytes;
  }

  void prepare(int place) {
    const Under& u = reads_[static_cast<size_t>(place)];
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    NACRE_CHECK(entry != nullptr, "the queue of reads is full");
    io_uring_prep_read(entry, u.read.file, static_cast<char*>(u.read.to) + u.done,
                       static_cast<unsigned>(u.read.bytes - u.done), static_cast<uint64_t>(u.read.offset + u.done));
    io_uring_sqe_set_data64(entry, static_cast<uint64_t>(place));
  }

  void flush() {
    int submitted = -EINTR;
    while (submitted == -EINTR || submitted == -EAGAIN || submitted == -EBUSY) submitted = io_uring_submit(&ring_);
    if (submitted < 0) throw RuntimeError("io_uring", std::string("cannot start reads: ") + std::strerror(-submitted));
  }

  int depth_;
  io_uring ring_{};
  bool works_ = false;
  std::vector<Under> reads_;
  std::vector<int> free_;
};

}  // namespace

std::unique_ptr<ReadQueue> make_uring_queue(int depth) {
  auto queue = std::make_unique<UringQueue>(depth);
  if (!queue->works()) return nullptr;
  return queue;
}
#else
std::unique_ptr<ReadQueue> make_uring_queue(int /*depth*/) { return nullptr; }
#endif

std::unique_ptr<ReadQueue> make_read_queue(int depth) {
  auto queue = make_uring_queue(depth);
  return queue ? std::move(queue) : make_thread_queue(depth);
}

}  // namespace nacre
