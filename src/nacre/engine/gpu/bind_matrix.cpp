// Dense products on the GPU: the library's kernels, which do what they can of the tail; the rest is a program over the
// rows.
#include "nacre/engine/gpu/epilogue.h"
#include "nacre/engine/gpu/rows_parts.h"

namespace nacre {
namespace {

GemmShape product_shape(const GpuKernel& g, const Epilogue& e) {
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
  s.beta = e.add >= 0 ? 1.0F : 0.0F;
  if (e.bias >= 0) s.epilogue = e.relu ? GemmEpilogue::relu_bias : GemmEpilogue::bias;
  if (e.bias < 0 && e.relu) s.epilogue = GemmEpilogue::relu;
  return s;
}

int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

// Rows of a product that only the rest of its tail reads and that can lie nowhere else.
int64_t hidden_bytes(const GpuKernel& g, const Epilogue& e) {
  const bool hidden = !e.rest.empty() && !g.stored(g.kernel.root) && e.landing < 0;
  return hidden ? aligned(g.rows(g.kernel.root) * g.width(g.kernel.root) * 4) : 0;
}

KernelNeeds needs(const GpuKernel& g) {
  const Epilogue e = absorb_tail(g.kernel.tail, g.stored(g.kernel.root));
  KernelNeeds n;
  const int handle = g.context.device().prepare_gemm(product_shape(g, e), g.context.options().tune);
  n.workspace_bytes = hidden_bytes(g, e) + g.context.device().gemm_workspace(handle);
  return n;
}

Step bind(const GpuKernel& g, void* workspace) {
  Device& device = g.context.device();
  const Epilogue e = absorb_tail(g.kernel.tail, g.stored(g.kernel.root));
  const int handle = device.prepare_gemm(product_shape(g, e), g.context.options().tune);
  const int64_t hidden = hidden_bytes(g, e);
  GemmArgs args;
  args.a = g.pointer(g.kernel.args[0]);
  args.b = g.pointer(g.kernel.args[1]);
  args.bias = g.pointer(e.bias);
  args.add = g.pointer(e.add);
  args.c = hidden > 0                ? workspace
           : e.result >= 0           ? g.pointer(e.result)
           : g.stored(g.kernel.root) ? g.pointer(g.kernel.root)
                                     : g.pointer(e.landing);
  void* scratch = static_cast<char*>(workspace) + hidden;
  Step product = [&device, handle, args, scratch] { device.run_gemm(handle, args, scratch); };
  return e.rest.empty() ? product : then(product, bind_tail(g, e.rest, args.c));
}

}  // namespace

const GpuFamily kGpuMatrix = {needs, bind};

}  // namespace nacre
