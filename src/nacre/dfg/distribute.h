// Turns the DFG of a model into the DFG that one of several ranks computes. Each rank owns a share
// of the vertices and all edges that end at them. The result is the same DFG with communication in
// it: rows of boundary vertices are exchanged, and what is summed over all vertices is summed over
// the ranks.
#pragma once

#include <cstdint>
#include <string>

#include "nacre/dfg/dfg.h"

namespace nacre {

// Which rows travel between ranks, if a value is computed row by row from another one and either of
// them could be sent.
enum class HaloRows : uint8_t {
  narrow,  // the value with the fewest columns
  early,   // the operand of a dense product, so that ranks compute products of their halo, too
  late,    // the value that the edges read, so that each product is computed by one rank only
};

std::string halo_rows_name(HaloRows rows);
HaloRows parse_halo_rows(const std::string& name);  // throws UserError

// Returns what one rank computes, for a DFG with or without gradients. v(l) are the rank's own
// vertices in the result, and h(l) its own vertices and its halo. All ranks get the same DFG; only
// their graphs differ. An input in v(l) may become two leaves, which hold the same rows: NAME in
// v(l), and halo_leaf(NAME) in h(l). Degrees of sources must be inputs (Sampling::blocks). Throws
// UserError if the model has rows of single kinds of vertices or learns a row for each vertex.
Dfg distribute(const Dfg& dfg, HaloRows rows = HaloRows::narrow);

// Returns the name of the leaf that holds the rows of an input for a rank's own vertices and its
// halo.
std::string halo_leaf(const std::string& input);

}  // namespace nacre
