#include "nacre/schedule/scheduler.h"

#include <algorithm>
#include <new>

#include "nacre/base/error.h"

namespace nacre {
namespace {

bool is_sampling(Subtask::Kind kind) { return kind == Subtask::Kind::pick || kind == Subtask::Kind::insert; }

// Returns the order of a subtask within its batch, where small numbers run first: subtasks that
// others wait for come first, and look-ups come last.
int urgency(Subtask::Kind kind) {
  switch (kind) {
    case Subtask::Kind::send:
      return 0;
    case Subtask::Kind::insert:
      return 1;
    case Subtask::Kind::take:
    case Subtask::Kind::pick:
      return 2;
    case Subtask::Kind::make_room:
      return 3;
    case Subtask::Kind::reindex:
      return 4;
    case Subtask::Kind::prepare:
      return 5;
    case Subtask::Kind::look_up:
      return 6;
  }
  return 7;
}

}  // namespace

Scheduler::Scheduler(LoaderContext& context, SampleGroups* groups) : context_(context), groups_(groups) {
  for (int slot = 0; slot <= context.options.in_flight + context.options.kept; ++slot)
    jobs_.push_back(std::make_unique<BatchJob>(context, slot));
  if (context.source != nullptr) context.source->listen([this] { take_rows(); });
}

Scheduler::~Scheduler() {
  if (context_.source != nullptr) context_.source->listen({});
  stop();
}

// Draws the next group if all batches of the group before it were taken. No batch is in flight at
// that time, so all threads draw.
void Scheduler::draw_group() {
  if (groups_ != nullptr && next_ == started_ && !groups_->has_next()) groups_->draw();
}

void Scheduler::begin(const BatchOrder& order, uint64_t epoch, int64_t first) {
  if (groups_ != nullptr && !groups_->has_next() && first < order.num_batches()) groups_->draw();
  const Lock lock(mutex_);
  order_ = &order;
  epoch_ = epoch;
  batches_ = order.num_batches();
  started_ = next_ = first;
  before_ -= first;
  start_up_to(first + context_.options.in_flight);
}

void Scheduler::follow(const BatchOrder& order) {
  const Lock lock(mutex_);
  NACRE_CHECK(order.num_batches() == batches_, "the next epoch has another number of batches");
  following_ = &order;
  start_up_to(next_ + context_.options.in_flight);
}

void Scheduler::go_on() {
  const Lock lock(mutex_);
  NACRE_CHECK(following_ != nullptr && next_ == batches_, "the epoch is not over, or none follows it");
  order_ = std::exchange(following_, nullptr);
  ++epoch_;
  before_ += batches_;
  started_ -= batches_;
  next_ = 0;
  start_up_to(context_.options.in_flight);
}

// Starts the batches before number `end` that have not been started. A batch takes the slot of the
// batch in_flight + kept + 1 before it, which is over.
void Scheduler::start_up_to(int64_t end) {
  const int64_t known = following_ != nullptr ? 2 * batches_ : batches_;
  for (; started_ < std::min(end, known); ++started_) {
    if (groups_ != nullptr && !groups_->has_next()) break;
    const bool follows = started_ >= batches_;
    const int64_t index = follows ? started_ - batches_ : started_;
    const BatchOrder& order = follows ? *following_ : *order_;
    BatchJob& job = job_of(started_);
    const SampleKey key{follows ? epoch_ + 1 : epoch_, static_cast<uint64_t>(order.number(index))};
    if (groups_ != nullptr) {
      job.start(index, groups_->take(), key, ready_);
    } else {
      job.start(index, context_.sampler.draws_seeds() ? std::span<const NodeId>() : order.batch(index), key, ready_);
    }
    queue(job);
  }
  call_workers();
}

// Moves the subtasks of ready_ to the queue. If memory runs out, the subtasks that are not queued
// stay in ready_.
void Scheduler::queue(BatchJob& job) {
  size_t queued = 0;
  try {
    for (; queued < ready_.size(); ++queued) {
      const Subtask& task = ready_[queued];
      queue_.insert({{job.turn(), urgency(task.kind)}, {&job, task}});
    }
  } catch (...) {
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(queued));
    throw;
  }
  ready_.clear();
}

