// Draws the edges of a twin.
#pragma once

#include <vector>

#include "nacre/data/twin_layout.h"
#include "nacre/data/twin_plan.h"
#include "nacre/graph/graph.h"

namespace nacre {

// A sorted list of vertices for each of the rows [begin, begin + row_ptr.size() - 1).
struct Rows {
  int64_t begin = 0;
  Array<int64_t> row_ptr;
  Array<NodeId> columns;
  int64_t count() const { return row_ptr.size() - 1; }
};

// Draws distinct partners for every vertex of the relation's first kind, exactly relation.draws in
// all. In a symmetric relation within one kind, no pair is drawn from both of its ends.
Rows draw_rows(const TwinPlan& plan, int relation, const KindLayout& from, const KindLayout& to);

// Returns the pairs of `rows` grouped by column: the columns become the rows [begin, begin +
// count).
Rows turn_rows(const Rows& rows, int64_t begin, int64_t count);

// Draws all edges of a power-law twin. `layouts` has one entry per kind.
Graph draw_graph(const TwinPlan& plan, const std::vector<KindLayout>& layouts);

// Draws a road network: a lattice with some streets missing and a few diagonals. Vertices are
// numbered row by row.
Graph draw_roads(const TwinPlan& plan);
int64_t road_width(const TwinPlan& plan);

}  // namespace nacre
