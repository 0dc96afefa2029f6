// What a kernel of the kind copy moves; the same for every back end.
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

// Rows of f32 whose places are listed, in host memory that the blocks of the executor keep.
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
  std::vector<ListedCopy> listed;  // rows of vertices of single kinds
  int64_t width = 0;               // floats of a listed row
  void* zeros = nullptr;           // memory that no part fills
  int64_t zero_bytes = 0;
};

// Plans join_rows, slice_rows, and index_add of the destinations' own rows. Pointers belong to the
// back end.
CopyPlan plan_copy(const Executor& executor, const Kernel& kernel);

}  // namespace nacre
