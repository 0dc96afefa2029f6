#include "nacre/tier/cached_batches.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

// The window of batch i has at most kFirstWindow + i · kWindowGrowth batches.
constexpr int64_t kFirstWindow = 16, kWindowGrowth = 4;

void draw_sample(BatchSampler& drawer, std::span<const NodeId> seeds, const SampleKey& key) {
  drawer.begin(seeds, key);
  for (int hop = 0; hop < drawer.hops(); ++hop) {
    drawer.pick(hop);
    drawer.insert(hop);
  }
  for (int hop = 0; hop < drawer.hops(); ++hop) drawer.reindex(hop);
}

// A window is worth drawing as long as its batches have at most this many rows for each seat.
constexpr int64_t kUsesPerSeat = 8;

}  // namespace

// The first half of the classes is for the rows in `chosen`, the second half for all others. Within
// each half, the rows of every class are read about half as often as those of the class before it.
RowClasses cache_classes(std::span<const float> reads, std::span<const NodeId> chosen) {
  constexpr int half = SeatBook::kClasses / 2;
  const float most = reads.empty() ? 0 : *std::max_element(reads.begin(), reads.end());
  auto classes = std::make_shared<std::vector<uint8_t>>(reads.size());
  for (size_t v = 0; v < reads.size(); ++v) {
    const float steps = reads[v] > 0 ? std::log2(most / reads[v]) : half;
    (*classes)[v] = static_cast<uint8_t>(half + std::min(static_cast<int>(steps), half - 1));
  }
  for (const NodeId v : chosen) (*classes)[v] = static_cast<uint8_t>((*classes)[v] - half);
  return classes;
}

int64_t CachedBatches::useful_window(int64_t seats, int64_t batch_rows) {
  return std::clamp<int64_t>(kUsesPerSeat * seats / std::max<int64_t>(1, batch_rows) + 1, 2, SeatBook::kMostAhead - 2);
}

CachedBatches::CachedBatches(const Sampler& sampler, BatchOrder order, CacheOptions options)
    : sampler_(sampler), options_(std::move(options)), order_(std::move(order)) {
  NACRE_CHECK(options_.window >= 1 && options_.window < SeatBook::kMostAhead, "the window is out of range");
}

CachedBatches::~CachedBatches() = default;

int64_t CachedBatches::bytes(int64_t rows, int64_t seats, int64_t window, int64_t batch_rows, int64_t sample_bytes) {
  const int64_t uses = window * batch_rows * SeatBook::kUseBytes;
  // The ring of uses has up to twice the size that it needs. The class of a row takes a byte, and
  // the row of each seat is stored a second time, in the list of contents.
  return SeatBook::table_bytes(rows, seats) + rows + seats * static_cast<int64_t>(sizeof(NodeId)) + 2 * uses +
         window * sample_bytes;
}

void CachedBatches::reorder(BatchOrder order) {
  const Lock lock(mutex_);
  order_ = std::move(order);
  forget();
}

void CachedBatches::forget() {
  planner_.reset();
  drawing_.reset();
  entries_.clear();
  waiting_.clear();
  known_ = claimed_ = added_ = planned_ = taken_ = over_ = 0;
  error_ = nullptr;
}

// If batch `first` of `epoch` is the one that follows the batches taken so far, the planner goes
// on. Otherwise planning begins anew with the rows that the device holds now.
void CachedBatches::begin(uint64_t epoch, int64_t first, int64_t more) {
  const Lock lock(mutex_);
  const int64_t batches = order_.num_batches();
  if (batches == 0) return;
  if (planner_ && !error_ && over_ == taken_) {
    const auto since = static_cast<int64_t>(epoch - epoch_) * batches + first - first_;
    if (since == over_) {
      known_ = since + batches - first + more * batches;
      return;
    }
  }
  forget();
  epoch_ = epoch;
  first_ = first;
  known_ = batches - first + more * batches;
  int64_t rows = sampler_.graph().num_nodes();
  planner_.emplace(rows, seats(), options_.contents, int64_t{1} << 10, options_.classes);
}

void CachedBatches::go_on(uint64_t epoch, int64_t more) {
  const Lock lock(mutex_);
  const int64_t batches = order_.num_batches();
  known_ = std::max(known_, (static_cast<int64_t>(epoch - epoch_) + 1 + more) * batches - first_);
}

int64_t CachedBatches::number_of(const SampleKey& key) const {
  const int64_t index = order_.before(static_cast<int64_t>(key.batch));
  return static_cast<int64_t>(key.epoch - epoch_) * order_.num_batches() + index - first_;
}

// Returns how many batches must be drawn before a batch is planned. It depends on nothing but the
// number of the batch, so that the same run counts the same misses every time.
int64_t CachedBatches::wanted_for(int64_t number) const {
  return std::min(known_, number + std::min(options_.window, kFirstWindow + kWindowGrowth * number));
}

