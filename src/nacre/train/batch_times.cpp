// The part of BatchSession that says where the time of an epoch went, and where rows were read
// from.
#include <algorithm>
#include <utility>

#include "nacre/base/parallel.h"
#include "nacre/train/batch_session.h"
#include "nacre/train/feature_tiers.h"

namespace nacre {

StepTimes BatchSession::step_times() {
  StepTimes times = step_times_;
  if (computer_) times.device = computer_->device_seconds();
  times.waited += loader_times().waited;
  times.awaited = learner_->awaited();
  return times;
}

double BatchSession::loading_seconds() {
  if (!store_ || store_->rows_on_host() == 0 || !computer_) return 0;
  return store_->by_link() ? computer_->loading_seconds() : loader_times().copied;
}

ResourceUse BatchSession::resource_use() {
  LoaderTimes times = loader_times();
  times.copied = loading_seconds();
  return nacre::resource_use(step_times(), times, num_threads(), store_ && store_->rows_on_host() > 0);
}

// Returns the rows that steps have read from each tier, without those in `told`. The computer
// counts all rows of a disk tier as rows of the host. The tier knows how many rows it has read, but
// also counts batches that no step has taken yet. So at most as many rows count as read from disk
// as steps have taken.
RowReads BatchSession::rows_read_since(const RowReads& told) const {
  RowReads reads = (computer_ ? computer_->rows_read() : RowReads{}) - told;
  if (!tier_) return reads;
  const int64_t taken = reads.host + reads.disk;
  reads.disk = std::clamp<int64_t>(tier_->training().from_disk - told.disk, 0, taken);
  reads.host = taken - reads.disk;
  return reads;
}

std::string BatchSession::take_feature_rows() {
  const RowReads since = rows_read_since(told_);
  told_ += since;
  return since.json();
}

std::string BatchSession::take_disk_reads() {
  if (!tier_) return "";
  const DiskCounters now = tier_->training();
  const double waited = loader_times().waited_for_rows;
  return disk_json(since(now, std::exchange(told_disk_reads_, now)), tier_->row_bytes(),
                   waited - std::exchange(told_wait_, waited));
}

LoaderTimes BatchSession::loader_times() const {
  LoaderTimes times = earlier_times_;
  if (loader_) times += loader_->times();
  return times;
}

}  // namespace nacre
