// Deals out the columns of an embedding to ranks that aggregate over the whole graph (NeutronTP,
// PVLDB 18(2), 2024).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace nacre {

// Returns where the columns of each rank begin, and at the end `width`: rank r gets columns
// [result[r], result[r+1]), in proportion to its share. If each rank can have several groups of
// four columns, the bounds are multiples of four, so that rows stay aligned. Ranks may get no
// columns. Without shares, or if all of them are 0, the first rank gets all columns.
std::vector<int64_t> column_bounds(int64_t width, std::span<const double> shares);

}  // namespace nacre