CachedBatches::Claim CachedBatches::claim() {
  const int64_t number = claimed_++, batches = order_.num_batches();
  const uint64_t epoch = epoch_ + static_cast<uint64_t>((number + first_) / batches);
  if (!drawing_ || drawing_epoch_ != epoch) {
    auto order = std::make_shared<BatchOrder>(order_);
    order->begin_epoch(epoch);
    drawing_ = std::move(order);
    drawing_epoch_ = epoch;
  }
  const int64_t index = (number + first_) % batches;
  entries_.emplace_back();
  return {number, drawing_, index, {epoch, static_cast<uint64_t>(order_.number(index))}};
}

void CachedBatches::draw(Lock& lock, const Claim& claim) {
  std::unique_ptr<BatchSampler> drawer;
  if (!idle_.empty()) {
    drawer = std::move(idle_.back());
    idle_.pop_back();
  }
  lock.unlock();
  Sample sample;
  std::exception_ptr error;
  try {
    if (!drawer) drawer = sampler_.make_batch_sampler();
    draw_sample(*drawer, sampler_.draws_seeds() ? std::span<const NodeId>() : claim.order->batch(claim.index),
                claim.key);
    sample = drawer->finish();
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (error) {
    if (!error_) error_ = error;
  } else {
    idle_.push_back(std::move(drawer));
    Entry& mine = entry(claim.number);
    mine.sample = std::move(sample);
    mine.drawn = true;
    for (; added_ < claimed_ && entry(added_).drawn; ++added_) planner_->add(entry(added_).sample.vertices.span());
  }
  changed_.notify_all();
}

// Plans all batches up to `number`. A thread that waits in this function waits for threads that
// draw batches. They wait for no other thread, so there is no deadlock.
void CachedBatches::plan_up_to(Lock& lock, int64_t number) {
  while (planned_ <= number) {
    if (error_) std::rethrow_exception(error_);
    const int64_t wanted = wanted_for(planned_);
    if (added_ >= wanted) {
      entry(planned_).plan = std::make_shared<const CachePlan>(planner_->plan());
      ++planned_;
    } else if (claimed_ < wanted) {
      draw(lock, claim());
    } else {
      changed_.wait(lock);
    }
  }
}

Sample CachedBatches::take(const SampleKey& key, std::vector<NodeId>& wanted) {
  Lock lock(mutex_);
  const int64_t number = number_of(key);
  NACRE_CHECK(planner_ && number >= over_ && number < known_, "the batch was not announced");
  plan_up_to(lock, number);
  ++taken_;
  Entry& mine = entry(number);
  Sample sample = std::move(mine.sample);
  const std::shared_ptr<const CachePlan> plan = mine.plan;
  lock.unlock();
  const auto vertices = sample.vertices.span();
  wanted.reserve(wanted.size() + static_cast<size_t>(plan->misses()));
  for (size_t i = 0; i < vertices.size(); ++i) {
    if (plan->seats[i] == kNoSeat) wanted.push_back(vertices[i]);
  }
  return sample;
}

std::shared_ptr<const CachePlan> CachedBatches::plan(const SampleKey& key) const {
  const Lock lock(mutex_);
  const int64_t number = number_of(key);
  NACRE_CHECK(number >= over_ && number < planned_, "the batch is not planned, or it is over");
  return entries_[static_cast<size_t>(number - over_)].plan;
}

void CachedBatches::queue_in_turn(const SampleKey& key, Queue queue) {
  const std::lock_guard turn(turn_mutex_);
  Lock lock(mutex_);
  waiting_[number_of(key)] = std::move(queue);
  while (!waiting_.empty() && waiting_.begin()->first == over_) {
    const Queue next = std::move(waiting_.extract(waiting_.begin()).mapped());
    const std::shared_ptr<const CachePlan> plan = entries_.front().plan;
    lock.unlock();
    next(*plan);
    lock.lock();
    for (const RowKeep& keep : plan->keeps) options_.contents[static_cast<size_t>(keep.seat)] = keep.row;
    entries_.pop_front();
    ++over_;
  }
}

CacheForecast forecast_cache(const Sampler& sampler, const BatchOrder& order, const CacheOptions& options,
                             int64_t most) {
  CacheForecast forecast;
  CachedBatches batches(sampler, order, options);
  std::vector<uint8_t> held(static_cast<size_t>(sampler.graph().num_nodes()), 0);
  for (const NodeId row : options.contents) held[row] = 1;
  batches.begin(0, 0, 0);
  forecast.batches = std::min(most, order.num_batches());
  std::vector<std::array<int64_t, 3>> counts(static_cast<size_t>(forecast.batches));
  parallel_tasks(forecast.batches, [&](int64_t i) {
    std::vector<NodeId> wanted;
    const SampleKey key{0, static_cast<uint64_t>(order.number(i))};
    const Sample sample = batches.take(key, wanted);
    const auto vertices = sample.vertices.span();
    counts[static_cast<size_t>(i)] = {
        sample.vertices.size(), static_cast<int64_t>(wanted.size()),
        std::count_if(vertices.begin(), vertices.end(), [&](NodeId v) { return held[v] == 0; })};
  });
  for (const auto& [rows, misses, static_misses] : counts) {
    forecast.rows += rows;
    forecast.misses += misses;
    forecast.static_misses += static_misses;
  }
  return forecast;
}

}  // namespace nacre
