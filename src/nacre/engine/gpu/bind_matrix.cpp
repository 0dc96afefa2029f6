// Dense products on the GPU: the library's kernels, then the tail as a program over the rows.
#include "nacre/engine/gpu/context.h"
#include "nacre/kernel/cuda/rows.h"

namespace nacre {
namespace {

GemmShape product_shape(const GpuKernel& g) {
  const Kernel& k = g.kernel;
  GemmShape s;
  s.type = g.context.options().precision;
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
  return s;
}

int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

// Rows of a product that only its tail reads.
int64_t hidden_bytes(const GpuKernel& g) {
  const bool hidden = !g.kernel.tail.empty() && !g.stored(g.kernel.root);
  return hidden ? aligned(g.rows(g.kernel.root) * g.width(g.kernel.root) * 4) : 0;
}

KernelNeeds needs(const GpuKernel& g) {
  KernelNeeds n;
  const int handle = g.context.device().prepare_gemm(product_shape(g), g.context.options().tune);
  n.workspace_bytes = hidden_bytes(g) + g.context.device().gemm_workspace(handle);
  return n;
}

// The tail reads the product's rows as an operand of its own.
RowProgram tail_over_memory(const GpuKernel& g, int* root_operand) {
  RowProgram p = g.kernel.tail;
  *root_operand = static_cast<int>(p.operands.size());
  p.operands.push_back(g.kernel.root);
  for (Micro& m : p.code) {
    if (m.op != MicroOp::root) continue;
    m.op = MicroOp::load;
    m.operand = *root_operand;
  }
  return p;
}

Step bind(const GpuKernel& g, void* workspace) {
  Device& device = g.context.device();
  const int handle = device.prepare_gemm(product_shape(g), g.context.options().tune);
  const int64_t hidden = hidden_bytes(g);
  GemmArgs args;
  args.a = g.pointer(g.kernel.args[0]);
  args.b = g.pointer(g.kernel.args[1]);
  args.c = hidden > 0 ? workspace : g.pointer(g.kernel.root);
  void* scratch = static_cast<char*>(workspace) + hidden;
  Step product = [&device, handle, args, scratch] { device.run_gemm(handle, args, scratch); };
  if (g.kernel.tail.empty()) return product;
  int root = 0;
  const RowProgram tail = tail_over_memory(g, &root);
  const cuda::RowSource source = cuda::map_source(tail);
  const int64_t rows = g.rows(g.kernel.root);
  LaunchArgs tail_args;
  tail_args.add(rows).add(g.context.step());
  for (int i = 0; i < static_cast<int>(tail.operands.size()); ++i)
    tail_args.add(i == root ? args.c : g.pointer(tail.operands[static_cast<size_t>(i)]));
  return then(product, g.context.launch(source.source, (rows + source.per_block - 1) / source.per_block, tail_args));
}

}  // namespace

const GpuFamily kGpuMatrix = {needs, bind};

}  // namespace nacre
