#include "nacre/engine/gpu/rows_parts.h"

#include <algorithm>

namespace nacre {

void add_operands(LaunchArgs& args, const GpuKernel& g, const RowProgram& program) {
  for (const NodeRef o : program.operands) args.add(g.pointer(o));
}

const uint16_t* edge_types(const GpuKernel& g) {
  return g.graph().typed() ? g.context.resident(g.graph().edge_type()) : nullptr;
}

void add_edges(LaunchArgs& args, const GpuKernel& g, bool edges) {
  const auto& code = g.kernel.program.code;
  const bool dst = std::any_of(code.begin(), code.end(),
                               [](const Micro& m) { return m.op == MicroOp::load_dst || m.op == MicroOp::take_max; });
  args.add(edges ? g.context.resident(g.graph().col_idx()) : nullptr);
  args.add(edges && dst ? g.context.resident(g.graph().edge_dst()) : nullptr);
  args.add(edges ? edge_types(g) : nullptr);
}

// A maximum keeps its position too.
int64_t reduce_workspace(const GpuKernel& g, int64_t num_partials) {
  return num_partials * g.width(g.kernel.root) * 4 * (g.kernel.reduce_op == cpu::Reduce::max ? 2 : 1);
}

Step bind_reduce(const GpuKernel& g, const RowProgram& program, int value, const ReduceRows& rows, void* workspace) {
  const bool argmax_only = g.node(g.kernel.root).op == Op::index_argmax;
  cuda::ReduceSpec spec;
  spec.program = &program;
  spec.value = value;
  spec.reduce = g.kernel.reduce_op;
  spec.store = !argmax_only && g.stored(g.kernel.root);
  spec.argmax = argmax_only || g.kernel.second >= 0;
  spec.tail = g.kernel.tail.empty() ? nullptr : &g.kernel.tail;
  spec.side = rows.side;
  void* out = argmax_only ? nullptr : g.pointer(g.kernel.root);
  void* argmax = argmax_only ? g.pointer(g.kernel.root) : g.pointer(g.kernel.second);
  const auto finish = [&](LaunchArgs& args) {
    args.add(g.context.step()).add(out).add(argmax).add(workspace).add(rows.num_partials);
    add_operands(args, g, program);
    if (spec.tail != nullptr) add_operands(args, g, *spec.tail);
  };
  const cuda::RowSource walk = cuda::reduce_source(spec);
  LaunchArgs args;
  args.add(rows.segments)
      .add(rows.num_segments)
      .add(rows.col)
      .add(rows.edge_id)
      .add(edge_types(g))
      .add(rows.row_vertex);
  finish(args);
  Step step = g.context.launch(walk.source, blocks_for(rows.num_segments, walk), args);
  if (rows.num_split_rows == 0) return step;
  const cuda::RowSource pieces = cuda::reduce_pieces_source(spec);
  LaunchArgs piece_args;
  piece_args.add(rows.split_rows).add(rows.num_split_rows);
  finish(piece_args);
  return then(step, g.context.launch(pieces.source, blocks_for(rows.num_split_rows, pieces), piece_args));
}

}  // namespace nacre
