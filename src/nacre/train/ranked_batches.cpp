#include "nacre/train/ranked_batches.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "nacre/base/log.h"
#include "nacre/train/batch_counts.h"
#include "nacre/train/metrics.h"

namespace nacre {
namespace {

using Kind = RankOrder::Kind;

// While the thread of rank 0 does something that takes long, tells the other ranks from time to
// time that rank 0 is still there. That thread must not use the communicator meanwhile.
class StillHere {
 public:
  StillHere(Communicator& control, double every) : thread_([this, &control, every] { run(control, every); }) {}
  ~StillHere() { end(); }
  StillHere(const StillHere&) = delete;
  StillHere& operator=(const StillHere&) = delete;

  // Ends the thread that sends the orders to wait, and throws what was thrown on it.
  void finish() {
    end();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void run(Communicator& control, double every) {
    std::unique_lock lock(mutex_);
    try {
      while (!over_.wait_for(lock, std::chrono::duration<double>(every), [this] { return ended_; }))
        RankedRun::send({Kind::wait}, control);
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    over_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  std::mutex mutex_;
  std::condition_variable over_;
  bool ended_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace

RankedBatchSession::RankedBatchSession(Dataset dataset, RunConfig config, const SessionNeeds& needs)
    : RankedModel(std::move(dataset), std::move(config), needs) {
  if (this->config().shuffle != "always") shuffled_from_ = kNeverShuffled;
  connect();
  make_own([this] { own_ = std::make_unique<BatchRank>(run_.setup(team_->calls()), run_.counts()); });
  run_.complete(own().config().sampling);
  for (const std::string& note : own().notes()) {
    const std::vector<std::string>& told = run_.notes();
    if (std::find(told.begin(), told.end(), note) == told.end()) run_.notes().push_back(note);
  }
  run_.notes().push_back(counts_text(devices(), counts()));
  plan_seconds_ = now_seconds() - start_;
}

RankedBatchSession::~RankedBatchSession() {
  if (own_) end_ranks();
}

void RankedBatchSession::start() {
  require_memory("a smaller --batch-size, --prefetch or --fanout");
  give({Kind::start}, [&] { own_->start(); });
  started_ = true;
  balance();
}

// Devices that are alike get the same number of batches. So if all devices are alike, nothing is
// measured. With --deterministic, the number of batches of a step must not depend on times.
void RankedBatchSession::balance() {
  const std::vector<DeviceSpeed>& speeds = run_.speeds();
  const bool alike = std::all_of(speeds.begin(), speeds.end(), [&](const DeviceSpeed& s) {
    return s.cores == speeds[0].cores && s.score == speeds[0].score;
  });
  if (alike || !run_.chooses_shares() || config().deterministic || own().disk() != nullptr) return;
  std::vector<double> seconds;
  give({Kind::time_batches}, [&] { seconds = own_->time_batches(); });
  std::vector<int64_t> wanted = counts();
  // In a short epoch, some ranks have too few batches to tell how long one takes.
  for (size_t r = 0; r < seconds.size(); ++r) {
    if (wanted[r] > 0 && seconds[r] <= 0) return;
  }
  wanted = counts_by_speed(measured_speeds(speeds, seconds));
  if (wanted == counts()) return;
  give({Kind::count_batches}, [&] {
    team_->calls().control.broadcast(0, pack_counts(wanted));
    own_->take_counts(wanted);
  });
  run_.take_counts(std::move(wanted));
  log_info("batches are shared out by the times of the first ones; " + counts_text(devices(), counts()));
}

void RankedBatchSession::weights_changed() {
  // Before start(), weights are only changed on rank 0; start() shares them.
  if (!started_) return own().weights_changed();
  give({Kind::weights}, [&] { own_->share_state(); });
}

void RankedBatchSession::begin_epoch(int64_t epoch, int64_t first) {
  next_ = first;
  RankOrder order{Kind::epoch};
  order.epoch = epoch;
  order.first = first;
  order.epochs = epochs_;
  order.shuffled_from = shuffled_from_;
  give(order, [&] {
    own().shuffle_from(shuffled_from_);
    own_->begin_epoch(epoch, first, epochs_);
  });
}

// Optimisers of different kinds of devices may round differently. If the ranks have devices of
// several kinds, all ranks take the weights of rank 0 after each step, so that they stay equal.
void RankedBatchSession::queue_step(int64_t step, double lr) {
  const bool mixed = run_.mixed();
  give({Kind::step, mixed, false, step, lr}, [&] {
    own_->step(lr);
    if (mixed) own_->share_weights();
  });
  next_ += batches_in_step(next_);
}

void RankedBatchSession::take_losses(double& sum) {
  try {
    own().take_losses(sum);
  } catch (...) {
    fail();
  }
}

double RankedBatchSession::train_step(int64_t step, double lr) {
  const auto batches = static_cast<double>(batches_in_step(next_));
  return RankedModel::train_step(step, lr) / batches;
}

void RankedBatchSession::work_alone(FunctionRef<void()> work) {
  try {
    StillHere here(team_->calls().control, config().ranks.timeout / 4);
    work();
    here.finish();
  } catch (...) {
    fail();
  }
}

Scores RankedBatchSession::evaluate(bool with_loss) {
  Scores scores;
  work_alone([&] { scores = own().evaluate(with_loss); });
  return scores;
}

const float* RankedBatchSession::predict() {
  const float* rows = nullptr;
  work_alone([&] { rows = own().predict(); });
  return rows;
}

std::vector<RankFigures> RankedBatchSession::figures() {
  std::vector<RankFigures> all;
  give({Kind::figures}, [&] { all = own_->figures(); });
  return all;
}

std::vector<RankTimes> RankedBatchSession::all_times() {
  std::vector<RankTimes> all;
  give({Kind::times}, [&] { all = own_->all_times(); });
  return all;
}

// Counts the data of the process once, and what each rank holds besides for each rank.
HostMemory RankedBatchSession::host() const {
  HostMemory host;
  host.gpu = !device().on_host();
  host.trains = run_.needs().training;
  host.training = {{"graph, features, labels and splits", own().data_bytes()}};
  for (MemoryItem& item : host_of_ranks()) host.training.push_back(std::move(item));
  host.held = own().data_bytes();
  host.evaluating = own().host().evaluating;
  return host;
}

}  // namespace nacre
