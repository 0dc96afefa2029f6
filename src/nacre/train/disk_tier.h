// DiskTier: the features of a run that stay in their file, because they are larger than
// --host-budget. Rows are read for the batches of training and for the blocks of evaluation before
// these need them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nacre/data/stored_rows.h"
#include "nacre/engine/memory.h"
#include "nacre/tier/disk_rows.h"
#include "nacre/train/config.h"

namespace nacre {

// Returns where the features of a run are read from, if they stay on disk; nothing if they are in
// memory. Throws a UserError if they must stay on disk but cannot be read row by row.
std::optional<StoredRows> rows_on_disk(const RunConfig& config, const Dataset& dataset);
// Returns the bytes of the features that will stay on disk. The data need not have been read yet.
int64_t bytes_on_disk(const RunConfig& config, int64_t feature_bytes);

class DiskTier {
 public:
  DiskTier(const RunConfig& config, const StoredRows& rows);

  // Divides the budget between training on batches of at most `batch_rows` rows and, if the session
  // evaluates, evaluation. Throws a UserError if the rows of a batch do not fit.
  void divide(int64_t batch_rows, bool evaluates);
  // Takes a sampler with which the look-ahead draws batches.
  void draw_with(std::unique_ptr<BatchSampler> drawer) { drawer_ = std::move(drawer); }
  // Returns the bytes that the rows of a block of evaluation may take.
  int64_t block_bytes() const;

  // Reads the rows of these vertices from disk and returns them.
  Tensor read(std::span<const NodeId> ids) const;
  // Returns the source of the batches of training, which the first call makes. Rows that are not
  // wanted are not read.
  RowSource* source(const Sampler& sampler, const BatchOrder& order, const WantedRows& wanted);
  // Returns a source for one evaluation. When the evaluation is over, the caller gives the source
  // to count().
  std::unique_ptr<DiskRows> evaluation_source(std::unique_ptr<BatchSequence> blocks) const;
  void count(const DiskRows& evaluation);

  std::vector<MemoryItem> memory(int in_flight) const;
  // Returns the counters of training and of evaluation since the beginning of the run.
  DiskCounters training() const { return source_ ? source_->counters() : DiskCounters(); }
  const DiskCounters& evaluation() const { return evaluation_; }
  int64_t row_bytes() const { return file_->layout().row_bytes; }
  // Returns a sentence that says where features are and how they are read.
  std::string note() const;

 private:
  int64_t budget_;
  std::shared_ptr<const RowFile> file_;
  std::unique_ptr<BatchSampler> drawer_;
  PackOptions pack_;
  TierSizes sizes_, evaluation_sizes_;
  int64_t batch_rows_ = 0;
  bool evaluates_ = false;
  std::unique_ptr<DiskRows> source_;
  DiskCounters evaluation_;
};

// Returns `after` - `before`.
DiskCounters since(const DiskCounters& after, const DiskCounters& before);
// Returns the counters as a JSON object. `waited` is the number of seconds that steps waited for
// rows; negative if it is not known.
std::string disk_json(const DiskCounters& counters, int64_t row_bytes, double waited);

}  // namespace nacre
