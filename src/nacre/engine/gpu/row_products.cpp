#include "nacre/engine/gpu/row_products.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/log.h"
#include "nacre/engine/gpu/epilogue.h"
#include "nacre/engine/gpu/function_key.h"
#include "nacre/engine/gpu/rows_parts.h"
#include "nacre/engine/gpu/typed_parts.h"
#include "nacre/kernel/cuda/row_product.h"

namespace nacre {
namespace {

constexpr int kFirstArch = 90;  // whose tensor cores read their operands from shared memory
// Columns up to which the library is slower even where there is no tail (H200, 256 · 40: 0.09 ms against 0.06).
constexpr int64_t kNarrow = 64;

cuda::RowProduct source_of(const GpuKernel& g, const SummedProducts& product) {
  cuda::RowProduct what;
  for (const RowFactor& f : product.inputs) what.k.push_back(g.width(f.x));
  what.n = g.width(g.kernel.root);
  what.tail = &product.tail;
  what.shared_bytes = g.context.device().info().shared_bytes;
  return what;
}

// Writes the root as well where it is wanted.
void store_root(const GpuKernel& g, RowProgram& tail) {
  const NodeRef root = g.kernel.root;
  if (tail.code.empty()) tail.domain = g.node(root).type.space;
  int reg = -1;
  for (const Micro& m : tail.code) reg = m.op == MicroOp::root ? m.out : reg;
  if (reg < 0) {
    reg = static_cast<int>(tail.widths.size());
    tail.widths.push_back(g.width(root));
    tail.code.insert(tail.code.begin(), Micro{.op = MicroOp::root, .out = reg});
  }
  tail.narrow.resize(tail.operands.size());
  tail.operands.push_back(root);
  tail.narrow.push_back(g.narrow(root) ? 1 : 0);
  tail.code.push_back(Micro{.op = MicroOp::store, .a = reg, .operand = static_cast<int>(tail.operands.size()) - 1});
}

FunctionKey key_of(const cuda::RowProduct& what) {
  FunctionKey key("row_product");
  key.add(*what.tail).add(what.n).add(what.shared_bytes).add(what.rows).add(what.k.size());
  for (const int64_t k : what.k) key.add(k);
  return key;
}

Step launch_product(const GpuKernel& g, const cuda::RowProduct& what, const cuda::LaunchParams& params) {
  const cuda::MmaTile tile = cuda::tile_of(what);
  const GpuFunction& function = g.context.loader().function(key_of(what).bytes(), [&] {
    return cuda::RowSource{cuda::row_product(what), what.rows};
  });
  const int64_t held = int64_t{g.context.device().info().multiprocessors} * tile.together;
  return g.context.launch(function, std::min(blocks_for(g.rows(g.kernel.root), function), held), params);
}

// Rows of a block, told apart by timing, once for each shape.
int faster_block(const GpuKernel& g, const cuda::RowProduct& what, const cuda::LaunchParams& params) {
  std::vector<int> tried;
  for (const int rows : cuda::kRowsOfBlock) {
    cuda::RowProduct other = what;
    other.rows = rows;
    if (cuda::fits(other)) tried.push_back(rows);
  }
  if (tried.empty()) return what.rows;
  const auto variants = [&] {
    std::vector<Step> steps;
    for (const int rows : tried) {
      cuda::RowProduct other = what;
      other.rows = rows;
      steps.push_back(launch_product(g, other, params));
    }
    return steps;
  };
  FunctionKey key = key_of(what);
  const int best = g.context.choose(key.add(g.rows(g.kernel.root)).bytes(), variants, [&](const auto& steps) {
    int fastest = 0;
    double least = 1e30;
    for (size_t i = 0; i < steps.size(); ++i) {
      const double seconds = time_step(g.context, steps[i]);
      log_verbose(
          fmt::format("product of {} columns in blocks of {} rows: {:.3f} ms", what.n, tried[i], seconds * 1e3));
      if (seconds < least) fastest = static_cast<int>(i);
      least = std::min(least, seconds);
    }
    return fastest;
  });
  return tried[best];
}

}  // namespace

int64_t rows_of_whole_products(GpuContext& context) {
  const DeviceInfo& info = context.device().info();
  const bool has = context.options().precision == GemmType::tf32 && info.arch >= kFirstArch;
  if (!has || context.options().whole_products == 0) return 0;
  return context.options().whole_products > 0 ? context.options().whole_products
                                              : int64_t{info.multiprocessors} * cuda::kRowsOfBlock[0];
}

std::optional<SummedProducts> whole_product(const GpuKernel& g) {
  const Kernel& k = g.kernel;
  const int64_t least = rows_of_whole_products(g.context);
  if (k.kind != KernelKind::matmul || least == 0) return {};
  SummedProducts product = summed_products(g.executor.plan(), k);
  const bool stored = g.stored(k.root);
  // Two products were joined for blocks that have the rows; those that have not are few.
  if (product.inputs.size() == 1) {
    const bool of_library = g.width(k.root) > kNarrow && absorb_tail(k.tail, stored).rest.empty();
    if (of_library || g.rows(k.root) < least) return {};
  }
  if (stored) store_root(g, product.tail);
  if (!cuda::fits(source_of(g, product))) return {};
  return product;
}

void add_whole_product(const GpuKernel& g, const SummedProducts& product, StepList& steps) {
  cuda::RowProduct what = source_of(g, product);
  const int64_t rows = g.rows(g.kernel.root);
  cuda::LaunchParams params(cuda::RowProductParams{.rows = rows, .step = g.context.step()});
  for (const RowFactor& f : product.inputs) {
    const Dims& dims = g.node(f.w).type.dims;
    const WeightShape shape = {1, dims[0], dims[1]};
    const auto* w = static_cast<const float*>(g.pointer(f.w));
    params.then(cuda::RowFactorParams{.x = g.pointer(f.x), .w = matrices_of(steps, shape, w, f.transpose)});
  }
  if (steps.sizing()) return;
  params.operands(operands_of(g, product.tail));
  what.rows = cuda::rows_of_block(what);
  if (g.context.options().tune) what.rows = faster_block(g, what, params);
  steps.then(launch_product(g, what, params));
}

}  // namespace nacre
