// Made-up samples for tests of regressors.
#pragma once

#include <vector>

#include "nacre/base/philox.h"
#include "nacre/cost/regress/samples.h"

namespace nacre::test {

// Returns samples whose features are uniform in [0, 1) and whose targets are target(features).
template <class Target>
SampleTable samples_of(int64_t rows, int64_t columns, const Target& target, uint64_t seed) {
  SampleTable table;
  std::vector<double> x(columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < columns; ++c) x[c] = uniform01(philox(seed, i, c)[0]);
    table.add(x, target(x));
  }
  return table;
}

}  // namespace nacre::test
