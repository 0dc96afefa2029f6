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

struct CopyPlan {
  std::vector<CopyPart> parts;
  void* zeros = nullptr;  // memory that no part fills
  int64_t zero_bytes = 0;
};

// Plans join_rows, slice_rows, and index_add of the destinations' own rows. Pointers belong to the
// back end.
CopyPlan plan_copy(const Executor& executor, const Kernel& kernel);

}  // namespace nacre
