// A toy: the in-degree of every vertex, from where the edges of each destination begin.
#pragma once

#include <cstdint>

#include "nacre/base/parallel.h"

namespace nacre::cpu {

inline void toy_degrees(const int64_t* row_ptr, int64_t rows, float* out) {
  parallel_for(rows, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) out[v] = static_cast<float>(row_ptr[v + 1] - row_ptr[v]);
  });
}

}  // namespace nacre::cpu
