// Algorithm 1 of the paper on data placement (DP3) spreads rows over devices that read each other's
// memory. Only files of this room include this header.
#pragma once

#include <span>
#include <vector>

#include "nacre/graph/graph.h"

namespace nacre {

// Returns the rows of each device of a group. `order` has all vertices, those that are read most
// first, and `reads` belongs to the vertices. Device d holds at most capacity[d] rows.
//
// At first every device has the rows that are read most. Then copies give way to rows that no
// device has: the copy that is read least to the row that is read most, as long as the new row is
// read more than `alpha` times as often as the copy. One copy of each row stays. In a round, all
// copies of one row but one are replaced, first on the devices whose new rows are read least.
// Rule 1 of the paper is the case of one device.
std::vector<Array<NodeId>> spread_rows(const Array<NodeId>& order, std::span<const float> reads,
                                       std::span<const int64_t> capacity, double alpha);

}  // namespace nacre
