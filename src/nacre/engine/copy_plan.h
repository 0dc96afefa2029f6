// Says what a kernel of the kind copy moves. This is the same for every back end.
#pragma once

#include <cstdint>
#include <vector>

#include "nacre/engine/executor.h"

namespace nacre {

struct CopyPart {
  void* to = nullptr;
  const void* from = nullptr;
  int64_t bytes = 0;
};

// Rows of f32 that are copied from or to listed places. The list is in host memory that the blocks
// of the executor keep.
struct ListedCopy {
  void* to = nullptr;
  const void* from = nullptr;
  const Array<NodeId>* rows = nullptr;
  // With `spread`, row i of `from` goes to row rows[i] of `to`. Otherwise row rows[i] of `from`
  // goes to row i of `to`.
  bool spread = false;
};

struct CopyPlan {
  std::vector<CopyPart> parts;
  std::vector<ListedCopy> listed;  // copies of the rows of vertices of one kind each
  int64_t width = 0;               // number of floats of a listed row
  void* zeros = nullptr;           // memory that no copied row fills
  int64_t zero_bytes = 0;
};

// Plans join_rows, slice_rows, and index_add of the destinations' own rows. Pointers belong to the
// back end.
CopyPlan plan_copy(const Executor& executor, const Kernel& kernel);

}  // namespace nacre
