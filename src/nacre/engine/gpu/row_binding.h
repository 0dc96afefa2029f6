// Declares functions that the binders of row programs share.
#pragma once

#include "nacre/engine/gpu/context.h"
#include "nacre/engine/gpu/row_cut.h"
#include "nacre/kernel/cuda/rows.h"

namespace nacre {

// Returns the number of blocks for `units` units of work. `source` is a RowSource or its
// GpuFunction.
template <class Source>
int64_t blocks_for(int64_t units, const Source& source) {
  return (units + source.per_block - 1) / source.per_block;
}
// Returns for how many entries of a row the groups of threads of a kernel are sized: the mean of
// the rows, or 1, as the plan decides.
int64_t mean_row(const GpuKernel& g);
// Returns the function of a program over vertices (cuda::map_source()).
const GpuFunction& map_function(GpuContext& context, const RowProgram& program);
// Returns the memory of a program's operands, in their order.
std::vector<void*> operands_of(const GpuKernel& g, const RowProgram& program);
// Returns the edge types in device memory; null if the graph has none or the program does not read
// them.
const uint16_t* edge_types(const GpuKernel& g, const RowProgram& program);
// Points to the sources, destinations and types of all edges in device memory. Arrays that the
// program of the kernel does not read are null.
struct EdgeEnds {
  const uint32_t* src = nullptr;
  const uint32_t* dst = nullptr;
  const uint16_t* type = nullptr;
};
EdgeEnds edge_ends(const GpuKernel& g);

// Describes the rows that a reduction walks: those of a view or, if a table cuts the edges into
// gTasks, the runs of edges in these gTasks that are added to the same row.
struct ReduceRows {
  const cuda::reduction::Segment* segments = nullptr;
  int64_t num_segments = 0;
  // If this is not null, the reduction also walks the num_rows rows from first_row on, except rows
  // of more than `longest` entries.
  const void* offsets = nullptr;
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t longest = 0;
  int64_t count() const { return num_segments + num_rows; }
  const cuda::reduction::SplitRow* split_rows = nullptr;
  int64_t num_partials = 0;
  const uint32_t* col = nullptr;
  const uint32_t* edge_id = nullptr;
  const uint32_t* row_vertex = nullptr;
};
// Copies a RowCut to the device under the name `key` and enters it into `rows`.
void place_cut(GpuContext& context, const std::string& key, const RowCut& cut, ReduceRows& rows);

// Describes a reduction that is being bound.
struct Reduction {
  const GpuKernel& g;
  cuda::ReduceSpec spec;
  ReduceRows rows;
  // Memory of the operands of the program. If it is empty, the operands lie where the plan has
  // them.
  std::vector<void*> operands;
};
int64_t reduce_workspace(const Reduction& r);
// Returns the step of a reduction. If `out` is not null, the rows go there instead of to the memory
// of the root.
Step bind_reduce(const Reduction& r, void* workspace, void* out = nullptr);

// Says where computed rows lie in memory.
struct RowsAt {
  void* memory = nullptr;
  bool narrow = false;  // whether the rows are stored as bf16
};
// Returns the tail as a program that loads the rows of the root from memory, as its last operand.
RowProgram tail_over_memory(const RowProgram& tail, NodeRef root, bool narrow);
// Returns the step that runs a tail on the rows [first, first + count), which lie at `rows`.
Step bind_tail(const GpuKernel& g, const RowProgram& tail, const RowsAt& rows, int64_t first, int64_t count);
inline Step bind_tail(const GpuKernel& g, const RowProgram& tail, const RowsAt& rows) {
  return bind_tail(g, tail, rows, 0, g.rows(g.kernel.root));
}

}  // namespace nacre
