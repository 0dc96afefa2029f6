// Scheduler: loads several batches at a time. The subtasks that can run lie in one queue, those of
// the earliest batch first. Background threads take subtasks from the queue, and so does the caller
// while it waits. Only files of this room include this header.
#pragma once

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "nacre/base/tasks.h"
#include "nacre/schedule/batch_job.h"
#include "nacre/schedule/sample_groups.h"

namespace nacre {

class Scheduler {
 public:
  // `groups` draws the samples if LoaderOptions::group is not 0; otherwise it is null.
  Scheduler(LoaderContext& context, SampleGroups* groups);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Begins an epoch with batch `first`. `order` must not change until stop(), or until all batches
  // of the epoch were taken.
  void begin(const BatchOrder& order, uint64_t epoch, int64_t first);
  // Lets the first batches of the next epoch be in flight beside the last ones of this epoch. The
  // next epoch must have as many batches.
  void follow(const BatchOrder& order);
  bool followed() const { return following_ != nullptr; }
  // Begins the epoch whose order was given to follow(). All batches of the epoch before it must
  // have been taken.
  void go_on();
  // Returns how many batches of the epoch are still to be taken.
  int64_t left() const { return batches_ - next_; }
  Batch next();
  // Waits until no subtask runs, and drops the batches that nobody took.
  void stop();

 private:
  struct Entry {
    BatchJob* job;
    Subtask task;
  };
  using Lock = std::unique_lock<std::mutex>;
  using Queue = std::multimap<std::pair<std::pair<uint64_t, int64_t>, int>, Entry>;

  BatchJob& job_of(int64_t number) { return *jobs_[static_cast<size_t>(number + before_) % jobs_.size()]; }
  void draw_group();
  void start_up_to(int64_t end);
  void queue(BatchJob& job);
  void call_workers();
  void work();
  void take_rows();
  void pass_on(BatchJob& job, const Subtask& task);
  bool run_one(Lock& lock, Queue::iterator at);
  Queue::iterator best();
  Queue::iterator best_for(const BatchJob& job);

  LoaderContext& context_;
  SampleGroups* groups_;
  std::vector<std::unique_ptr<BatchJob>> jobs_;  // the job in each slot
  // Only the thread of the caller uses the members from here to before_. Batches are numbered from
  // the beginning of the epoch; the numbers go on in the epoch that follows.
  const BatchOrder* order_ = nullptr;
  const BatchOrder* following_ = nullptr;
  uint64_t epoch_ = 0;
  int64_t batches_ = 0, started_ = 0, next_ = 0;
  // This is the number of batches that were taken before this epoch. It counts for the choice of
  // the next slot, because the last batches of an epoch keep their slots when the next epoch
  // begins.
  int64_t before_ = 0;

  std::mutex mutex_;  // guards everything below, and the dependencies of the jobs
  std::condition_variable changed_;
  Queue queue_;                 // subtasks that can run, by batch and urgency
  std::vector<Subtask> ready_;  // subtasks that can run and are not in the queue yet
  int running_ = 0;             // number of subtasks that run
  int sampling_ = 0;            // number of subtasks of stage S among running_
  int called_ = 0;              // number of workers that run a subtask or were called to do so
  bool stopping_ = false;
  std::exception_ptr broken_;
  BackgroundTasks tasks_;
};

}  // namespace nacre
