// CopyPlan: says what a kernel of the kind copy moves, which is the same on every back end.
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

// Describes a copy of rows of f32 from or to listed places. The list is in host memory that the
// blocks of the executor keep.
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

// Returns what a kernel copies that computes join_rows, slice_rows, or index_add of the
// destinations' own rows. Pointers are addresses in the memory of the back end.
CopyPlan plan_copy(const Executor& executor, const Kernel& kernel);

}  // namespace nacre
