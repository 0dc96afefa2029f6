// The way of a mini-batch from its seeds to the device (GraphTensor's tensor scheduler): sampling (S), reindexing (R),
// feature look-up (K) and transfer (T), as subtasks per hop with their real dependencies, several batches in flight
// beside the computation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "nacre/sample/sample.h"
#include "nacre/tensor/tensor.h"

namespace nacre {

// Each measure can be switched off, for comparison.
struct LoaderOptions {
  int in_flight = 3;     // batches prepared ahead of the one that is computed; 0: prepared when asked for
  bool subtasks = true;  // per hop, each as soon as what it needs is there; off: S, R, K, T of all hops in turn
  bool relax = true;     // the choice of edges runs beside the hash tables' updates; off: S is one task
  bool stream = true;    // T sends the rows of a hop while K looks up the next ones; off: T waits for all of K
};

// T: where looked-up rows go. A slot, of 0 … in_flight, holds the features of one batch and is used again when that
// batch is over. Calls come from any thread: for different slots side by side, for one slot one after the other;
// finish() on the thread that calls next(). A batch that is dropped is not finished.
class FeatureSink {
 public:
  virtual ~FeatureSink() = default;
  // Host memory of a slot that K writes to, at least `bytes` long; what was written stays when it grows. It moves in
  // this call only.
  virtual void* buffer(int slot, int64_t bytes) = 0;
  // Bytes [begin, end) of the buffer are there: send them on. They follow those sent before; another thread may be
  // writing later ones.
  virtual void send(int slot, int64_t begin, int64_t end) = 0;
  // All `bytes` were sent: where the computation finds them.
  virtual void* finish(int slot, int64_t bytes) = 0;
  // Waits until what was sent is there.
  virtual void settle(int /*slot*/) {}
  // Of transfers that run beside the threads that send: how long they took, as far as it is known yet.
  virtual double seconds() { return 0; }
};
// Features stay in host memory.
std::unique_ptr<FeatureSink> make_host_sink();

struct Batch;

// What a session makes of a finished sample before its turn comes, and computes the batch with.
class PreparedBatch {
 public:
  virtual ~PreparedBatch() = default;
  // Runs step `step` of the session on the batch that this was made for, with learning rate `lr`.
  virtual void run(const Batch& batch, int64_t step, double lr) = 0;
};

struct Batch {
  int64_t index = 0;  // in its epoch
  Sample sample;
  // Rows of all sample.vertices, where the sink left them; valid until the next next().
  void* features = nullptr;
  std::shared_ptr<PreparedBatch> prepared;  // what the hook made of the sample; null without a hook
};

// Seconds since the loader was made.
struct LoaderTimes {
  double sample_pick = 0, sample_insert = 0, reindex = 0, lookup = 0, transfer = 0, prepare = 0;  // busy, all threads
  double waited = 0;  // next() had no batch yet
  double copied = 0;  // FeatureSink::seconds()
};

class BatchLoader {
 public:
  // Work on a finished sample that does not need the features, such as partitioning its blocks.
  using Prepare = std::function<std::shared_ptr<PreparedBatch>(const Sample&)>;

  // `features`: one row per vertex; may be mapped. The sampler and the sink must outlive the loader.
  BatchLoader(const Sampler& sampler, BatchOrder order, Tensor features, FeatureSink& sink,
              const LoaderOptions& options, Prepare prepare = {});
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  int64_t num_batches() const;
  // Batches `first` … num_batches() - 1 of the epoch come next. Batches of an earlier call that nobody took are
  // dropped; the last one taken stays. With `more`, the first batches of epoch + 1 are in flight beside the last ones
  // of this epoch; when all of these were taken, begin_epoch(epoch + 1) finds them.
  void begin_epoch(uint64_t epoch, int64_t first = 0, bool more = false);
  // In order. Throws what a subtask threw. The batch before it is over.
  Batch next();
  LoaderTimes times() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nacre
