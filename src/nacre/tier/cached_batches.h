// CachedBatches: provides the batches of a run whose rows a device caches with a look-ahead. It
// draws a window of batches before the first of them is loaded, keeps their samples, and plans by
// them which rows the device keeps (CachePlanner).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "nacre/schedule/sample_source.h"
#include "nacre/tier/cache_planner.h"

namespace nacre {

// Returns the classes of rows (SeatBook). The rows in `chosen` come before the others. Within both,
// rows that are read more often come first.
RowClasses cache_classes(std::span<const float> reads, std::span<const NodeId> chosen);

struct CacheOptions {
  // Holds the row of each seat before the first batch. Its size is the number of seats.
  std::vector<NodeId> contents;
  RowClasses classes;  // as SeatBook says; may be null
  // The number of batches that are drawn when a batch is planned, including that one. The first
  // batches are planned with fewer, so that they need not wait for all of them.
  int64_t window = 1;
};

class CachedBatches : public SampleSource {
 public:
  // `order` is that of the batch loader. The sampler must outlive this object.
  CachedBatches(const Sampler& sampler, BatchOrder order, CacheOptions options);
  ~CachedBatches() override;

  // Takes another order of the batches, and drops what was drawn and planned in the old one. No
  // batch may be taken before begin() is called again.
  void reorder(BatchOrder order);
  void begin(uint64_t epoch, int64_t first, int64_t more) override;
  void go_on(uint64_t epoch, int64_t more) override;
  // Returns the sample of a batch and appends to `wanted` the rows that have no seat, which the
  // device must read from further away. First draws the batches of the window that are missing.
  // Threads that call this function at the same time draw different batches.
  Sample take(const SampleKey& key, std::vector<NodeId>& wanted) override;

  // Returns the plan of a batch that was taken and whose turn has not come.
  std::shared_ptr<const CachePlan> plan(const SampleKey& key) const;
  // Calls queue(plan) in the order of the batches: only when `queue` has been called for all
  // batches before this one. So `queue` is called either by this call or by a later call on another
  // thread. It must make the device read the rows of the batch and then keep those that the plan
  // names.
  using Queue = std::function<void(const CachePlan& plan)>;
  void queue_in_turn(const SampleKey& key, Queue queue);

  // Returns how many batches of `batch_rows` rows are worth drawing ahead. With more, hardly any
  // plan would change.
  static int64_t useful_window(int64_t seats, int64_t batch_rows);
  int64_t window() const { return options_.window; }
  int64_t seats() const { return static_cast<int64_t>(options_.contents.size()); }
  // Returns the bytes of the tables of planning and of the samples of `window` batches of
  // `batch_rows` rows and `sample_bytes` bytes each.
  static int64_t bytes(int64_t rows, int64_t seats, int64_t window, int64_t batch_rows, int64_t sample_bytes);

 private:
  using Lock = std::unique_lock<std::mutex>;

  // Holds a batch of the window.
  struct Entry {
    Sample sample;
    bool drawn = false;
    std::shared_ptr<const CachePlan> plan;
  };
  // Names a batch that one thread has taken to draw.
  struct Claim {
    int64_t number = 0;
    std::shared_ptr<const BatchOrder> order;
    int64_t index = 0;
    SampleKey key;
  };

  int64_t number_of(const SampleKey& key) const;
  Entry& entry(int64_t number) { return entries_[static_cast<size_t>(number - over_)]; }
  void forget();
  void plan_up_to(Lock& lock, int64_t number);
  int64_t wanted_for(int64_t number) const;
  Claim claim();
  void draw(Lock& lock, const Claim& claim);

  const Sampler& sampler_;
  CacheOptions options_;  // `contents` is what the seats hold when all batches whose turn has come
                          // are over

  mutable std::mutex mutex_;  // guards all members below, and options_.contents
  std::condition_variable changed_;
  BatchOrder order_;
  std::shared_ptr<const BatchOrder> drawing_;  // the order of the epoch in which batches are drawn
  uint64_t drawing_epoch_ = 0;
  // Batches are numbered from 0 on, beginning with batch `first_` of `epoch_`.
  uint64_t epoch_ = 0;
  int64_t first_ = 0;
  int64_t known_ = 0;    // number of batches that were announced
  int64_t claimed_ = 0;  // number of batches that are drawn or being drawn
  int64_t added_ = 0;    // number of batches that the planner knows
  int64_t planned_ = 0;
  int64_t taken_ = 0;
  int64_t over_ = 0;           // number of batches whose turn has come
  std::deque<Entry> entries_;  // from batch over_ on
  std::map<int64_t, Queue> waiting_;
  std::optional<CachePlanner> planner_;
  std::vector<std::unique_ptr<BatchSampler>> idle_;  // samplers that nobody uses
  std::exception_ptr error_;

  std::mutex turn_mutex_;  // held while batches are queued, so that they are queued in their order
};

// Counts the rows that batches of an epoch would read, and those of them that have no seat.
struct CacheForecast {
  int64_t batches = 0;        // batches that were drawn for the forecast
  int64_t rows = 0;           // rows that they read
  int64_t misses = 0;         // rows without a seat
  int64_t static_misses = 0;  // rows without a seat if the first contents stayed in their seats
};
// Returns the counts of the first `most` batches of epoch 0, or of all if the epoch has fewer.
// Draws and plans these batches.
CacheForecast forecast_cache(const Sampler& sampler, const BatchOrder& order, const CacheOptions& options,
                             int64_t most);

}  // namespace nacre
