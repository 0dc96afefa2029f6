// RankLinks: the connection of one rank to the others, as the communication operations of a DFG
// need it. A rank is a device with a share of the vertices.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/dfg/dfg.h"
#include "nacre/graph/graph.h"

namespace nacre {

// Says how ranks store the rows of a communication. Rows travel as bf16 to and from every rank that
// stores them so.
struct RowTypes {
  bool narrow = false;                       // whether this rank stores bf16; otherwise it stores
                                             // f32
  const std::vector<char>* ranks = nullptr;  // whether each rank stores bf16; null or empty: no
                                             // rank does

  // Returns whether rows to and from another rank are converted, because this rank stores f32 and
  // the other one bf16.
  bool converts(int rank) const { return !narrow && ranks != nullptr && !ranks->empty() && (*ranks)[rank] != 0; }
};

// A communication operation and its memory, which lies where the rank keeps its values. `to` may
// begin where `from` begins, except for to_columns and to_rows; otherwise the two must not overlap.
struct Communication {
  Op op = Op::exchange;        // an operation of OpClass::communication
  const void* from = nullptr;  // floats, or bf16 if types.narrow is set
  void* to = nullptr;
  int64_t rows = 0;   // rows of `from`
  int64_t width = 0;  // elements in a row; for to_columns and to_rows, in a row with all columns
  // For exchange and exchange_add: whether the halo is that of the reversed block (RankViews).
  bool reversed = false;
  RowTypes types = {};  // for exchange and exchange_add: how ranks store the rows

  int64_t row_bytes() const { return width * (types.narrow ? 2 : 4); }
};

// A communication operation that was started. If an object is destroyed before finish() has
// returned, the rank counts as failed.
class PendingCommunication {
 public:
  virtual ~PendingCommunication() = default;
  // When finish() returns, work that the rank begins or queues from then on may use the result and
  // may overwrite the operand. The function waits for other ranks, and throws if one has failed.
  virtual void finish() = 0;
};

// Counts the rank's own vertices that can be computed while ranks still communicate. These vertices
// are the first ones of the rank. The first `alone` of them are alone vertices, and the first
// `inside` are inside vertices, which include the alone ones.
struct EarlyRows {
  int64_t alone = 0;   // number of vertices that no edge connects with other ranks
  int64_t inside = 0;  // number of vertices to which no edge leads from other ranks
};

class RankLinks {
 public:
  virtual ~RankLinks() = default;

  // Returns the number of this rank.
  virtual int rank() const = 0;
  // Returns the share of each rank in the columns of values that ranks aggregate over the whole
  // graph (dfg/columns.h).
  virtual const std::vector<double>& shares() const = 0;

  // Return the numbers in the whole graph of the rank's own vertices and then of its halo, and of
  // the edges of its block. Random draws depend on these numbers, so that a row is treated alike on
  // any number of ranks.
  virtual const Array<NodeId>& vertex_ids() const = 0;
  virtual const Array<EdgeId>& edge_ids() const = 0;

  // Returns which rows can be computed while ranks communicate. This default returns none.
  virtual EarlyRows early_rows() const { return {}; }

  // Returns how many rows the space has on all ranks together, each vertex counted once. Decisions
  // that change what ranks send must depend on these numbers alone, so that all ranks decide alike.
  virtual int64_t total_rows(Space space) const = 0;

  // The functions below wait for other ranks. All ranks must call them in the same order, with the
  // same sizes of rows. They throw if a rank has failed.

  // Copies the rows of the own vertices to `all` and fills the rows of the halo, which come from
  // the ranks that own them. `row_bytes` is the size of a row. The halo is that of the rank's block
  // or, if `reversed`, that of its reversed block.
  virtual void exchange(const void* own, void* all, int64_t row_bytes, bool reversed) = 0;
  // Adds, for each own vertex, its row in `all` and the rows that other ranks have in their halos
  // for this vertex, in the order of the ranks. `width` is the number of elements of a row.
  virtual void exchange_add(const float* all, float* own, int64_t width, bool reversed) = 0;
  virtual void exchange_add(const double* all, double* own, int64_t width, bool reversed) = 0;
  // Fills `all` with this rank's columns of the rows of all vertices, in the order of the whole
  // graph. `own` has the rows of this rank's own vertices, each with `width` elements of
  // `element_bytes` bytes. A rank that has no columns gets one column of zeros.
  virtual void to_columns(const void* own, void* all, int64_t width, int64_t element_bytes) = 0;
  // Does the opposite of to_columns(): fills `own` with the rows of this rank's own vertices, with
  // all columns.
  virtual void to_rows(const void* all, void* own, int64_t width, int64_t element_bytes) = 0;
  // Replaces each of `count` values by its sum over all ranks, which is added in the order of the
  // ranks. All ranks get the same bits.
  virtual void all_reduce(float* values, int64_t count) = 0;
  virtual void all_reduce(double* values, int64_t count) = 0;

  // Starts an operation, which goes on while the rank computes. Until finish() has returned, nobody
  // may change the operand or use the result. All ranks must start the same operations in the same
  // order. This default implementation does everything in finish().
  virtual std::unique_ptr<PendingCommunication> start(const Communication& what);
};

}  // namespace nacre
