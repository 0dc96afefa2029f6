// What the families that run row programs share.
#pragma once

#include "nacre/engine/gpu/context.h"
#include "nacre/kernel/cuda/rows.h"

namespace nacre {

inline int64_t blocks_for(int64_t units, const cuda::RowSource& source) {
  return (units + source.per_block - 1) / source.per_block;
}
void add_operands(LaunchArgs& args, const GpuKernel& g, const RowProgram& program);
const uint16_t* edge_types(const GpuKernel& g);
// col, edge_dst, edge_type of all edges, as kernels over edges take them; nulls where there are none or not needed.
void add_edges(LaunchArgs& args, const GpuKernel& g, bool edges);

// The rows a reduction walks: those of a view, or the runs of equal rows in the gTasks of a table.
struct ReduceRows {
  cuda::EdgeSide side;
  const GpuSegment* segments = nullptr;
  int64_t num_segments = 0;
  const GpuSplitRow* split_rows = nullptr;
  int64_t num_split_rows = 0;
  int64_t num_partials = 0;
  const uint32_t* col = nullptr;
  const uint32_t* edge_id = nullptr;
  const uint32_t* row_vertex = nullptr;
};
int64_t reduce_workspace(const GpuKernel& g, int64_t num_partials);
Step bind_reduce(const GpuKernel& g, const RowProgram& program, int value, const ReduceRows& rows, void* workspace);

}  // namespace nacre
