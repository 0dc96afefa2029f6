// Makes files of rows, and queues that fail or are slow, for the tests of this room.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "nacre/tier/read_queue.h"
#include "nacre/tier/row_layout.h"
#include "support/rng.h"

namespace nacre::test {

// A file with random bytes and the rows of a table among them. It is removed at the end.
class FileOfRows {
 public:
  FileOfRows(uint64_t seed, const RowLayout& layout) : layout_(layout) {
    static int count = 0;
    path_ = (std::filesystem::current_path() / ("rows_" + std::to_string(getpid()) + "_" + std::to_string(count++)))
                .string();
    bytes_.resize(static_cast<size_t>(layout.begin(layout.rows)));
    Rng rng(seed);
    for (size_t i = 0; i < bytes_.size(); i += 8) {
      const double word = rng.uniform();
      std::memcpy(bytes_.data() + i, &word, std::min<size_t>(8, bytes_.size() - i));
    }
    std::ofstream(path_, std::ios::binary).write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
  }
  ~FileOfRows() { std::filesystem::remove(path_); }
  FileOfRows(const FileOfRows&) = delete;
  FileOfRows& operator=(const FileOfRows&) = delete;

  const std::string& path() const { return path_; }
  const RowLayout& layout() const { return layout_; }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  const char* row(int64_t row) const { return bytes_.data() + layout_.begin(row); }

 private:
  RowLayout layout_;
  std::string path_;
  std::vector<char> bytes_;
};

inline std::unique_ptr<ReadQueue> make_queue(const std::string& name, int depth) {
  return name == "threads" ? make_thread_queue(depth) : make_uring_queue(depth);
}

// A queue that changes the results of another one.
class FaultyQueue : public ReadQueue {
 public:
  using Change = std::function<void(int64_t number, ReadResult& result)>;
  FaultyQueue(std::unique_ptr<ReadQueue> queue, Change change) : queue_(std::move(queue)), change_(std::move(change)) {}
  std::string name() const override { return "faulty"; }
  int depth() const override { return queue_->depth(); }
  void submit(std::span<const FileRead> reads) override { queue_->submit(reads); }
  size_t collect(std::span<ReadResult> results) override {
    const size_t count = queue_->collect(results);
    for (size_t i = 0; i < count; ++i) change_(number_++, results[i]);
    return count;
  }

 private:
  std::unique_ptr<ReadQueue> queue_;
  Change change_;
  int64_t number_ = 0;
};

// A disk in memory that reads one piece after the other at a given rate.
class SlowQueue : public ReadQueue {
 public:
  using Clock = std::chrono::steady_clock;
  SlowQueue(const FileOfRows& file, int depth, double bytes_per_second)
      : file_(file), depth_(depth), rate_(bytes_per_second) {}
  std::string name() const override { return "slow"; }
  int depth() const override { return depth_; }
  void submit(std::span<const FileRead> reads) override {
    for (const FileRead& read : reads) {
      free_at_ = std::max(free_at_, Clock::now()) +
                 std::chrono::nanoseconds(static_cast<int64_t>(static_cast<double>(read.bytes) / rate_ * 1e9));
      due_.emplace_back(free_at_, read);
    }
  }
  size_t collect(std::span<ReadResult> results) override {
    const auto [when, read] = due_.front();
    due_.erase(due_.begin());
    std::this_thread::sleep_until(when);
    const int64_t bytes = std::min(read.bytes, file_.size() - read.offset);
    std::memcpy(read.to, file_.row(0) - file_.layout().offset + read.offset, static_cast<size_t>(bytes));
    results[0] = {read.tag, bytes, 0};
    return 1;
  }

 private:
  const FileOfRows& file_;
  int depth_;
  double rate_;
  Clock::time_point free_at_;
  std::vector<std::pair<Clock::time_point, FileRead>> due_;
};

}  // namespace nacre::test
