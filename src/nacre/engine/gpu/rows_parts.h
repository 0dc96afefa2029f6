// What the families that run row programs share.
#pragma once

#include "nacre/engine/gpu/context.h"
#include "nacre/kernel/cuda/rows.h"

namespace nacre {

// Of a RowSource or its function.
template <class Source>
int64_t blocks_for(int64_t units, const Source& source) {
  return (units + source.per_block - 1) / source.per_block;
}
// A program over vertices (cuda::map_source).
const GpuFunction& map_function(GpuContext& context, const RowProgram& program);
// Returns the memory of a program's operands, in their order.
std::vector<void*> operands_of(const GpuKernel& g, const RowProgram& program);
// Null where the graph has none or the program does not read them.
const uint16_t* edge_types(const GpuKernel& g, const RowProgram& program);
// The sources, destinations and types of all edges in device memory. Those that the kernel's program does not read are
// null.
struct EdgeEnds {
  const uint32_t* src = nullptr;
  const uint32_t* dst = nullptr;
  const uint16_t* type = nullptr;
};
EdgeEnds edge_ends(const GpuKernel& g);

// A row (or a piece of a long one): one unit of work of a reduction, as its kernels read it.
struct RowSegment {
  uint32_t row;
  int32_t partial;  // >= 0: a piece; its sum goes to this slot
  int32_t split;    // the row's number among those in pieces
  int32_t unused;
  int64_t begin, end;
};
struct RowPieces {
  int32_t first, count;  // partial slots
  int32_t length;        // entries of the whole row
  int32_t unused;
};
// Segments on the host.
struct RowCut {
  std::vector<RowSegment> segments;
  std::vector<RowPieces> split;
  int64_t partials = 0;
};

// The rows a reduction walks: those of a view, or the runs of equal rows in the gTasks of a table.
struct ReduceRows {
  cuda::EdgeSide side;
  const RowSegment* segments = nullptr;
  int64_t num_segments = 0;
  // Rows that are walked besides, all but those longer than `longest`; null: none.
  const void* offsets = nullptr;
  int64_t num_rows = 0;
  int64_t longest = 0;
  int64_t count() const { return num_segments + num_rows; }
  const RowPieces* split_rows = nullptr;
  int64_t num_partials = 0;
  const uint32_t* col = nullptr;
  const uint32_t* edge_id = nullptr;
  const uint32_t* row_vertex = nullptr;
};
// A RowCut in device memory, under a name.
void place_cut(GpuContext& context, const std::string& key, const RowCut& cut, ReduceRows& rows);

// A reduction in the making.
struct Reduction {
  const GpuKernel& g;
  cuda::ReduceSpec spec;
  ReduceRows rows;
  std::vector<void*> operands;  // of the program; empty: where the plan has them
};
// What a kernel that reduces asks for, but for its rows; `program` must outlive the result.
cuda::ReduceSpec reduce_spec(const GpuKernel& g, const RowProgram& program, int value, const cuda::EdgeSide& side);
int64_t reduce_workspace(const Reduction& r);
// `out`: where the rows go instead of the root's own memory.
Step bind_reduce(const Reduction& r, void* workspace, void* out = nullptr);

// Seconds of a step, the best of a few runs.
double time_step(GpuContext& context, const Step& step);

// Finished rows in memory.
struct RowsAt {
  void* memory = nullptr;
  bool narrow = false;  // as bf16
};
// A tail that reads the rows it follows from memory, as an operand of its own (the last).
RowProgram tail_over_memory(const RowProgram& tail, NodeRef root, bool narrow);
// The step that runs it, over rows [first, first + count) which lie at `rows`.
Step bind_tail(const GpuKernel& g, const RowProgram& tail, const RowsAt& rows, int64_t first, int64_t count);
inline Step bind_tail(const GpuKernel& g, const RowProgram& tail, const RowsAt& rows) {
  return bind_tail(g, tail, rows, 0, g.rows(g.kernel.root));
}

}  // namespace nacre
