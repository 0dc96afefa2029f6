#include "nacre/train/batch_rank.h"

#include <algorithm>
#include <utility>

#include "nacre/base/log.h"
#include "nacre/base/trace.h"
#include "nacre/train/batch_counts.h"
#include "nacre/train/rank_values.h"

namespace nacre {
namespace {

// On a GPU, every kMeasuredEvery-th step is measured, beginning with step kFirstMeasured, because
// step 0 also loads kernels.
constexpr int64_t kMeasuredEvery = 8;
constexpr int64_t kFirstMeasured = 1;
// Number of batches that time_batches() computes. The first one is not counted, because it also
// loads kernels.
constexpr int64_t kTimedBatches = 4;
// Batches that are computed to measure a rank belong to the epoch of this number, which no run
// reaches.
constexpr int64_t kTimedEpoch = -2;

BatchRankParts parts_of(const RankSetup& setup, const std::vector<int64_t>& counts) {
  BatchRankParts parts{setup.run, setup.views, setup.device, batch_part(counts, setup.control.rank()), setup.sharing};
  parts.run.config = setup.config;
  parts.run.dataset.node_names.clear();  // the run keeps the names; a rank does not need them
  return parts;
}

// Returns what the session of a rank needs. Only rank 0 evaluates. A run folder keeps the plan of
// rank 0, so a resumed rank whose device is of another kind (host or GPU) makes a plan by itself.
SessionNeeds needs_of(const RankSetup& setup) {
  SessionNeeds needs = setup.needs;
  const std::vector<char> on_host = all_numbers<char>(setup.control, setup.device->on_host() ? 1 : 0);
  needs.evaluation = needs.evaluation && setup.control.rank() == 0;
  if (on_host[setup.control.rank()] != on_host[0]) needs.resumed_plan.clear();
  return needs;
}

}  // namespace

BatchRank::BatchRank(const RankSetup& setup, const std::vector<int64_t>& counts)
    : data_(setup.data),
      control_(setup.control),
      session_(std::make_unique<BatchSession>(parts_of(setup, counts), needs_of(setup))) {}

void BatchRank::start() {
  share_state();
  session_->begin();
  sum_ = session_->device().backend()->allocate(session_->gradients().count * 4);
  control_.barrier();
}

void BatchRank::begin_epoch(int64_t epoch, int64_t first, int64_t epochs) {
  epoch_ = epoch;
  next_ = first;
  session_->expect_epochs(epochs);
  session_->begin_epoch(epoch, first);
}

void BatchRank::compute_up_to(int64_t end) {
  Backend& backend = *session_->device().backend();
  const StepGradients all = session_->gradients();
  const int64_t bytes = all.count * 4;
  const int64_t first = session_->batches_before(next_), last = session_->batches_before(end);
  if (first == last) return backend.clear(all.data, bytes);
  for (int64_t i = first; i < last; ++i) {
    // The batch gets the same random numbers as in a run on one device.
    const int64_t turn = epoch_ * session_->batches_per_epoch() + session_->part().number(i);
    session_->compute_next(turn, [&](const void* loss) {
      backend.copy(all.data + all.count - 1, loss, 4);
      if (i > first) backend.add(all.data, static_cast<const float*>(sum_.get()), all.count);
      if (i + 1 < last) backend.copy(sum_.get(), all.data, bytes);
    });
  }
}

void BatchRank::step(double lr) {
  Backend& backend = *session_->device().backend();
  const bool host = backend.on_host();
  // Measuring a GPU makes the step slower, so only some steps of a GPU are measured.
  if (steps_++ % kMeasuredEvery != kFirstMeasured && !host) return run_step(lr);
  backend.await(backend.mark());
  const CallCounters before = data_.counters().all_reduce;
  const double start = now_seconds();
  data_.measure(true);
  run_step(lr);
  const DeviceSeconds seconds = data_.take_seconds();
  data_.measure(false);
  backend.await(backend.mark());
  const CallCounters after = data_.counters().all_reduce;
  const double idle = host ? after.idle - before.idle : seconds.waited;
  times_.steps += now_seconds() - start;
  times_.waiting += idle;
  times_.reduction += host ? after.waited - before.waited - idle : seconds.moved + seconds.reduced;
  times_.communication = times_.reduction;
  ++times_.count;
}

void BatchRank::run_step(double lr) {
  const int64_t end = next_ + session_->batches_in_step(next_);
  compute_up_to(end);
  const double computed = now_seconds();
  const StepGradients all = session_->gradients();
  {
    const TraceSpan span("train", "add up gradients");
    data_.start_all_reduce(SumType::f32, all.data, all.count, "gradients").wait();
  }
  Learner& learner = session_->learner();
  learner.keep_loss(all.data + all.count - 1, end - next_);
  learner.update(lr);
  next_ = end;
  session_->count_end_of_step(now_seconds() - computed);
}

void BatchRank::share_weights() { nacre::share_weights(control_, session_->learner()); }

void BatchRank::share_state() { nacre::share_state(control_, session_->learner()); }

std::vector<double> BatchRank::time_batches() {
  Backend& backend = *session_->device().backend();
  session_->expect_epochs(0);
  session_->begin_epoch(kTimedEpoch, 0);
  double fastest = 0;
  const int64_t batches = std::min(kTimedBatches, session_->batches_before(session_->batches_per_epoch()));
  control_.barrier();
  for (int64_t i = 0; i < batches; ++i) {
    const double start = now_seconds();
    session_->compute_next(i, [](const void*) {});
    backend.await(backend.mark());
    const double seconds = now_seconds() - start;
    if (i > 0 && (fastest == 0 || seconds < fastest)) fastest = seconds;
  }
  return all_numbers(control_, fastest);
}

void BatchRank::take_counts(const std::vector<int64_t>& counts) { session_->take_part(batch_part(counts, rank())); }

// Returns the bytes of these items without the data, which all ranks of a process share.
int64_t BatchRank::own_bytes(const std::vector<MemoryItem>& items) const {
  return total_bytes(items) - session_->data_bytes();
}

std::vector<RankFigures> BatchRank::figures() const {
  const bool host = session_->device().on_host();
  RankFigures own;
  // Every rank has memory for the sum of the gradients of its batches in a step.
  const int64_t sum = session_->learner().parameter_bytes();
  own.device_bytes = (host ? own_bytes(session_->host_memory()) : total_bytes(session_->memory())) + sum;
  own.host_bytes = host ? 0 : own_bytes(session_->host_memory());
  own.memory_limit = session_->memory_limit() - (host ? session_->data_bytes() : 0);
  own.sent = data_.counters().all_reduce.bytes_sent;
  own.times = times_;
  return all_numbers(control_, own);
}

std::vector<RankTimes> BatchRank::all_times() const { return all_numbers(control_, times_); }

}  // namespace nacre
