// These functions forecast what a step of a plan costs a rank, without running the step: the bytes
// that the rank sends and receives, and the actions that it takes one after the other, with
// predicted seconds (cost/step_clock.h). Only numbers of rows are needed, so the graph of the rank
// need not be there.
#pragma once

#include <vector>

#include "nacre/cost/step_clock.h"
#include "nacre/partition/local_graph.h"
#include "nacre/plan/plan.h"
#include "nacre/plan/work.h"

namespace nacre {

// Counts the rows that a rank exchanges with one other rank.
struct PeerCount {
  int rank = 0;
  double halo = 0, sent = 0;
};

// Says how many rows a rank has.
struct RankRows {
  double own = 0;   // number of the rank's own vertices
  double halo = 0;  // number of vertices of other ranks that the rank reads
  // Number of own vertices that others read, counted once for each rank that reads them.
  double sent = 0;
  double edges = 0;  // number of edges that lead to own vertices
  double pairs_src = 0, pairs_dst = 0;
  double types = 1;  // number of edge types
  // For each other rank: its part of `halo` and of `sent`. It may be empty if all ranks store rows
  // alike.
  std::vector<PeerCount> peers;

  // Holds the same numbers for another graph of the rank (RankViews).
  struct View {
    int layer = -1;  // layer of that graph; -1 if the rank does not have it
    double own = 0, halo = 0, sent = 0, edges = 0, pairs_src = 0, pairs_dst = 0;
    std::vector<PeerCount> peers;

    bool has(Space space) const { return layer >= 0 && space.layer >= layer && space.layer <= layer + 1; }
  };
  View whole, reversed;

  double operator()(Space space) const;
};

// Refers to the part of the graph that one rank has.
struct RankPart {
  const Blocks& blocks;
  const LocalGraph& local;
  const LocalGraph* reversed = nullptr;  // null if the blocks have no reversed edges
};

RankRows rows_of(const LocalGraph& local);
RankRows rows_of(const RankPart& part);  // counts rows of the rank's other graphs, too

// Describes one communication of a step, and counts the bytes that a rank moves in it.
struct StepCall {
  size_t kernel = 0;
  Op op = Op::exchange;
  double sent = 0, received = 0;  // bytes that the rank sends and receives
};

// Returns what the rank sends and receives in a step, in the order of the step, as a communicator
// counts it. What is computed once before the first step does not count.
std::vector<StepCall> step_calls(const Plan& plan, const RankRows& rows, int rank, int ranks);
// Returns the bytes of rows that a rank receives in these calls. Sums over all ranks do not count.
double received_row_bytes(const std::vector<StepCall>& calls);
// Returns the bytes of rows that a rank receives in a step: rows of its halo, rows that others have
// for its own vertices, and columns.
int64_t received_bytes(const Plan& plan, const RankPart& part);

// Returns what a rank does in a step, with predicted seconds. `rows` gives its numbers of rows.
// A kernel with early rows has two parts, and the second begins when the rows have arrived. Moving
// the bytes of a communication takes as long as the device takes for rows that lie far away.
RankStep forecast_rank(const Plan& plan, RowsOf rows, const CostModel& model, int64_t cache_bytes, bool overlap);

}  // namespace nacre
