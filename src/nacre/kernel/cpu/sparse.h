// CPU kernels over the edges of a block. They work on raw f32 pointers. Every result is
// bit-identical on any number of threads, because the graph alone decides how work is cut into
// chunks, and rows too long for one chunk are split into pieces that are summed in order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/graph/graph.h"
#include "nacre/kernel/blocks.h"
#include "nacre/kernel/direction.h"
#include "nacre/kernel/program.h"
#include "nacre/kernel/row_span.h"

namespace nacre::cpu {

// A run of rows (or a piece of one long row) of about equal work.
struct RowChunk {
  int64_t row_begin, row_end;    // rows covered
  int64_t edge_begin, edge_end;  // entries covered
  // With partial >= 0, the chunk is a piece of row_begin, and its sum is partial number `partial`.
  int partial = -1;
};

// A row cut into pieces, and the partials that hold the sums of the pieces.
struct SplitRow {
  int64_t row;
  int first_partial, num_partials;
};

// The edges of a graph as the rows and entries that one direction gives. A view is made once for
// each pair of graph and direction, and points to the arrays of the graph.
struct RowView {
  Graph graph;
  Direction direction;
  int64_t rows = 0;
  // The first entry of each row and, behind the last row, the number of entries.
  const int64_t* row_ptr = nullptr;
  const NodeId* col = nullptr;  // the other end of each entry
  // In-CSR position of each entry; null if the position is the number of the entry.
  const EdgeId* edge_id = nullptr;
  const NodeId* row_vertex = nullptr;  // vertex of each row; null: the row's own number
  // The chunks cover every row that the view was made for. A chunk with partial >= 0 covers one
  // piece and nothing else.
  std::vector<RowChunk> chunks;
  std::vector<SplitRow> split_rows;
  int num_partials = 0;
  int64_t longest_row = 0;
};
// Returns the view of a graph in one direction. With `split_outliers`, chunks have equal work and
// long rows are cut into pieces (contract row WG8). Without it, chunks have equally many rows and
// no row is cut, so that every row is treated alike. The chunks cover the rows of `range`; the bits
// of a row do not depend on it.
std::shared_ptr<const RowView> make_row_view(const Graph& graph, Direction direction, bool split_outliers = true,
                                             RowSpan range = {});
// Returns a view like that of make_row_view(), but without chunks and without longest_row, for
// kernels that cut rows in their own way.
std::shared_ptr<const RowView> make_uncut_view(const Graph& graph, Direction direction);

// A program with its operands bound and the random state of the step. A load may read its operand
// only when the register is used, and a store may write as soon as the register is computed.
// Therefore the memory of a stored operand must either be exactly that of an operand read by `load`
// (an update in place) or not overlap any other operand.
struct BoundProgram {
  const RowProgram* program = nullptr;
  std::vector<void*> operands;
  const StepContext* step = nullptr;
  // The number of each row in the whole graph, by position. The draws of dropout depend on it. If
  // it is null, they depend on the position itself.
  const uint32_t* ids = nullptr;
  bool empty() const { return program == nullptr || program->empty(); }
};

// tile_rows() returns the number of rows of a tile of the program, and scratch_floats() the floats
// of scratch that one thread needs to run such a tile.
int64_t tile_rows(const RowProgram& program);
int64_t scratch_floats(const RowProgram& program);

// Scratch for all threads: per_thread floats for each, handed out by thread_index(). The engine
// allocates it before training, never within a step.
struct Scratch {
  float* data = nullptr;
  int64_t per_thread = 0;
};

// ---- programs over rows

// Runs a program over rows of a vertex, type or param space.
void map_rows(const BoundProgram& program, RowSpan rows, const Scratch& scratch);
// Runs a program over rows [begin, end) on the calling thread, as the tail of another kernel.
// `root` holds those rows for MicroOp::root (row_size floats each); it may be null.
void map_rows_serial(const BoundProgram& program, int64_t begin, int64_t end, const float* root, float* scratch);
// Runs a program over all edges in in-CSR order; its stores write edge rows.
void map_edges(const BoundProgram& program, const RowView& by_dst, const Scratch& scratch);

struct ReduceArgs {
  const RowView* view = nullptr;
  BoundProgram program;  // program over edges; its register `value` is reduced
  int value = -1;
  ReduceOp reduce = ReduceOp::sum;
  float* out = nullptr;  // rows × width; null: the result is only read by `post`
  // Used by max only: in-CSR position of the first maximum, -1 for empty rows; may be null.
  int32_t* argmax = nullptr;
  BoundProgram post;          // program over the reduced rows (MicroOp::root); may be empty
  float* partials = nullptr;  // view->num_partials × width floats, twice that for max
  Scratch scratch;            // per_thread >= reduce_scratch_floats(...)
};
int64_t reduce_scratch_floats(const RowView& view, const RowProgram& program, int value, const RowProgram* post);
void reduce_rows(const ReduceArgs& args);

// ---- common reductions, written by hand

// Computes out[r] = Σ over the entries of row r of weight[edge, h] · x[col, h·D + d]. With weight
// null, every weight is 1. `mean` divides by the length of the row.
struct SpmmArgs {
  const RowView* view = nullptr;
  const NodeId* col = nullptr;  // row of x for each entry; null: the view's col
  const float* x = nullptr;
  const float* weight = nullptr;  // edges × heads
  int64_t width = 0;              // H·D
  int64_t heads = 1;
  bool mean = false;
  // If `own` and `dots` are given, the kernel also computes the dot product of each gathered row
  // with the row of `own` that it is summed for, and writes it to the row of its edge in `dots`
  // (edges × heads).
  const float* own = nullptr;
  float* dots = nullptr;
  float* out = nullptr;  // null: the result is only read by `post`
  BoundProgram post;
  float* partials = nullptr;  // view->num_partials × width floats
  Scratch scratch;            // per_thread >= spmm_scratch_floats(...)
};
int64_t spmm_scratch_floats(const RowView& view, int64_t width, const RowProgram* post);
void spmm(const SpmmArgs& args);

// Computes out[edge, h], the softmax over the edges of each destination. The scores are register
// `value` of the program, whose width is the number of heads.
struct SoftmaxArgs {
  const RowView* by_dst = nullptr;
  BoundProgram program;
  int value = -1;
  float* out = nullptr;  // edges × heads
  Scratch scratch;       // per_thread >= scratch_floats(program)
};
void edge_softmax(const SoftmaxArgs& args);

// Computes out = y · (g − Σ_row y·g), where g is register `value` of the program and y is the
// softmax (edges × heads).
struct SoftmaxGradArgs {
  const RowView* by_dst = nullptr;
  BoundProgram program;
  int value = -1;
  const float* y = nullptr;
  float* out = nullptr;
  Scratch scratch;
};
void edge_softmax_grad(const SoftmaxGradArgs& args);

// ---- sums over all rows (fixed chunks, added in order)

// Computes out[width], the sum of register `value` over `rows` rows or, if `edges` is given, over
// all edges.
struct ColumnSumArgs {
  BoundProgram program;
  int value = -1;
  int64_t rows = 0;
  const RowView* edges = nullptr;
  float* out = nullptr;
  float* workspace = nullptr;  // column_sum_workspace(rows, width) floats
  Scratch scratch;
};
int64_t column_sum_workspace(int64_t rows, int64_t width);
void column_sum(const ColumnSumArgs& args);

}  // namespace nacre::cpu
