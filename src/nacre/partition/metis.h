// Calls METIS (Karypis, Kumar: SIAM J. Sci. Comput. 20(1), 1998). Only metis.cpp includes the
// header of METIS itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nacre/partition/coarsen.h"

namespace nacre {

struct MetisOptions {
  double imbalance = 0.03;
  uint64_t seed = 0;
  int tries = 1;           // number of cuts that METIS makes, of which it returns the best
  bool recursive = false;  // true: bisect again and again; false: cut into all parts at once
};

// Returns a part for every vertex of `graph`. All shares must be positive. Throws UserError if the
// graph is too large for the 32-bit numbers that METIS is built with, and RuntimeError if METIS
// fails.
std::vector<uint16_t> metis_parts(const Coarse& graph, std::span<const double> shares, const MetisOptions& options);

// Returns the bytes that METIS takes for a graph with these numbers of vertices and entries.
int64_t metis_bytes(int64_t vertices, int64_t entries);

}  // namespace nacre
