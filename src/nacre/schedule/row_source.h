// RowSource: the object that stage K asks for feature rows if they are not all in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "nacre/sample/sample.h"

namespace nacre {

// Names the place of a batch among all batches of a run.
struct BatchTurn {
  uint64_t epoch = 0;
  int64_t index = 0;  // number of the batch in its epoch

  bool operator==(const BatchTurn&) const = default;
};

// RowSource gives the rows of batches. The loader asks for the batches of a run in their order,
// several at a time. Any thread may call the functions, unless the comment of a function says
// something else.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // Announces that the batches from `first` to the end of its epoch come next and, if `more` is
  // true, those of the following epoch after them. Batches of earlier calls that are not over are
  // dropped. No other thread may use the source during the call.
  virtual void begin(BatchTurn first, bool more) = 0;
  // Tells the source that the epoch that was announced by `more` has begun, and whether another
  // epoch follows it.
  virtual void go_on(bool more) = 0;
  // Returns whether the rows of a batch can be looked up. If reading has failed, returns true, and
  // look_up() throws the failure.
  virtual bool ready(BatchTurn batch) = 0;
  // Waits until ready(batch) is true.
  virtual void wait(BatchTurn batch) = 0;
  // Sets the function that is called whenever ready() becomes true for a batch. When listen()
  // returns, the function that was set before is not called any more.
  virtual void listen(std::function<void()> call) = 0;
  // Copies rows of a batch to `to`, `stride` bytes apart. They are the rows of `ids`, which stand
  // among the vertices of the batch from position `first` on. If reading the rows has failed,
  // throws the exception of that failure.
  virtual void look_up(BatchTurn batch, int64_t first, std::span<const NodeId> ids, void* to, int64_t stride) = 0;
  // Tells the source that all rows of a batch were looked up.
  virtual void release(BatchTurn batch) = 0;
};

}  // namespace nacre
