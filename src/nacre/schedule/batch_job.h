// BatchJob: one batch on its way from seeds to features, as subtasks. It says which of them can run and runs them; when
// and where is the scheduler's matter. Internal to the room.
#pragma once

#include <exception>
#include <span>
#include <utility>
#include <vector>

#include "nacre/schedule/stage.h"

namespace nacre {

// What all batches of a loader share.
struct LoaderContext {
  LoaderContext(const Sampler& s, Tensor f, FeatureSink& k, const LoaderOptions& o, BatchLoader::Prepare p);

  const Sampler& sampler;
  Tensor features;
  FeatureSink& sink;
  LoaderOptions options;
  BatchLoader::Prepare prepare;
  int hops;
  int64_t row_bytes;
  int64_t chunk_rows;  // looked up by one subtask
  StageClock clock;

  // K: the features of `ids`, one after the other.
  void look_up(std::span<const NodeId> ids, void* to) const;
};

struct Subtask {
  enum class Kind : uint8_t {
    pick,       // S, the algorithm; with the hash table's update where contention is not relaxed
    insert,     // S, the hash table
    reindex,    // R
    make_room,  // for K to write to
    look_up,    // K, of rows [begin, end)
    send,       // T, likewise
    prepare,    // the finished sample and the caller's hook
  };
  Kind kind = Kind::pick;
  int hop = 0;
  int64_t begin = 0, end = 0;
};

class BatchJob {
 public:
  BatchJob(LoaderContext& context, int slot) : context_(context), slot_(slot) {}

  // The following are called by one thread at a time. What became ready is appended to `ready`.
  void start(int64_t index, std::span<const NodeId> seeds, uint64_t epoch, std::vector<Subtask>& ready);
  void done(const Subtask& task, std::vector<Subtask>& ready);
  // A subtask that did not run because another one failed.
  void skipped() { --pending_; }
  void fail(std::exception_ptr error);
  // After done(): `lost` of the subtasks it made ready will never run.
  void fail_with(std::exception_ptr error, int64_t lost);
  bool failed() const { return error_ != nullptr; }
  // Nothing more is to be run.
  bool complete() const;
  // Earlier ones first: the epoch, and the batch in it.
  std::pair<uint64_t, int64_t> turn() const { return {epoch_, index_}; }
  // Of a complete batch: throws what a subtask threw.
  Batch take();

  // From any thread, subtasks that are ready side by side.
  void run(const Subtask& task);

 private:
  void sample(const Subtask& task);
  void make_room(const Subtask& task);
  void finish_sample();
  void after_insert(int hop, std::vector<Subtask>& ready);
  void after_reindex(int hop, std::vector<Subtask>& ready);
  void advance(std::vector<Subtask>& ready);
  void emit(Subtask task, std::vector<Subtask>& ready);
  void emit_lookups(std::vector<Subtask>& ready);
  int hop_of(int64_t row) const;
  bool all_open() const { return hops_open_ == context_.hops; }
  bool all_sent() const { return all_open() && sent_ == open_; }

  LoaderContext& context_;
  int slot_;
  std::unique_ptr<BatchSampler> sampler_;  // made by the first batch
  int64_t index_ = 0;
  std::span<const NodeId> seeds_;
  uint64_t epoch_ = 0;
  std::vector<std::vector<NodeId>> ids_;  // per hop: the vertices it met first; the sampler's own list may move
  std::vector<int64_t> hop_end_;          // per hop: vertices known after it

  char* buffer_ = nullptr;
  int64_t capacity_ = 0;     // rows that fit
  bool has_buffer_ = false;  // asked for, for this batch
  // Rows: of hops K may work on, of which K's subtasks were given out, all those before which are looked up, sent.
  int64_t open_ = 0, given_ = 0, found_ = 0, sent_ = 0;
  int hops_open_ = 0;
  struct Chunk {
    int64_t end;
    bool found;
  };
  std::vector<Chunk> chunks_;  // of the rows given out
  size_t chunks_found_ = 0;    // the leading ones that are looked up
  int lookups_ = 0;            // given out and not done
  bool making_room_ = false, sending_ = false;
  int reindexed_ = 0;
  bool prepare_given_ = false, prepared_ = false;
  int pending_ = 0;  // subtasks given out and not done
  std::exception_ptr error_;
  Batch batch_;
};

}  // namespace nacre
