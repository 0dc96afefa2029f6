#include "nacre/schedule/batch_loader.h"

#include <array>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/schedule/scheduler.h"

namespace nacre {

struct BatchLoader::State {
  State(const Sampler& sampler, BatchOrder seeds, LoaderFeatures features, FeatureSink& sink,
        const LoaderOptions& options, Prepare prepare)
      : orders{seeds, std::move(seeds)}, context(sampler, std::move(features), sink, options, std::move(prepare)) {
    NACRE_CHECK(options.in_flight >= 0, "the number of batches in flight is negative");
    NACRE_CHECK(context.samples == nullptr || (options.group == 0 && !context.features.wanted),
                "samples that were drawn ahead are not drawn in groups, and say themselves which rows are wanted");
    if (options.group > 0) groups = std::make_unique<SampleGroups>(context, orders[0]);
    if (options.in_flight > 0) scheduler = std::make_unique<Scheduler>(context, groups.get());
  }

  Batch serial_batch();
  void serial_sample(int64_t index, const SampleKey& key);
  void serial_features(int64_t index, std::span<const NodeId> ids, Batch& batch);
  BatchOrder& order_of(uint64_t e) { return orders[e % 2]; }
  void make_following();

  std::array<BatchOrder, 2> orders;  // orders of the current epoch and of the one that follows
  LoaderContext context;
  std::unique_ptr<SampleGroups> groups;  // null if each batch is sampled when it is loaded
  std::unique_ptr<Scheduler> scheduler;  // used if batches are in flight
  ChosenSampler one_by_one;              // used if there is no scheduler
  uint64_t epoch = 0;
  int64_t next = 0;   // next batch; used if there is no scheduler
  int64_t taken = 0;  // batches taken so far; used if there is no scheduler
  bool more = false;  // whether an epoch follows that the scheduler does not know of yet
};

// Returns the next batch, prepared on the calling thread: S, R, K, T and the hook, one after
// another. Only the rows of K are copied in parallel.
Batch BatchLoader::State::serial_batch() {
  NACRE_CHECK(next < order_of(epoch).num_batches(), "the epoch has no more batches");
  const int64_t begin = steady_ns();
  Batch batch;
  const int64_t index = next++;
  batch.index = order_of(epoch).number(index);
  const SampleKey key{epoch, static_cast<uint64_t>(batch.index)};
  std::vector<NodeId> wanted;
  if (context.samples != nullptr) {
    const StageSpan span(context.clock, Stage::pick, 0);
    batch.sample = context.samples->take(key, wanted);
  } else if (groups) {
    if (!groups->has_next()) groups->draw();
    batch.sample = groups->take();
  } else {
    serial_sample(index, key);
    batch.sample = one_by_one.finish();
  }
  const bool some = context.samples != nullptr || context.features.wanted != nullptr;
  if (context.features.wanted) context.add_wanted(batch.sample.vertices.span(), wanted);
  serial_features(index, some ? std::span<const NodeId>(wanted) : batch.sample.vertices.span(), batch);
  {
    const StageSpan span(context.clock, Stage::prepare, 0);
    if (context.prepare) batch.prepared = context.prepare(batch.sample, key);
  }
  context.clock.add_waited(steady_ns() - begin);
  return batch;
}

void BatchLoader::State::serial_sample(int64_t index, const SampleKey& key) {
  BatchSampler& sampler = one_by_one.choose(context, key);
  for (int h = 0; h < context.hops; ++h) {
    {
      const StageSpan span(context.clock, Stage::pick, h);
      if (h == 0) {
        sampler.begin(context.sampler.draws_seeds() ? std::span<const NodeId>() : order_of(epoch).batch(index), key);
      }
      sampler.pick(h);
    }
    const StageSpan span(context.clock, Stage::insert, h);
    sampler.insert(h);
  }
  for (int h = 0; h < context.hops; ++h) {
    const StageSpan span(context.clock, Stage::reindex, h);
    sampler.reindex(h);
  }
}

// Looks up the rows of `ids` and sends them to a slot, which becomes batch.features.
void BatchLoader::State::serial_features(int64_t index, std::span<const NodeId> ids, Batch& batch) {
  const auto rows = static_cast<int64_t>(ids.size());
  const int64_t bytes = rows * context.row_bytes;
  char* to = nullptr;
  const auto slot = static_cast<int>(taken++ % (context.options.kept + 1));
  {
    const StageSpan span(context.clock, Stage::lookup, 0);
    to = static_cast<char*>(context.sink.buffer(slot, bytes + bytes / 8));
  }
  const BatchTurn turn{epoch, index};
  if (context.source != nullptr) {
    const int64_t begin = steady_ns();
    context.source->wait(turn);
    context.clock.add_waited_for_rows(steady_ns() - begin);
  }
  parallel_for(rows, context.chunk_rows, [&](int64_t b, int64_t e) {
    const StageSpan span(context.clock, Stage::lookup, 0);
    context.look_up(turn, b, ids.subspan(static_cast<size_t>(b), static_cast<size_t>(e - b)),
                    to + b * context.row_bytes);
  });
  if (context.source != nullptr) context.source->release(turn);
  const StageSpan span(context.clock, Stage::transfer, 0);
  if (bytes > 0) context.sink.send(slot, 0, bytes);
  context.sink.settle(slot);
  batch.features = context.sink.finish(slot, bytes);
}

BatchLoader::BatchLoader(const Sampler& sampler, BatchOrder order, LoaderFeatures features, FeatureSink& sink,
                         const LoaderOptions& options, Prepare prepare)
    : state_(
          std::make_unique<State>(sampler, std::move(order), std::move(features), sink, options, std::move(prepare))) {}

BatchLoader::~BatchLoader() = default;

int64_t BatchLoader::num_batches() const { return state_->orders[0].num_batches(); }

void BatchLoader::begin_epoch(uint64_t epoch, int64_t first, int64_t more) {
  State& s = *state_;
  const bool follows = epoch == s.epoch + 1 && first == 0;
  // Without a scheduler, an epoch that was announced by `more` is known only to the RowSource
  // before it begins.
  const bool expected = follows && !s.scheduler && s.more && s.next == num_batches();
  s.epoch = epoch;
  s.next = first;
  s.more = more > 0;
  RowSource* source = s.context.source;
  if (follows && s.scheduler && s.scheduler->followed() && s.scheduler->left() == 0) {
    if (source != nullptr) source->go_on(more > 0);
    if (s.groups) s.groups->go_on(epoch, more);
    if (s.context.samples != nullptr) s.context.samples->go_on(epoch, more);
    return s.scheduler->go_on();
  }
  if (s.scheduler) s.scheduler->stop();  // its batches read the orders of their epochs
  if (s.groups) s.groups->begin(epoch, first, more);
  if (s.context.samples != nullptr) s.context.samples->begin(epoch, first, more);
  s.order_of(epoch).begin_epoch(epoch);
  if (source != nullptr) expected ? source->go_on(more > 0) : source->begin({epoch, first}, more > 0);
  if (s.scheduler) s.scheduler->begin(s.order_of(epoch), epoch, first);
}

// Tells the scheduler which epoch follows. Drawing the order of that epoch takes a while, so this
// is done only when the scheduler needs the order, while other batches are under way.
void BatchLoader::State::make_following() {
  if (!more || scheduler->left() > context.options.in_flight) return;
  more = false;
  order_of(epoch + 1).begin_epoch(epoch + 1);
  scheduler->follow(order_of(epoch + 1));
}

Batch BatchLoader::next() {
  if (!state_->scheduler) return state_->serial_batch();
  state_->make_following();
  return state_->scheduler->next();
}

LoaderTimes& LoaderTimes::operator+=(const LoaderTimes& other) {
  for (double LoaderTimes::*seconds : {&LoaderTimes::sample_pick, &LoaderTimes::sample_insert, &LoaderTimes::reindex,
                                       &LoaderTimes::lookup, &LoaderTimes::transfer, &LoaderTimes::prepare,
                                       &LoaderTimes::waited, &LoaderTimes::waited_for_rows, &LoaderTimes::copied})
    this->*seconds += other.*seconds;
  drawn += other.drawn;
  drawn_second += other.drawn_second;
  return *this;
}

LoaderTimes BatchLoader::times() const {
  LoaderTimes times = state_->context.clock.times();
  times.copied = state_->context.sink.seconds();
  return times;
}

}  // namespace nacre
