// Coefficients of edges that are products of a value of either end, as in a symmetric normalisation, are applied at the
// vertices: Σ_e a[src]·b[dst]·x[src] = b · Σ_e (a·x)[src]. Nothing is kept for each edge then.
#pragma once

#include "nacre/dfg/dfg.h"

namespace nacre {

// Sums over neighbours of values that change. (Those of raw features are taken once: their coefficients are computed on
// the way.)
Dfg factor_sums(const Dfg& dfg);

// Row factors behind products of vertices' rows: (s·x)·W = s·(x·W), and (s·x)ᵀ·g = xᵀ·(s·g), so that x and s·x are not
// both kept. After the choices at sites, whose products these are. Factors of sums go the other way, to the sums: these
// scale their rows as they write them.
Dfg delay_row_factors(const Dfg& dfg);

}  // namespace nacre
