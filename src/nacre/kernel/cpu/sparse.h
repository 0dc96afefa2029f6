// CPU kernels over the edges of a block. Raw pointers, f32; every result is bit-identical on any
// number of threads: work is cut into chunks by the graph alone, and rows too long for one chunk
// are split into pieces summed in order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/graph/graph.h"
#include "nacre/kernel/blocks.h"
#include "nacre/kernel/program.h"

namespace nacre::cpu {

// What the rows of a view are and what their entries: edges grouped by destination (in-CSR) or by
// source (out-CSC), edges grouped by the (vertex, type) pairs of an end, or the pairs of each
// vertex (their columns are pairs).
enum class Direction : uint8_t { by_dst, by_src, by_dst_pair, by_src_pair, pairs_of_dst, pairs_of_src };
// Edges are grouped by their destination, or a pair of it.
inline bool rows_at_dst(Direction d) { return d == Direction::by_dst || d == Direction::by_dst_pair; }

// A run of rows (or a piece of one long row) of about equal work.
struct RowChunk {
  int64_t row_begin, row_end;    // rows covered
  int64_t edge_begin, edge_end;  // entries covered
  // >= 0: this is a piece of row_begin; its sum goes to partial slot `partial`
  int partial = -1;
};

// A row cut into pieces, and the partial slots of their sums.
struct SplitRow {
  int64_t row;
  int first_partial, num_partials;
};

// Prepared once per (graph, direction); holds references to the graph's arrays.
struct RowView {
  Graph graph;
  Direction direction;
  int64_t rows = 0;
  const int64_t* row_ptr = nullptr;  // entries of each row
  const NodeId* col = nullptr;       // the other end of each entry
  // in-CSR position of each entry; null when it is the entry's own number
  const EdgeId* edge_id = nullptr;
  const NodeId* row_vertex = nullptr;  // vertex of each row; null when it is the row's own number
  // cover every row; a chunk with partial >= 0 covers nothing else
  std::vector<RowChunk> chunks;
  std::vector<SplitRow> split_rows;
  int num_partials = 0;
  int64_t longest_row = 0;
};
// `split_outliers`: chunks of equal work, long rows cut into pieces (WG8); otherwise chunks of
// equally many rows, none cut: every row treated alike.
std::shared_ptr<const RowView> make_row_view(const Graph& graph, Direction direction, bool split_outliers = true);
// The same without chunks and the longest row, for those who cut rows otherwise.
std::shared_ptr<const RowView> make_uncut_view(const Graph& graph, Direction direction);

// A program with its operands bound and the step's random state. Loads may read an operand in place
// when a register is used, and stores may write as soon as a register is computed: the memory of a
// stored operand must either be exactly that of an operand read by `load` (an update in place) or
// not overlap any other operand.
struct BoundProgram {
  const RowProgram* program = nullptr;
  std::vector<void*> operands;
  const StepContext* step = nullptr;
  bool empty() const { return program == nullptr || program->empty(); }
};

// Floats of scratch one thread needs to run the program on a tile, and the tile's rows.
int64_t tile_rows(const RowProgram& program);
int64_t scratch_floats(const RowProgram& program);

// Scratch for all threads: per_thread floats each, handed out by thread_index(). Sized by the
// engine, never in the loop.
struct Scratch {
  float* data = nullptr;
  int64_t per_thread = 0;
};

// ---- programs over rows
// Runs a program over all `rows` rows of a vertex, type or param space.
void map_rows(const BoundProgram& program, int64_t rows, const Scratch& scratch);
// Runs a program over rows [begin, end) on the calling thread; `root` holds those rows for
// MicroOp::root (row_size floats each), or null. For use as the tail of another kernel.
void map_rows_serial(const BoundProgram& program, int64_t begin, int64_t end, const float* root, float* scratch);
// Runs a program over all edges in in-CSR order (its stores write edge rows).
void map_edges(const BoundProgram& program, const RowView& by_dst, const Scratch& scratch);

enum class Reduce : uint8_t { sum, mean, max };

struct ReduceArgs {
  const RowView* view = nullptr;
  BoundProgram program;  // over edges; register `value` is what gets reduced
  int value = -1;
  Reduce reduce = Reduce::sum;
  float* out = nullptr;  // rows × width; null: the result only feeds `post`
  // max only: in-CSR position of the first maximum, -1 for empty rows; may be null
  int32_t* argmax = nullptr;
  BoundProgram post;          // over the reduced rows (MicroOp::root), may be empty
  float* partials = nullptr;  // view->num_partials × width floats, twice that for max
  Scratch scratch;            // per_thread >= reduce_scratch_floats(...)
};
int64_t reduce_scratch_floats(const RowView& view, const RowProgram& program, int value, const RowProgram* post);
void reduce_rows(const ReduceArgs& args);

// ---- the common shapes, by hand
// out[r] = Σ over row r's entries of weight[edge, h] · x[col, h·D + d]; weight null = 1. `mean`
// divides by the row's length.
struct SpmmArgs {
  const RowView* view = nullptr;
  const NodeId* col = nullptr;  // row of x for each entry; null: the view's
  const float* x = nullptr;
  const float* weight = nullptr;  // edges × heads
  int64_t width = 0;              // H·D
  int64_t heads = 1;
  bool mean = false;
  float* out = nullptr;  // null: the result only feeds `post`
  BoundProgram post;
  float* partials = nullptr;  // view->num_partials × width floats
  Scratch scratch;            // per_thread >= spmm_scratch_floats(...)
};
int64_t spmm_scratch_floats(const RowView& view, int64_t width, const RowProgram* post);
void spmm(const SpmmArgs& args);

// out[edge, h] = softmax over each destination's edges of register `value` (width heads) of the
// program.
struct SoftmaxArgs {
  const RowView* by_dst = nullptr;
  BoundProgram program;
  int value = -1;
  float* out = nullptr;  // edges × heads
  Scratch scratch;       // per_thread >= scratch_floats(program)
};
void edge_softmax(const SoftmaxArgs& args);

// out = y · (g − Σ_row y·g), g = register `value` of the program, y the softmax (edges × heads).
struct SoftmaxGradArgs {
  const RowView* by_dst = nullptr;
  BoundProgram program;
  int value = -1;
  const float* y = nullptr;
  float* out = nullptr;
  Scratch scratch;
};
void edge_softmax_grad(const SoftmaxGradArgs& args);

// ---- sums over all rows (fixed chunks combined in order)
// out[width] = Σ rows of register `value` of a program over `rows` rows or, with `edges`, over all
// edges.
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
