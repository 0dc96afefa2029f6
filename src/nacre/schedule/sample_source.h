// SampleSource: gives the loader the samples of its batches if they are drawn long before the
// batches are loaded. The source also says which rows of a batch are looked up.
#pragma once

#include <cstdint>
#include <vector>

#include "nacre/sample/sample.h"

namespace nacre {

class SampleSource {
 public:
  virtual ~SampleSource() = default;
  // Makes batch `first` of `epoch` the next one that is taken; `more` epochs follow this one. No
  // other thread may use the source during the call.
  virtual void begin(uint64_t epoch, int64_t first, int64_t more) = 0;
  // Says that `epoch` begins and that `more` epochs follow it. The first batches of the epoch may
  // have been taken before this call.
  virtual void go_on(uint64_t epoch, int64_t more) = 0;
  // Returns the sample of a batch, and appends the vertices whose rows are looked up to `wanted`.
  // Any thread may call this function, once for each batch.
  virtual Sample take(const SampleKey& key, std::vector<NodeId>& wanted) = 0;
};

}  // namespace nacre
