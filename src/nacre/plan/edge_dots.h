// The gradient of attention needs the dot product of the two ends of every edge. This file finds a
// sum over the same edges that can compute these dot products as well, so that rows of neighbours
// are gathered once for both (GT1).
#pragma once

#include <optional>

#include "nacre/plan/analysis.h"

namespace nacre {

// SumBesideDots names a sum over edges that gathers the rows of one end of the dot products,
// multiplies them by one factor for each edge and head, and adds them up at the other end.
struct SumBesideDots {
  NodeRef sum = -1;
  NodeRef own = -1;  // rows of the end at which the sum adds up
};

// Returns a sum whose kernel can compute `dots` from the rows that it gathers anyway, if `dots` is
// row_sum(index(x, src) · index(y, dst)), all operands of the sum are known before `dots`, and the
// sum needs no tiles of columns. Returns nothing if there is no such sum.
std::optional<SumBesideDots> find_sum_beside_dots(const Analysis& an, NodeRef dots);

}  // namespace nacre