// Calls workers until there is one for every subtask that may run, as long as there are threads.
void Scheduler::call_workers() {
  const auto may_run =
      context_.options.relax || sampling_ == 0
          ? static_cast<int64_t>(queue_.size())
          : std::count_if(queue_.begin(), queue_.end(), [](const auto& e) { return !is_sampling(e.second.task.kind); });
  const auto wanted = std::min<int64_t>(tasks_.workers(), may_run);
  // If there is no memory to call a worker, the thread that waits for a batch runs its subtasks.
  try {
    while (called_ < wanted && tasks_.post([this] { work(); })) ++called_;
  } catch (const std::bad_alloc&) {
    return;
  }
}

// Runs one subtask on a worker. A worker runs a single subtask, so that its thread is soon free
// again for the loops of the computation.
void Scheduler::work() {
  Lock lock(mutex_);
  // The batch of a subtask keeps the errors of the subtask. The only other failure is a lack of
  // memory for the queue, which next() throws.
  const auto guarded = [this](const auto& call) {
    try {
      call();
    } catch (...) {
      broken_ = std::current_exception();
      changed_.notify_all();
    }
  };
  guarded([&] { run_one(lock, best()); });
  --called_;
  guarded([&] { call_workers(); });
}

Scheduler::Queue::iterator Scheduler::best() {
  if (context_.options.relax || sampling_ == 0) return queue_.begin();
  return std::find_if(queue_.begin(), queue_.end(), [](const auto& e) { return !is_sampling(e.second.task.kind); });
}

// Returns the next subtask for a caller who waits for `job`. Of other batches, it returns only
// look-ups, which are short, so that the caller can go on soon after `job` is ready.
Scheduler::Queue::iterator Scheduler::best_for(const BatchJob& job) {
  const auto at = best();
  if (at == queue_.end() || at->second.job == &job) return at;
  return std::find_if(at, queue_.end(), [](const auto& e) { return e.second.task.kind == Subtask::Kind::look_up; });
}

// Queues the look-ups of the batches whose rows the source has read.
void Scheduler::take_rows() {
  const Lock lock(mutex_);
  try {
    for (const auto& job : jobs_) {
      if (!job->waits_for_rows()) continue;
      job->ask_for_rows(ready_);
      queue(*job);
    }
    call_workers();
  } catch (...) {
    broken_ = std::current_exception();
  }
  changed_.notify_all();
}

// Queues the subtasks that can run now that `task` is done.
void Scheduler::pass_on(BatchJob& job, const Subtask& task) {
  try {
    job.done(task, ready_);
    queue(job);
  } catch (...) {
    job.fail_with(std::current_exception(), static_cast<int64_t>(ready_.size()));
    ready_.clear();
  }
}

// Runs the subtask at a place of the queue. Returns false if there is none at that place.
bool Scheduler::run_one(Lock& lock, Queue::iterator at) {
  if (at == queue_.end()) return false;
  const Entry entry = at->second;
  queue_.erase(at);
  if (entry.job->failed()) {
    entry.job->skipped();
    changed_.notify_all();
    return true;
  }
  const int sampling = is_sampling(entry.task.kind) ? 1 : 0;
  ++running_;
  sampling_ += sampling;
  lock.unlock();
  std::exception_ptr error;
  try {
    entry.job->run(entry.task);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  --running_;
  sampling_ -= sampling;
  if (stopping_) {
    // The scheduler stops, so the subtasks that can run now are not queued.
  } else if (error) {
    entry.job->fail(error);
  } else {
    pass_on(*entry.job, entry.task);
  }
  call_workers();
  changed_.notify_all();
  return true;
}

Batch Scheduler::next() {
  const int64_t begin = steady_ns();
  draw_group();
  Lock lock(mutex_);
  NACRE_CHECK(next_ < batches_, "the epoch has no more batches");
  BatchJob& job = job_of(next_);
  start_up_to(++next_ + context_.options.in_flight);
  while (!job.complete()) {
    if (broken_) std::rethrow_exception(broken_);
    // If there is no other thread, the caller runs all subtasks.
    if (run_one(lock, tasks_.workers() > 0 ? best_for(job) : best())) continue;
    const bool for_rows = job.waits_for_rows();
    const int64_t waits = steady_ns();
    changed_.wait(lock);
    if (for_rows) context_.clock.add_waited_for_rows(steady_ns() - waits);
  }
  lock.unlock();
  context_.clock.add_waited(steady_ns() - begin);
  return job.take();
}

void Scheduler::stop() {
  Lock lock(mutex_);
  queue_.clear();
  for (const auto& job : jobs_) job->drop();
  before_ += next_;
  batches_ = next_ = 0;
  following_ = nullptr;
  stopping_ = true;
  changed_.wait(lock, [this] { return running_ == 0; });
  stopping_ = false;
}

}  // namespace nacre
