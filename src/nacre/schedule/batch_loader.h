// BatchLoader: loads mini-batches beside the computation, several at a time. The way of a batch
// from its seeds to the device is sampling (S), reindexing (R), feature look-up (K) and transfer
// (T), cut into subtasks for each hop that wait only for what they need (GraphTensor's tensor
// scheduler).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/sample/sample.h"
#include "nacre/tensor/tensor.h"

namespace nacre {

// LoaderOptions says how a loader works. Each measure that makes it faster can be switched off, for
// comparison.
struct LoaderOptions {
  // This many batches are prepared ahead of the one that is computed. With 0, a batch is prepared
  // when it is asked for.
  int in_flight = 3;
  // If true, every hop has subtasks of its own, each of which runs as soon as what it needs is
  // there. If false, S, R, K and T of all hops run one after the other.
  bool subtasks = true;
  // If true, edges are chosen while hash tables are updated. If false, S is one subtask.
  bool relax = true;
  // If true, T sends the rows of a hop while K looks up the next ones. If false, T waits for all of
  // K.
  bool stream = true;
  // The features of this many batches before the last one taken stay valid, too.
  int kept = 0;
  // This many batches are sampled before the first of them is loaded; only their samples are kept
  // meanwhile. With 0, each batch is sampled when it is loaded.
  int64_t group = 0;
  // Returns, for the number of a batch in its epoch, whether the second sampler
  // (Sampler::make_second_sampler()) draws it. If the function is empty, the usual sampler draws
  // all batches. With groups, SampleGroups decides which sampler draws a batch.
  std::function<bool(int64_t)> second = {};
};

class RowSource;
class SampleSource;

// Describes the features that a loader looks up and sends.
struct LoaderFeatures {
  LoaderFeatures(Tensor all) : rows(std::move(all)) {}  // NOLINT(google-explicit-constructor)

  // Returns the bytes from one row to the next in the memory of a sink.
  int64_t sent_bytes() const;

  // The tensor has one row for each vertex: f32, bf16 or f16. It may be a mapped file.
  Tensor rows;
  // If true, rows are sent as they are stored. If false, rows of bf16 or f16 are sent as f32.
  bool as_stored = false;
  int64_t stride = 0;  // bytes from one sent row to the next; 0: no gap between rows
  // The list has kWanted for each vertex whose row is looked up; the rows of other vertices are
  // left out. If the list is null, all rows are looked up.
  static constexpr uint8_t kWanted = 1;
  std::shared_ptr<const std::vector<uint8_t>> wanted;
  // Rows are looked up in this source; `rows` then only tells their size. If the source is null,
  // `rows` holds all of them.
  RowSource* source = nullptr;
  // This source gives the samples of the batches and says which rows are looked up. If it is null,
  // the loader samples.
  SampleSource* samples = nullptr;
};

// FeatureSink: where looked-up rows go (stage T). A slot, one of 0 … in_flight + kept, holds the
// features of one batch and is used again when that batch is over. Functions may be called for
// different slots at the same time by several threads, but for one slot only one after the other.
// finish() is called on the thread that calls BatchLoader::next(), and not for a batch that is
// dropped.
class FeatureSink {
 public:
  virtual ~FeatureSink() = default;
  // Returns the host memory of a slot that K writes to, of at least `bytes` bytes. A call may make
  // the memory larger: then it may move, and what was written stays. The memory never moves at
  // another time.
  virtual void* buffer(int slot, int64_t bytes) = 0;
  // Sends bytes [begin, end) of the buffer to where the computation reads them. `begin` is the end
  // of the bytes that were sent before. Another thread may be writing later bytes at the same time.
  virtual void send(int slot, int64_t begin, int64_t end) = 0;
  // Returns the address at which the computation finds the `bytes` bytes, all of which were sent.
  virtual void* finish(int slot, int64_t bytes) = 0;
  // Waits until all bytes that were sent have arrived.
  virtual void settle(int /*slot*/) {}
  // Returns the seconds of transfers that run beside the threads that send, as far as they are
  // known yet.
  virtual double seconds() { return 0; }
};
// Returns a sink that leaves features in host memory.
std::unique_ptr<FeatureSink> make_host_sink();

struct Batch;

// PreparedBatch is what a session makes of a finished sample before the batch is needed. It also
// computes the batch.
class PreparedBatch {
 public:
  virtual ~PreparedBatch() = default;
  // Computes the gradient of the batch for which this object was made, and then calls finish(loss),
  // which may read the gradient and the loss where they lie. Random numbers depend on `step`.
  using Finish = FunctionRef<void(const void* loss)>;
  virtual void run(const Batch& batch, int64_t step, Finish finish) = 0;
};

struct Batch {
  int64_t index = 0;  // number of the batch in its epoch, among those of all ranks
  Sample sample;
  // This is the address of the rows of all sample.vertices in the memory of the sink; if
  // LoaderFeatures::wanted is set, there are only rows of wanted vertices. The rows are valid until
  // next() has been called 1 + LoaderOptions::kept times.
  void* features = nullptr;
  std::shared_ptr<PreparedBatch> prepared;  // what the hook made of the sample; null without a hook
};

// Holds times in seconds and numbers of batches, counted since the loader was made.
struct LoaderTimes {
  // For each stage, this is the time that all threads together have spent on it.
  double sample_pick = 0, sample_insert = 0, reindex = 0, lookup = 0, transfer = 0, prepare = 0;
  double waited = 0;           // time that next() waited for a batch
  double waited_for_rows = 0;  // the part of `waited` in which a RowSource was reading
  double copied = 0;           // the result of FeatureSink::seconds()
  // These are the numbers of batches that were drawn by usual samplers, and by second samplers
  // (Sampler::make_second_sampler()).
  int64_t drawn = 0, drawn_second = 0;

  LoaderTimes& operator+=(const LoaderTimes& other);
};

class BatchLoader {
 public:
  // Prepare is a function that does the work on a finished sample that does not need its features.
  // Any thread may call it.
  using Prepare = std::function<std::shared_ptr<PreparedBatch>(const Sample&, const SampleKey&)>;

  // Makes a loader that calls `prepare`, if there is one, for every sample. The sampler, the sink
  // and the sources must outlive the loader.
  BatchLoader(const Sampler& sampler, BatchOrder order, LoaderFeatures features, FeatureSink& sink,
              const LoaderOptions& options, Prepare prepare = {});
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  int64_t num_batches() const;
  // Lets batches `first` … num_batches() - 1 of the epoch come next, in its order. Batches of an
  // earlier call that were not taken are dropped; the last batch that was taken stays valid. If
  // `more` epochs follow, the first batches of epoch + 1 are in flight beside the last ones of this
  // epoch, and begin_epoch(epoch + 1) uses them when all batches of this epoch were taken. Groups
  // (LoaderOptions::group) may hold batches of several epochs.
  void begin_epoch(uint64_t epoch, int64_t first = 0, int64_t more = 0);
  // Returns the next batch in order. The batch that was returned 1 + LoaderOptions::kept calls
  // before is over. Throws what a subtask of the batch threw.
  Batch next();
  LoaderTimes times() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nacre
