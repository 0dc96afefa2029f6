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

// Each of the measures can be switched off, for comparison.
struct LoaderOptions {
  // Batches that are prepared ahead of the one that is computed. 0: a batch is prepared when asked
  // for.
  int in_flight = 3;
  // Every hop has subtasks of its own, each of which runs as soon as what it needs is there. Off:
  // S, R, K and T of all hops run one after the other.
  bool subtasks = true;
  // The choice of edges runs beside the updates of hash tables. Off: S is one subtask.
  bool relax = true;
  // T sends the rows of a hop while K looks up the next ones. Off: T waits for all of K.
  bool stream = true;
  // Number of batches before the last one taken whose features stay valid, too.
  int kept = 0;
  // Number of batches that are sampled before the first of them is loaded; only their samples are
  // kept meanwhile. 0: each batch is sampled when it is loaded.
  int64_t group = 0;
  // Says, for the number of a batch in its epoch, whether the second sampler draws it
  // (Sampler::make_second_sampler()). If this is empty, the usual one draws all batches. Groups
  // share their batches out by themselves.
  std::function<bool(int64_t)> second = {};
};

class RowSource;
class SampleSource;

// The features that a loader looks up and sends.
struct LoaderFeatures {
  LoaderFeatures(Tensor all) : rows(std::move(all)) {}  // NOLINT(google-explicit-constructor)

  // Returns the bytes from one row to the next in the memory of a sink.
  int64_t sent_bytes() const;

  // One row for each vertex: f32, bf16 or f16. It may be a mapped file.
  Tensor rows;
  // True if rows are sent as they are stored. If this is false, rows of bf16 or f16 are sent as
  // f32.
  bool as_stored = false;
  int64_t stride = 0;  // bytes from one sent row to the next; 0: no gap between rows
  // For each vertex: kWanted if its row is looked up. Other rows are left out. Null: all rows are
  // looked up.
  static constexpr uint8_t kWanted = 1;
  std::shared_ptr<const std::vector<uint8_t>> wanted;
  // The source where rows are looked up; `rows` then only tells their size. If this is null, `rows`
  // holds all of them.
  RowSource* source = nullptr;
  // Gives the samples of the batches and says which rows are looked up. If this is null, the loader
  // samples.
  SampleSource* samples = nullptr;
};

// FeatureSink: where looked-up rows go (stage T). A slot, one of 0 … in_flight + kept, holds the
// features of one batch and is used again when that batch is over. Any thread may call the
// functions: for different slots at the same time, for one slot one after the other. finish() is
// called on the thread that calls BatchLoader::next(). finish() is not called for a batch that is
// dropped.
class FeatureSink {
 public:
  virtual ~FeatureSink() = default;
  // Returns the host memory of a slot that K writes to, of at least `bytes` bytes. What was written
  // stays when the memory grows. The memory moves only in this call.
  virtual void* buffer(int slot, int64_t bytes) = 0;
  // Sends bytes [begin, end) of the buffer on. They follow those sent before. Another thread may be
  // writing later bytes at the same time.
  virtual void send(int slot, int64_t begin, int64_t end) = 0;
  // Returns where the computation finds the `bytes` bytes, all of which were sent.
  virtual void* finish(int slot, int64_t bytes) = 0;
  // Waits until what was sent has arrived.
  virtual void settle(int /*slot*/) {}
  // Returns the seconds of transfers that run beside the threads that send, as far as they are
  // known yet.
  virtual double seconds() { return 0; }
};
// Returns a sink that leaves features in host memory.
std::unique_ptr<FeatureSink> make_host_sink();

struct Batch;

// What a session makes of a finished sample before the turn of the batch comes. It also computes
// the batch.
class PreparedBatch {
 public:
  virtual ~PreparedBatch() = default;
  // Computes the gradient of the batch that this was made for, and then calls finish(loss), which
  // may read the gradient and the loss where they lie. Random numbers depend on `step`.
  using Finish = FunctionRef<void(const void* loss)>;
  virtual void run(const Batch& batch, int64_t step, Finish finish) = 0;
};

struct Batch {
  int64_t index = 0;  // number of the batch in its epoch, among those of all ranks
  Sample sample;
  // The rows of all sample.vertices (if LoaderFeatures::wanted is set: of the wanted vertices), in
  // the memory of the sink. They are valid until next() has been called 1 + LoaderOptions::kept
  // times.
  void* features = nullptr;
  std::shared_ptr<PreparedBatch> prepared;  // what the hook made of the sample; null without a hook
};

// Seconds since the loader was made.
struct LoaderTimes {
  // Time that all threads together were busy with each stage.
  double sample_pick = 0, sample_insert = 0, reindex = 0, lookup = 0, transfer = 0, prepare = 0;
  double waited = 0;           // time that next() waited for a batch
  double waited_for_rows = 0;  // the part of `waited` in which a RowSource was reading rows of the
                               // batch
  double copied = 0;           // the result of FeatureSink::seconds()
  // Number of batches that were drawn by samplers of the usual kind, and by those of the second
  // kind (Sampler::make_second_sampler()).
  int64_t drawn = 0, drawn_second = 0;

  LoaderTimes& operator+=(const LoaderTimes& other);
};

class BatchLoader {
 public:
  // Does the work on a finished sample that does not need its features. Any thread may call it.
  using Prepare = std::function<std::shared_ptr<PreparedBatch>(const Sample&, const SampleKey&)>;

  // The sampler, the sink and the sources must outlive the loader.
  BatchLoader(const Sampler& sampler, BatchOrder order, LoaderFeatures features, FeatureSink& sink,
              const LoaderOptions& options, Prepare prepare = {});
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  int64_t num_batches() const;
  // Lets batches `first` … num_batches() - 1 of the loader's order come next. Batches of an earlier
  // call that nobody took are dropped; the last batch that was taken stays valid. If `more` epochs
  // follow, the first batches of epoch + 1 are in flight beside the last ones of this epoch, and
  // begin_epoch(epoch + 1) finds them there when all batches of this epoch were taken. Groups
  // (LoaderOptions::group) go on into epochs that follow.
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
