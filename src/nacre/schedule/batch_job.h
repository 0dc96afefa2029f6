// BatchJob: loads one batch, from its seeds to its features, in subtasks. It says which subtasks
// can run, and runs them; the scheduler decides when and on which thread. Only files of this room
// include this header.
#pragma once

#include <exception>
#include <span>
#include <utility>
#include <vector>

#include "nacre/schedule/row_source.h"
#include "nacre/schedule/sample_source.h"
#include "nacre/schedule/stage.h"

namespace nacre {

// Holds what all batches of a loader share.
struct LoaderContext {
  LoaderContext(const Sampler& s, LoaderFeatures f, FeatureSink& k, const LoaderOptions& o, BatchLoader::Prepare p);

  const Sampler& sampler;
  LoaderFeatures features;
  FeatureSink& sink;
  LoaderOptions options;
  BatchLoader::Prepare prepare;
  RowSource* source;      // where rows are looked up; null: `features` holds all of them
  SampleSource* samples;  // where samples come from; null: the loader samples
  int hops;
  int64_t row_bytes;   // bytes from one row to the next in the memory of the sink
  int64_t chunk_rows;  // number of rows that one subtask looks up
  StageClock clock;

  // Appends to `list` those of `ids` whose rows are looked up.
  void add_wanted(std::span<const NodeId> ids, std::vector<NodeId>& list) const;
  // Does stage K for loaders without a RowSource: copies the features of `ids` to `to`, one row
  // after the other.
  void look_up(std::span<const NodeId> ids, void* to) const;
  // Does stage K for any loader: copies the features of `ids` to `to`. The vertices `ids` stand in
  // the batch from position `first` on.
  void look_up(BatchTurn batch, int64_t first, std::span<const NodeId> ids, void* to) const;
};

// Holds the samplers of one batch at a time: the usual one, and the second one
// (Sampler::make_second_sampler()) if LoaderOptions::second asks for it. Each is made at its first
// use, and kept.
class ChosenSampler {
 public:
  // Returns the sampler that draws the batch of `key`, and makes it the chosen one.
  BatchSampler& choose(LoaderContext& context, const SampleKey& key);
  BatchSampler& get() { return *chosen_; }
  // Returns the sample of the batch, which the chosen sampler has drawn.
  Sample finish() { return chosen_->finish(); }

 private:
  std::unique_ptr<BatchSampler> usual_, second_;
  BatchSampler* chosen_ = nullptr;
};

struct Subtask {
  enum class Kind : uint8_t {
    take,       // S: takes the whole sample from the SampleSource
    pick,       // S: chooses edges; without LoaderOptions::relax also does what insert does
    insert,     // S: updates the hash table
    reindex,    // R: builds the block of the hop with local numbers
    make_room,  // takes the memory that K writes to from the sink
    look_up,    // K: looks up rows [begin, end)
    send,       // T: sends rows [begin, end)
    prepare,    // finishes the sample and calls the caller's hook
  };
  Kind kind = Kind::pick;
  int hop = 0;
  int64_t begin = 0, end = 0;
};

class BatchJob {
 public:
  BatchJob(LoaderContext& context, int slot) : context_(context), slot_(slot) {}

  // One thread at a time calls the following functions. They append the subtasks that can run now
  // to `ready`.
  //
  // Begins a batch with these seeds, or with the sample that the SampleSource has drawn. `index`
  // counts the batches of the loader in the epoch of `key`.
  void start(int64_t index, std::span<const NodeId> seeds, const SampleKey& key, std::vector<Subtask>& ready);
  // Begins a batch whose sample was drawn before.
  void start(int64_t index, Sample sample, const SampleKey& key, std::vector<Subtask>& ready);
  void done(const Subtask& task, std::vector<Subtask>& ready);
  // Says that a subtask that was queued will not run, because another one failed.
  void skipped() { --pending_; }
  void fail(std::exception_ptr error);
  // Makes the batch fail after done() has appended subtasks of which `lost` will never run.
  void fail_with(std::exception_ptr error, int64_t lost);
  bool failed() const { return error_ != nullptr; }
  // Returns whether no subtask is left to run.
  bool complete() const;
  // Returns the place of the batch in the order in which batches are taken: the epoch, and the
  // number of the batch in it.
  std::pair<uint64_t, int64_t> turn() const { return {key_.epoch, index_}; }
  // Returns whether the RowSource was asked for the rows of the batch and has not read them yet.
  bool waits_for_rows() const { return !rows_here_; }
  // Tells the job that nobody will take its batch.
  void drop() { rows_here_ = true; }
  // Asks the RowSource again whether it has read the rows, if waits_for_rows() is true. Appends the
  // subtasks that can run then to `ready`.
  void ask_for_rows(std::vector<Subtask>& ready);
  // Returns the batch if it is complete(). Throws what a subtask threw.
  Batch take();

  // Runs a subtask that is ready. Several threads may run different subtasks at the same time.
  void run(const Subtask& task);

 private:
  void begin(int64_t index, const SampleKey& key);
  void know_all();
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
  ChosenSampler sampler_;
  int64_t index_ = 0;
  std::span<const NodeId> seeds_;
  bool drawn_ = false;  // whether the job gets the whole sample at once
  SampleKey key_;
  // For each hop, this holds the vertices that first appear in it and whose rows are looked up.
  // They are copied, because the list of the sampler may move.
  std::vector<std::vector<NodeId>> ids_;
  std::vector<int64_t> hop_end_;  // for each hop, rows to look up in it and in earlier hops
  size_t known_ = 0;              // number of vertices known after the last hop that was inserted

  char* buffer_ = nullptr;
  int64_t capacity_ = 0;     // number of rows that fit into the buffer
  bool has_buffer_ = false;  // whether the sink was asked for a buffer for this batch
  // Rows [0, open_) belong to hops that K may work on, the look-ups of rows [0, given_) were given
  // out as subtasks, rows [0, found_) are looked up, and rows [0, sent_) are sent.
  int64_t open_ = 0, given_ = 0, found_ = 0, sent_ = 0;
  int hops_open_ = 0;
  struct Chunk {
    int64_t end;
    bool found;
  };
  std::vector<Chunk> chunks_;  // chunks of the rows given out
  size_t chunks_found_ = 0;    // number of leading chunks that are looked up
  int lookups_ = 0;            // look-ups that were given out and are not done
  bool making_room_ = false, sending_ = false;
  bool rows_here_ = true;  // whether the rows can be looked up
  bool released_ = false;  // whether the RowSource was told that all rows are looked up
  int reindexed_ = 0;
  bool prepare_given_ = false, prepared_ = false;
  int pending_ = 0;  // subtasks that were given out and are not done
  std::exception_ptr error_;
  Batch batch_;
};

}  // namespace nacre
