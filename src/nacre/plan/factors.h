// Coefficients of edges that are products of a value of either end, as in a symmetric
// normalisation, are applied at the vertices: Σ_e a[src]·b[dst]·x[src] = b · Σ_e (a·x)[src]. Then
// nothing is kept for each edge.
#pragma once

#include "nacre/dfg/dfg.h"

namespace nacre {

// Rewrites sums over neighbours of values that change from step to step. (Sums of raw features are
// computed once, with their coefficients, so they stay as they are.)
Dfg factor_sums(const Dfg& dfg);

// Moves row factors behind products of vertices' rows: (s·x)·W = s·(x·W), and (s·x)ᵀ·g = xᵀ·(s·g),
// so that x and s·x are not both kept. This comes after the choices at sites, which make these
// products. Factors of sums go the other way, to the sums, which scale their rows as they write
// them.
Dfg delay_row_factors(const Dfg& dfg);

}  // namespace nacre
