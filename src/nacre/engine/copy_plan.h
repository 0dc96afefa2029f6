// What a kernel of kind copy moves, the same for every back end.
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

struct CopyPlan {
  std::vector<CopyPart> parts;
  void* zeros = nullptr;  // what no part fills
  int64_t zero_bytes = 0;
};

// join_rows, slice_rows, and index_add of destinations' own rows. Pointers are the back end's.
CopyPlan plan_copy(const Executor& executor, const Kernel& kernel);

}  // namespace nacre
