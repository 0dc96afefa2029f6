// Parallel loops. They are cut into chunks whose borders depend on the problem only, never on the number of
// threads; code that reduces per chunk and combines chunks in order gives the same bits on any machine.
#pragma once

#include <cstdint>

#include "nacre/base/function_ref.h"

namespace nacre {

// Number of threads used by all parallel loops from now on (default: all hardware threads).
void set_num_threads(int threads);
int num_threads();

// Calls body(begin, end) for consecutive chunks of [0, n) of `chunk` elements each (the last may be shorter).
void parallel_for(int64_t n, int64_t chunk, FunctionRef<void(int64_t, int64_t)> body);

// Calls body(i) for every i in [0, n), one task each.
void parallel_tasks(int64_t n, FunctionRef<void(int64_t)> body);

// Index in [0, num_threads()) of the calling worker inside a parallel loop: for scratch space only, never for results.
int thread_index();

}  // namespace nacre
