// Scheduler: several batches in flight. Subtasks that are ready lie in one queue, the earliest batch first; background
// threads and a caller who waits take them from there. Internal to the room.
#pragma once

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "nacre/base/tasks.h"
#include "nacre/schedule/batch_job.h"

namespace nacre {

class Scheduler {
 public:
  explicit Scheduler(LoaderContext& context);
  ~Scheduler() { stop(); }
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Orders must stay as they are until stop(), or until all their batches were taken.
  void begin(const BatchOrder& order, uint64_t epoch, int64_t first);
  // The epoch after this one has the same number of batches: its first ones are in flight beside the last ones of this.
  void follow(const BatchOrder& order);
  bool followed() const { return following_ != nullptr; }
  // The epoch that follows begins; all batches of the one before it were taken.
  void go_on();
  // Of the epoch: batches to be taken.
  int64_t left() const { return batches_ - next_; }
  Batch next();
  // Nothing runs any more, nothing is left; batches nobody took are gone.
  void stop();

 private:
  struct Entry {
    BatchJob* job;
    Subtask task;
  };
  using Lock = std::unique_lock<std::mutex>;
  using Queue = std::multimap<std::pair<std::pair<uint64_t, int64_t>, int>, Entry>;

  BatchJob& job_of(int64_t number) { return *jobs_[static_cast<size_t>(number + before_) % jobs_.size()]; }
  void start_up_to(int64_t end);
  void queue(BatchJob& job);
  void call_workers();
  void work();
  void pass_on(BatchJob& job, const Subtask& task);
  bool run_one(Lock& lock, Queue::iterator at);
  Queue::iterator best();
  Queue::iterator best_for(const BatchJob& job);

  LoaderContext& context_;
  std::vector<std::unique_ptr<BatchJob>> jobs_;  // by slot
  // The caller's alone. Batches are numbered from the beginning of the epoch into the one that follows.
  const BatchOrder* order_ = nullptr;
  const BatchOrder* following_ = nullptr;
  uint64_t epoch_ = 0;
  int64_t batches_ = 0, started_ = 0, next_ = 0;
  // From the epoch's numbers to the batches taken since the beginning: slots are used in turn across epochs, for the
  // last batch taken keeps its own until the next one is.
  int64_t before_ = 0;

  std::mutex mutex_;  // of everything below, and of the jobs' dependencies
  std::condition_variable changed_;
  Queue queue_;                 // by batch and urgency
  std::vector<Subtask> ready_;  // scratch
  int running_ = 0;
  int sampling_ = 0;  // of them S
  int called_ = 0;    // workers that are on their way or at work
  bool stopping_ = false;
  std::exception_ptr broken_;
  BackgroundTasks tasks_;
};

}  // namespace nacre
