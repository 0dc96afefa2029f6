#include "nacre/plan/variants/reductions.h"

#include "nacre/plan/operands.h"

namespace nacre {
namespace {

// Appends code to the program that multiplies each gathered row (register `gathered`) by the row
// that is summed for, and stores the dot products for each edge. The column of an entry takes the
// place of its source, and the row that of its destination.
void append_dots(const PlannedKernel& k, RowProgram& p, int gathered) {
  const NodeRef own = operands<SpmmOperands>(k.kernel).own;
  const auto add = [&](Micro micro, int64_t width) {
    if (micro.op != MicroOp::store) micro.out = static_cast<int>(p.widths.size());
    if (micro.op != MicroOp::store) p.widths.push_back(width);
    p.code.push_back(micro);
    return micro.out;
  };
  const auto operand = [&](NodeRef node) {
    p.operands.push_back(node);
    p.narrow.push_back(k.narrow(node) ? 1 : 0);
    return static_cast<int>(p.operands.size()) - 1;
  };
  const int row = add({.op = MicroOp::load_dst, .operand = operand(own)}, p.widths[gathered]);
  const int dots = add({.op = MicroOp::dot, .a = gathered, .b = row}, k.kernel.heads);
  add({.op = MicroOp::store, .a = dots, .operand = operand(k.kernel.second)}, 0);
  p.stores_apart = true;
}

}  // namespace

SummedProgram summed_program(const PlannedKernel& k, int64_t width) {
  const auto in = operands<SpmmOperands>(k.kernel);
  RowProgram p;
  p.domain = {SpaceKind::edge, walked_layer(k.plan.dfg, k.kernel)};
  p.operands.push_back(in.x);
  p.narrow.push_back(k.narrow(in.x) ? 1 : 0);
  p.widths.push_back(width);
  Micro load;
  load.op = MicroOp::load_src;
  load.out = 0;
  load.operand = 0;
  p.code.push_back(load);
  if (in.weight < 0) return {p, 0};
  p.operands.push_back(in.weight);
  p.narrow.push_back(0);
  p.widths.push_back(k.kernel.heads);
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
  product.b_repeat = static_cast<int>(width / k.kernel.heads);
  p.code.push_back(product);
  if (in.own >= 0) append_dots(k, p, load.out);
  return {p, product.out};
}

cuda::ReduceSpec reduce_spec(const PlannedKernel& k, const RowProgram& program, int value) {
  const Kernel& kernel = k.kernel;
  const bool argmax_only = k.node(kernel.root).op == Op::index_argmax;
  cuda::ReduceSpec spec;
  spec.program = &program;
  spec.value = value;
  spec.reduce = kernel.reduce_op;
  spec.store = !argmax_only && k.stored(kernel.root);
  spec.narrow_out = k.narrow(kernel.root);
  spec.argmax = argmax_only || (kernel.second >= 0 && kernel.reduce_op == ReduceOp::max);
  spec.tail = kernel.tail.empty() ? nullptr : &kernel.tail;
  spec.side.rows_at_dst = rows_at_dst(kernel.direction);
  return spec;
}

cuda::ReduceSpec spmm_spec(const PlannedKernel& k, const SummedProgram& sum, const ColumnTiles& tiles) {
  cuda::ReduceSpec spec = reduce_spec(k, sum.program, sum.value);
  // The program reads columns with load_src, so the row is taken to be at the destination,
  // whichever end it is.
  spec.side.rows_at_dst = true;
  spec.tiles = tiles.count;
  spec.row_width = k.width(k.kernel.root);
  spec.tile_pitch = tiles.pitch;
  if (tiles.count > 1) {
    spec.tail = nullptr;  // the tail runs afterwards, over the finished rows
    spec.store = true;
  }
  return spec;
}

int64_t shortest_piece(const PlannedKernel& k, const ColumnTiles& tiles) {
  if (k.kernel.kind == KernelKind::reduce)
    return cuda::reduce_shortest_piece(reduce_spec(k, k.kernel.program, k.kernel.value));
  const SummedProgram sum = summed_program(k, tiles.width);
  return cuda::reduce_shortest_piece(spmm_spec(k, sum, tiles));
}

}  // namespace nacre
