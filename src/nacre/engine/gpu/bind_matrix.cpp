// Binds dense products on a GPU, in two variants (plan/variants/products.h): a kernel of our own
// that multiplies and runs the tail (row_products.h), or the kernels of the library, which do what
// they can of the tail, and a program over the rows for the rest. A product in bf16 needs all its
// operands as bf16, so weights, and values that are stored as f32, are copied first.
#include <algorithm>

#include "nacre/engine/gpu/gpu_pairs.h"
#include "nacre/engine/gpu/row_binding.h"
#include "nacre/engine/gpu/row_products.h"
#include "nacre/engine/gpu/step_list.h"
#include "nacre/plan/operands.h"
#include "nacre/plan/variants/products.h"

namespace nacre {
namespace {

struct MatrixRows {
  int64_t first, count;
};

// Names the operands of a product left · right or, for the gradient of a weight, leftᵀ · right.
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

// Returns at which distance, in elements, a bf16 copy has its rows of `width` elements. Products
// read rows at such distances fast.
int64_t narrow_ld(int64_t width) { return (width + 7) / 8 * 8; }

GemmShape product_shape(const GpuKernel& g, const LibraryProduct& p) {
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
    // The weight is the [K, N] matrix of the forward product, also if the product takes its
    // transpose.
    s.ldb = g.node(f.right).type.dims[1];
  }
  s.ldc = s.n;
  s.beta = p.e.add >= 0 ? 1.0F : 0.0F;
  if (p.e.bias >= 0) s.epilogue = p.e.relu ? GemmEpilogue::relu_bias : GemmEpilogue::bias;
  if (p.e.bias < 0 && p.e.relu) s.epilogue = GemmEpilogue::relu;
  return s;
}

int64_t bytes_of_element(bool narrow) { return narrow ? 2 : 4; }

// Returns the rows of an operand as bf16. Copies them to `copy` unless they are stored as bf16, and
// sets `ld` to the distance of the rows.
const void* as_bf16(const GpuKernel& g, StepList& steps, NodeRef operand, MatrixRows rows, void* copy, int64_t& ld) {
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

// Returns whether a product also runs over the padding of the copies, which must be zeros then.
// That is so if the number of columns is not a multiple of what the fast kernels of the library
// read at once. Values of such widths are never stored as bf16, so both operands are copies.
bool over_padding(const GpuKernel& g, const LibraryProduct& p, const GemmShape& shape) {
  const Factors f = factors_of(g.kernel);
  return p.narrow && g.kernel.kind != KernelKind::weight_grad && shape.k != narrow_ld(shape.k) && !g.narrow(f.left) &&
         !g.narrow(f.right);
}

void add_steps(const GpuKernel& g, StepList& steps) {
  const Kernel& k = g.kernel;
  const bool gradient = k.kind == KernelKind::weight_grad;
  ProductFacts facts;
  if (!gradient) facts = product_facts(g.planned(), g.context.traits());
  if (!gradient && g.variant<ProductWay>(product_variants(), facts) == ProductWay::own_kernel)
    return add_own_product(g, facts, steps);
  const Factors f = factors_of(k);
  const LibraryProduct p = library_product(g.planned());
  const GemmShape whole = product_shape(g, p);
  int64_t most = whole.m;
  if (!gradient) {
    const auto run = g.take<ProductRun>(product_run_variants(), facts);
    if (run.way == ProductRun::some_rows) most = std::min(whole.m, run.limit);
  }
  steps.time_products(product_timing(g));
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
    steps.product(shape, args);
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
