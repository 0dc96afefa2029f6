// Row programs on the GPU.
#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/engine/gpu/rows_parts.h"

namespace nacre {
namespace {

using cpu::Direction;

const GpuRows& rows_view(const GpuKernel& g) {
  return g.context.rows(g.graph(), g.kernel.direction, g.executor.plan().options.differentiate);
}

cuda::EdgeSide side_of(const GpuRows& rows) {
  cuda::EdgeSide side;
  side.rows_at_dst = cpu::rows_at_dst(rows.host->direction);
  side.edge_ids = rows.edge_id != nullptr;
  side.row_vertex = rows.row_vertex != nullptr;
  side.mean_degree = rows.host->rows == 0 ? 1 : rows.host->row_ptr[rows.host->rows] / rows.host->rows;
  return side;
}

// A weighted sum of gathered rows as a program: columns stand where a source would.
RowProgram spmm_program(const GpuKernel& g) {
  RowProgram p;
  p.domain = {SpaceKind::edge, static_cast<int>(g.layer())};
  const int64_t width = g.width(g.kernel.root);
  p.operands.push_back(g.kernel.args[0]);
  p.widths.push_back(width);
  Micro load;
  load.op = MicroOp::load_src;
  load.out = 0;
  load.operand = 0;
  p.code.push_back(load);
  if (g.kernel.args[1] < 0) return p;
  p.operands.push_back(g.kernel.args[1]);
  p.widths.push_back(g.kernel.heads);
  p.widths.push_back(width);
  Micro weight;
  weight.op = MicroOp::load;
  weight.out = 1;
  weight.operand = 1;
  p.code.push_back(weight);
  Micro product;
  product.op = MicroOp::mul;
  product.out = 2;
  product.a = 0;
  product.b = 1;
  product.b_repeat = static_cast<int>(width / g.kernel.heads);
  p.code.push_back(product);
  return p;
}

ReduceRows rows_of(const GpuRows& r, const uint32_t* col) {
  return {side_of(r),     r.segments, r.num_segments, r.split_rows, r.num_split_rows,
          r.num_partials, col,        r.edge_id,      r.row_vertex};
}

const uint32_t* spmm_columns(const GpuKernel& g) {
  const Space from = g.node(g.kernel.args[0]).type.space;
  const Direction d = g.kernel.direction;
  const GpuRows& rows = rows_view(g);
  if (!from.is_pair() || (d != Direction::by_dst && d != Direction::by_src)) return rows.col;
  const End end = from.kind == SpaceKind::pair_src ? End::src : End::dst;
  return static_cast<const uint32_t*>(
      g.context.resident(g.context.host_views().pair_columns(g.graph(), d, end), g.graph().num_edges() * 4));
}

Step bind_softmax(const GpuKernel& g) {
  const GpuRows& rows = rows_view(g);
  const int64_t degree = side_of(rows).mean_degree;
  const bool gradient = g.kernel.kind == KernelKind::softmax_grad;
  const cuda::RowSource source = gradient ? cuda::softmax_grad_source(g.kernel.program, g.kernel.value, degree)
                                          : cuda::softmax_source(g.kernel.program, g.kernel.value, degree);
  LaunchArgs args;
  args.add(rows.row_ptr).add(rows.host->rows).add(rows.col).add(edge_types(g)).add(g.context.step());
  args.add(g.pointer(g.kernel.root));
  if (gradient) args.add(g.pointer(g.kernel.args[0]));
  add_operands(args, g, g.kernel.program);
  return g.context.launch(source.source, blocks_for(rows.host->rows, source), args);
}

// Blocks of a sum over all rows: enough to fill a large device, the same everywhere.
int64_t sum_blocks(int64_t rows, const cuda::RowSource& source) {
  return std::clamp<int64_t>(blocks_for(rows, source), 1, 1024);
}

int64_t summed_rows(const GpuKernel& g) { return g.rows(g.node(g.kernel.root).inputs[0]); }

Step bind_column_sum(const GpuKernel& g, void* workspace) {
  const cuda::RowSource source = cuda::column_sum_source(g.kernel.program, g.kernel.value);
  const int64_t rows = summed_rows(g);
  const int64_t blocks = sum_blocks(rows, source);
  LaunchArgs args;
  args.add(rows);
  add_edges(args, g, g.kernel.program.domain.kind == SpaceKind::edge);
  args.add(g.context.step()).add(workspace);
  add_operands(args, g, g.kernel.program);
  const int64_t width = g.width(g.kernel.root);
  const cuda::RowSource total = cuda::column_total_source(width);
  LaunchArgs total_args;
  total_args.add(blocks).add(workspace).add(g.pointer(g.kernel.root));
  return then(g.context.launch(source.source, blocks, args), g.context.launch(total.source, width, total_args));
}

KernelNeeds needs(const GpuKernel& g) {
  KernelNeeds n;
  switch (g.kernel.kind) {
    case KernelKind::map:
    case KernelKind::map_edges:
      return n;
    case KernelKind::column_sum: {
      const cuda::RowSource source = cuda::column_sum_source(g.kernel.program, g.kernel.value);
      n.workspace_bytes = sum_blocks(summed_rows(g), source) * g.width(g.kernel.root) * 4;
      return n;
    }
    case KernelKind::reduce:
    case KernelKind::spmm:
      n.workspace_bytes = reduce_workspace(g, rows_view(g).num_partials);
      return n;
    default:
      rows_view(g);
      return n;
  }
}

Step bind(const GpuKernel& g, void* workspace) {
  const Kernel& k = g.kernel;
  switch (k.kind) {
    case KernelKind::map: {
      const cuda::RowSource source = cuda::map_source(k.program);
      LaunchArgs args;
      args.add(g.rows(k.root)).add(g.context.step());
      add_operands(args, g, k.program);
      return g.context.launch(source.source, blocks_for(g.rows(k.root), source), args);
    }
    case KernelKind::map_edges: {
      const cuda::RowSource source = cuda::map_edges_source(k.program);
      LaunchArgs args;
      args.add(g.graph().num_edges());
      add_edges(args, g, true);
      args.add(g.context.step());
      add_operands(args, g, k.program);
      return g.context.launch(source.source, blocks_for(g.graph().num_edges(), source), args);
    }
    case KernelKind::reduce:
      return bind_reduce(g, k.program, k.value, rows_of(rows_view(g), rows_view(g).col), workspace);
    case KernelKind::spmm: {
      const RowProgram program = spmm_program(g);
      ReduceRows rows = rows_of(rows_view(g), spmm_columns(g));
      // Columns are read through load_src: the row is at the other end, whatever it is called.
      rows.side.rows_at_dst = true;
      return bind_reduce(g, program, static_cast<int>(program.widths.size()) - 1, rows, workspace);
    }
    case KernelKind::column_sum:
      return bind_column_sum(g, workspace);
    default:
      return bind_softmax(g);
  }
}

}  // namespace

const GpuFamily kGpuRows = {needs, bind};

}  // namespace nacre
