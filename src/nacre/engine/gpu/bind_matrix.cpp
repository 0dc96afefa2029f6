// Dense products on the GPU: the library's kernels, which do what they can of the tail; the rest is a program over the
// rows. A product of bf16 takes all its operands so: weights, and values kept as f32, are copied first.
#include "nacre/engine/gpu/epilogue.h"
#include "nacre/engine/gpu/rows_parts.h"
#include "nacre/engine/gpu/step_list.h"
#include "nacre/engine/gpu/typed_parts.h"

namespace nacre {
namespace {

// A product and where its result goes.
struct Product {
  Epilogue e;
  NodeRef to = -1;          // the value in whose memory the result lies; -1: rows of the workspace
  bool narrow = false;      // of bf16
  bool narrow_out = false;  // to bf16
};

NodeRef destination(const GpuKernel& g, const Epilogue& e) {
  if (e.result >= 0) return e.result;
  if (g.stored(g.kernel.root)) return g.kernel.root;
  return e.landing;
}

Product product_of(const GpuKernel& g) {
  const Kernel& k = g.kernel;
  Product p;
  for (const bool add : {true, false}) {
    p.e = absorb_tail(k.tail, g.stored(k.root), add);
    p.to = destination(g, p.e);
    const bool from_narrow = g.narrow(k.args[0]) || (k.kind == KernelKind::weight_grad && g.narrow(k.args[1]));
    p.narrow = from_narrow || g.narrow(p.to);
    p.narrow_out = p.to >= 0 ? g.narrow(p.to) : p.narrow;
    // What the library adds has the result's type.
    if (p.e.add < 0 || g.narrow(p.e.add) == p.narrow_out) break;
  }
  return p;
}

GemmShape product_shape(const GpuKernel& g, const Product& p) {
  const Kernel& k = g.kernel;
  GemmShape s;
  s.type = g.context.options().precision;
  if (s.type == GemmType::bf16 && !p.narrow) s.type = GemmType::tf32;
  s.bf16_out = p.narrow_out;
  if (k.kind == KernelKind::weight_grad) {
    s.m = g.width(k.args[0]);
    s.n = g.width(k.args[1]);
    s.k = g.rows(k.args[0]);
    s.transpose_a = true;
    s.lda = s.m;
    s.ldb = s.n;
  } else {
    s.m = g.rows(k.args[0]);
    s.k = g.width(k.args[0]);
    s.n = g.width(k.root);
    s.transpose_b = k.transpose;
    s.lda = s.k;
    // The weight is [K, N] of the forward product either way.
    s.ldb = g.node(k.args[1]).type.dims[1];
  }
  s.ldc = s.n;
  s.beta = p.e.add >= 0 ? 1.0F : 0.0F;
  if (p.e.bias >= 0) s.epilogue = p.e.relu ? GemmEpilogue::relu_bias : GemmEpilogue::bias;
  if (p.e.bias < 0 && p.e.relu) s.epilogue = GemmEpilogue::relu;
  return s;
}

// The operand as bf16; `ld` is its row's length, and becomes that of the copy where one is made.
const void* as_bf16(const GpuKernel& g, StepList& steps, NodeRef operand, int64_t rows, int64_t& ld) {
  if (g.narrow(operand)) return g.pointer(operand);
  const int64_t width = ld;
  ld = (width + 7) / 8 * 8;
  void* copy = steps.carve.take(rows * ld * 2);
  RowCopy all{{width, true, {}, {1, ld}}, static_cast<const float*>(g.pointer(operand))};
  all.out = copy;
  all.count = rows;
  add_copy(steps, all);
  return copy;
}

// The product's steps; returns where its result is.
RowsAt add_product(const GpuKernel& g, const Product& p, StepList& steps) {
  const Kernel& k = g.kernel;
  GemmShape shape = product_shape(g, p);
  GemmArgs args;
  if (p.narrow) {
    const bool gradient = k.kind == KernelKind::weight_grad;
    args.a = as_bf16(g, steps, k.args[0], g.rows(k.args[0]), shape.lda);
    args.b = as_bf16(g, steps, k.args[1], gradient ? g.rows(k.args[1]) : g.node(k.args[1]).type.dims[0], shape.ldb);
  } else {
    args.a = g.pointer(k.args[0]);
    args.b = g.pointer(k.args[1]);
  }
  args.bias = g.pointer(p.e.bias);
  args.add = g.pointer(p.e.add);
  args.c = p.to >= 0 ? g.pointer(p.to) : steps.carve.take(shape.m * shape.n * (p.narrow_out ? 2 : 4));
  steps.product(shape, args, true);
  return {args.c, p.narrow_out};
}

KernelNeeds needs(const GpuKernel& g) {
  StepList steps(g.context, nullptr, true);
  add_product(g, product_of(g), steps);
  return {0, steps.bytes()};
}

Step bind(const GpuKernel& g, void* workspace) {
  StepList steps(g.context, workspace, false);
  const Product p = product_of(g);
  const RowsAt result = add_product(g, p, steps);
  Step product = steps.finish(workspace);
  return p.e.rest.empty() ? product : then(product, bind_tail(g, p.e.rest, result));
}

}  // namespace

const GpuFamily kGpuMatrix = {needs, bind};

}  // namespace nacre
