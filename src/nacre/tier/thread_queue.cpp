#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/tier/read_queue.h"

namespace nacre {
namespace {

// More threads than this do not make reading faster.
constexpr int kMostThreads = 16;

class ThreadQueue : public ReadQueue {
 public:
  explicit ThreadQueue(int depth) : depth_(depth) {
    try {
      for (int i = 0; i < std::min(depth, kMostThreads); ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {
      end();
      throw RuntimeError("threads", std::string("cannot start a thread that reads features: ") + error.what());
    }
  }
  ~ThreadQueue() override { end(); }
  ThreadQueue(const ThreadQueue&) = delete;
  ThreadQueue& operator=(const ThreadQueue&) = delete;

  std::string name() const override { return "threads"; }
  int depth() const override { return depth_; }

  void submit(std::span<const FileRead> reads) override {
    {
      const std::lock_guard lock(mutex_);
      waiting_.insert(waiting_.end(), reads.begin(), reads.end());
    }
    started_.notify_all();
  }

  size_t collect(std::span<ReadResult> results) override {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return !done_.empty(); });
    const size_t count = std::min(results.size(), done_.size());
    std::copy_n(done_.begin(), count, results.begin());
    done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }

 private:
  static ReadResult read_whole(const FileRead& read) {
    ReadResult result{read.tag, 0, 0};
    while (result.bytes < read.bytes) {
      const ssize_t got = pread(read.file, static_cast<char*>(read.to) + result.bytes,
                                static_cast<size_t>(read.bytes - result.bytes), read.offset + result.bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) result.error = errno;
      if (got <= 0) break;
      result.bytes += got;
    }
    return result;
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      started_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (ending_) return;
      const FileRead read = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      const ReadResult result = read_whole(read);
      lock.lock();
      done_.push_back(result);
      finished_.notify_one();
    }
  }

  void end() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    started_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  int depth_;
  std::mutex mutex_;  // guards all members below except the threads
  std::condition_variable started_, finished_;
  std::deque<FileRead> waiting_;
  std::deque<ReadResult> done_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<ReadQueue> make_thread_queue(int depth) { return std::make_unique<ThreadQueue>(depth); }

}  // namespace nacre
