// Dense products on the GPU: the library's kernels, which do what they can of the tail. What they cannot do is done by
// a kernel of our own that multiplies as well (row_products.h) or, where that does not fit, by a program over the rows
// afterwards. A product of bf16 takes all its operands so: weights, and values kept as f32, are copied first.
#include <algorithm>

#include "nacre/engine/gpu/epilogue.h"
#include "nacre/engine/gpu/row_products.h"
#include "nacre/engine/gpu/rows_parts.h"
#include "nacre/engine/gpu/step_list.h"
#include "nacre/engine/gpu/typed_parts.h"
#include "nacre/plan/operands.h"

namespace nacre {
namespace {

// A product and where its result goes.
struct Product {
  Epilogue e;
  NodeRef to = -1;          // the value in whose memory the result lies; -1: rows of the workspace
  bool narrow = false;      // of bf16
  bool narrow_out = false;  // to bf16
};

struct Rows {
  int64_t first, count;
};

// The operands of a product left · right; for the gradient of a weight, of leftᵀ · right.
struct Factors {
  NodeRef left, right;
};

Factors factors_of(const Kernel& k) {
  if (k.kind == KernelKind::weight_grad) {
    const auto in = operands<WeightGradOperands>(k);
    return {in.x, in.gradient};
  }
  const auto in = operands<ProductOperands>(k);
  return {in.x, in.weight};
}

// Rows of copies begin where products can read them fast.
int64_t narrow_ld(int64_t width) { return (width + 7) / 8 * 8; }

NodeRef destination(const GpuKernel& g, const Epilogue& e) {
  if (e.result >= 0) return e.result;
  if (g.stored(g.kernel.root)) return g.kernel.root;
  return e.landing;
}

Product product_of(const GpuKernel& g) {
  const Kernel& k = g.kernel;
  const Factors f = factors_of(k);
  Product p;
  for (const bool add : {true, false}) {
    p.e = absorb_tail(k.tail, g.stored(k.root), add);
    p.to = destination(g, p.e);
    const bool from_narrow = g.narrow(f.left) || (k.kind == KernelKind::weight_grad && g.narrow(f.right));
    p.narrow = from_narrow || g.narrow(p.to);
    p.narrow_out = p.to >= 0 ? g.narrow(p.to) : p.narrow;
    // What the library adds has the result's type.
    if (p.e.add < 0 || g.narrow(p.e.add) == p.narrow_out) break;
  }
  return p;
}

GemmShape product_shape(const GpuKernel& g, const Product& p) {
  const Kernel& k = g.kernel;
  const Factors f = factors_of(k);
  GemmShape s;
  s.type = g.context.options().precision;
  if (s.type == GemmType::bf16 && !p.narrow) s.type = GemmType::tf32;
  s.bf16_out = p.narrow_out;
  if (k.kind == KernelKind::weight_grad) {
    s.m = g.width(f.left);
    s.n = g.width(f.right);
    s.k = g.rows(f.left);
    s.transpose_a = true;
    s.lda = s.m;
    s.ldb = s.n;
  } else {
    s.m = g.rows(f.left);
    s.k = g.width(f.left);
    s.n = g.width(k.root);
    s.transpose_b = k.transpose;
    s.lda = s.k;
    // The weight is [K, N] of the forward product either way.
    s.ldb = g.node(f.right).type.dims[1];
  }
  s.ldc = s.n;
  s.beta = p.e.add >= 0 ? 1.0F : 0.0F;
  if (p.e.bias >= 0) s.epilogue = p.e.relu ? GemmEpilogue::relu_bias : GemmEpilogue::bias;
  if (p.e.bias < 0 && p.e.relu) s.epilogue = GemmEpilogue::relu;
  return s;
}

int64_t bytes_of_element(bool narrow) { return narrow ? 2 : 4; }

// The operand's rows from `first` on as bf16, copied to `copy` unless they lie so; `ld` becomes the rows' distance
// there.
const void* as_bf16(const GpuKernel& g, StepList& steps, NodeRef operand, Rows rows, void* copy, int64_t& ld) {
  const int64_t width = ld;
  if (g.narrow(operand)) return at(static_cast<const char*>(g.pointer(operand)), rows.first * width * 2);
  ld = narrow_ld(width);
  RowCopy all{{width, true, {}, {1, ld}}, static_cast<const float*>(g.pointer(operand))};
  all.first_in = rows.first;
  all.out = copy;
  all.count = rows.count;
  add_copy(steps, all);
  return copy;
}

// Products over a number of columns that is no multiple of what the library's fast kernels read at once go over the
// copies' padding as well, which must be zeros then. Values of such widths are never kept as bf16: both are copies.
bool over_padding(const GpuKernel& g, const Product& p, const GemmShape& shape) {
  const Factors f = factors_of(g.kernel);
  return p.narrow && g.kernel.kind != KernelKind::weight_grad && shape.k != narrow_ld(shape.k) && !g.narrow(f.left) &&
         !g.narrow(f.right);
}

// Rows of a product done at a time where they lie in the workspace only until the next step has read them: enough to
// keep the device busy. (A cacheful of them saves no time: the steps become too short.)
int64_t rows_at_a_time(const GpuKernel& g, const Product& p, const GemmShape& shape) {
  if (g.kernel.kind == KernelKind::weight_grad) return shape.m;
  const bool copied = p.narrow && !g.narrow(factors_of(g.kernel).left);
  const int64_t row = (p.to < 0 ? shape.n * bytes_of_element(p.narrow_out) : 0) + (copied ? 2 * shape.k : 0);
  if (row == 0) return shape.m;
  const int64_t some = std::clamp<int64_t>(row * shape.m / 4, int64_t{32} << 20, int64_t{96} << 20);
  const int64_t cache = g.context.options().cache_bytes;
  const int64_t most = (cache > 0 ? cache : some) / row;
  constexpr int64_t kStep = 16;
  return std::min(shape.m, std::max(kStep, most / kStep * kStep));
}

void add_steps(const GpuKernel& g, StepList& steps) {
  const Kernel& k = g.kernel;
  if (const auto whole = whole_product(g)) return add_whole_product(g, *whole, steps);
  const Factors f = factors_of(k);
  const Product p = product_of(g);
  const GemmShape whole = product_shape(g, p);
  const bool gradient = k.kind == KernelKind::weight_grad;
  const int64_t most = rows_at_a_time(g, p, whole);
  const int64_t a_rows = gradient ? g.rows(f.left) : most;
  const int64_t b_rows = gradient ? g.rows(f.right) : p.narrow ? g.node(f.right).type.dims[0] : 0;
  const auto room = [&](NodeRef operand, int64_t rows, int64_t width) {
    return p.narrow && !g.narrow(operand) ? steps.carve.take(rows * narrow_ld(width) * 2) : nullptr;
  };
  const bool padded = over_padding(g, p, whole);
  const int64_t b_room = padded && !whole.transpose_b ? narrow_ld(whole.k) : b_rows;
  void* a_copy = room(f.left, a_rows, whole.lda);
  void* b_copy = room(f.right, b_room, whole.ldb);
  const int64_t c_row = whole.n * bytes_of_element(p.narrow_out);
  void* hidden = p.to < 0 ? steps.carve.take(most * c_row) : nullptr;

  GemmShape shape = whole;
  if (padded) {
    shape.k = narrow_ld(whole.k);
    steps.zero(a_copy, a_rows * shape.k * 2);
    steps.zero(b_copy, b_room * narrow_ld(whole.ldb) * 2);
  }
  GemmArgs args;
  args.b = p.narrow ? as_bf16(g, steps, f.right, {0, b_rows}, b_copy, shape.ldb) : g.pointer(f.right);
  args.bias = g.pointer(p.e.bias);
  for (int64_t first = 0; first < std::max<int64_t>(1, whole.m); first += std::max<int64_t>(1, most)) {
    shape.m = std::min(most, whole.m - first);
    shape.lda = whole.lda;
    if (p.narrow) {
      args.a = as_bf16(g, steps, f.left, {first, gradient ? a_rows : shape.m}, a_copy, shape.lda);
    } else {
      args.a = at(static_cast<const float*>(g.pointer(f.left)), first * whole.lda);
    }
    args.add = at(static_cast<char*>(g.pointer(p.e.add)), first * c_row);
    args.c = hidden != nullptr ? hidden : at(static_cast<char*>(g.pointer(p.to)), first * c_row);
    steps.product(shape, args, true);
    if (!p.e.rest.empty() && !steps.sizing())
      steps.then(bind_tail(g, p.e.rest, {args.c, p.narrow_out}, first, shape.m));
  }
}

KernelNeeds needs(const GpuKernel& g) {
  StepList steps(g.context, nullptr, true);
  add_steps(g, steps);
  return {0, steps.bytes()};
}

Step bind(const GpuKernel& g, void* workspace) {
  StepList steps(g.context, workspace, false);
  add_steps(g, steps);
  return steps.finish(workspace);
}

}  // namespace

const GpuFamily kGpuMatrix = {needs, bind};

}  // namespace nacre
