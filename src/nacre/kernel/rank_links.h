// RankLinks: the connection of one rank to the others, as the communication operations of a DFG
// need it. A rank is a device with a share of the vertices.
#pragma once

#include <cstdint>
#include <memory>

#include "nacre/dfg/dfg.h"
#include "nacre/graph/graph.h"

namespace nacre {

// A communication operation and its memory, which lies where the rank keeps its values. `to` may
// begin where `from` begins; otherwise the two must not overlap.
struct Communication {
  Op op = Op::exchange;  // exchange, exchange_add or all_reduce
  const float* from = nullptr;
  float* to = nullptr;
  int64_t rows = 0;   // rows of `from`
  int64_t width = 0;  // elements of a row
};

// A communication operation that was started. Destroying it before finish() has returned means that
// the rank has failed.
class PendingCommunication {
 public:
  virtual ~PendingCommunication() = default;
  // When this returns, work that the rank begins or queues may use the result and may overwrite the
  // operand. Waits for other ranks, and throws if one has failed.
  virtual void finish() = 0;
};

class RankLinks {
 public:
  virtual ~RankLinks() = default;

  // Return the numbers in the whole graph of the rank's own vertices and then of its halo, and of
  // the edges of its block. Random draws depend on these numbers, so that a row is treated alike on
  // any number of ranks.
  virtual const Array<NodeId>& vertex_ids() const = 0;
  virtual const Array<EdgeId>& edge_ids() const = 0;

  // Returns how many rows the space has on all ranks together, each vertex counted once. Decisions
  // that change what ranks send must depend on these numbers alone, so that all ranks decide alike.
  virtual int64_t total_rows(Space space) const = 0;

  // The functions below wait for other ranks. All ranks must call them in the same order, with the
  // same sizes of rows. They throw if a rank has failed.

  // Copies the rows of the own vertices to `all` and fills the rows of the halo, which come from
  // the ranks that own them. `row_bytes` is the size of a row.
  virtual void exchange(const void* own, void* all, int64_t row_bytes) = 0;
  // Adds, for each own vertex, its row in `all` and the rows that other ranks have in their halos
  // for this vertex, in the order of the ranks. `width` is the number of elements of a row.
  virtual void exchange_add(const float* all, float* own, int64_t width) = 0;
  virtual void exchange_add(const double* all, double* own, int64_t width) = 0;
  // Replaces each of `count` values by the sum over all ranks, in their order. All ranks get the
  // same bits.
  virtual void all_reduce(float* values, int64_t count) = 0;
  virtual void all_reduce(double* values, int64_t count) = 0;

  // Starts an operation, which goes on while the rank computes. Until finish() has returned,
  // nobody may change the operand or use the result. All ranks must start the same operations in
  // the same order. This version does everything in finish().
  virtual std::unique_ptr<PendingCommunication> start(const Communication& what);
};

}  // namespace nacre
