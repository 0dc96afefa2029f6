// BatchSequence: tells which rows the batches of a run read, long before the batches are loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "nacre/sample/sample.h"
#include "nacre/schedule/row_source.h"

namespace nacre {

// Writes the rows of the batches of a run, one batch after the other. Only one thread at a time may
// use an object.
class BatchSequence {
 public:
  virtual ~BatchSequence() = default;
  virtual int64_t batches_per_epoch() const = 0;
  // Makes `first` the batch that the next call of next() writes.
  virtual void begin(BatchTurn first) = 0;
  // Writes the rows of the next batch to `rows`, in the order of the batch. The batch after the
  // last one of an epoch is the first one of the following epoch.
  virtual void next(std::vector<NodeId>& rows) = 0;
};

// For each vertex: LoaderFeatures::kWanted if its row is wanted. Null: all rows are wanted.
using WantedRows = std::shared_ptr<const std::vector<uint8_t>>;

// Returns the sequence of the batches that a loader with the same sampler and order loads. Only
// neighbours are drawn; no blocks are made. `drawer` must come from `sampler`, which must outlive
// the sequence.
std::unique_ptr<BatchSequence> sampled_batches(const Sampler& sampler, std::unique_ptr<BatchSampler> drawer,
                                               BatchOrder order, WantedRows wanted = nullptr);

// Returns a sequence of `count` lists of rows, which the function `rows` writes. After the last
// list, the sequence begins again with the first.
std::unique_ptr<BatchSequence> listed_batches(int64_t count,
                                              std::function<void(int64_t index, std::vector<NodeId>& rows)> rows);

}  // namespace nacre
