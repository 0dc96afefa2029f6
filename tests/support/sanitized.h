// Says whether a sanitizer watches the tests. Tests of values are many times slower under a
// sanitizer. It looks for other faults than wrong values, so only a part of the cases of such tests
// runs under it.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace nacre::test {

// Returns whether this program was compiled with the address sanitizer, or runs under a tool of
// compute-sanitizer (`gpu_test.sh --sanitize` sets NACRE_SANITIZED).
inline bool sanitized() {
#ifdef __SANITIZE_ADDRESS__
  return true;
#else
  return std::getenv("NACRE_SANITIZED") != nullptr;
#endif
}

// Returns `stride` if a sanitizer watches the tests, otherwise 1. A loop over every stride-th case
// then runs all cases without a sanitizer, and a part of them under one.
inline size_t sanitized_stride(size_t stride) { return sanitized() ? stride : 1; }

}  // namespace nacre::test
