// Parallel loops. A loop is cut into chunks whose borders depend on the problem only, never on the
// number of threads. Code that reduces within each chunk and combines the chunks in order therefore
// gives the same bits on any machine.
#pragma once

#include <cstdint>

#include "nacre/base/function_ref.h"

namespace nacre {

// Sets the number of threads that all parallel loops use from now on. The default is one for every
// processor that this process may use.
void set_num_threads(int threads);
int num_threads();

// Calls body(begin, end) for consecutive chunks of [0, n) of `chunk` elements each (the last may be
// shorter).
void parallel_for(int64_t n, int64_t chunk, FunctionRef<void(int64_t, int64_t)> body);

// Calls body(i) for every i in [0, n). Each call is a task of its own.
void parallel_tasks(int64_t n, FunctionRef<void(int64_t)> body);

// Returns the index in [0, num_threads()) of the calling worker inside a parallel loop. Use it to
// find scratch space, never for anything that changes results.
int thread_index();

}  // namespace nacre
