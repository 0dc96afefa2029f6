#include "nacre/engine/gpu/row_products.h"

#include <algorithm>

#include "nacre/engine/gpu/function_key.h"
#include "nacre/engine/gpu/gpu_pairs.h"
#include "nacre/engine/gpu/row_binding.h"

namespace nacre {
namespace {

FunctionKey key_of(const cuda::RowProduct& what) {
  FunctionKey key("row_product");
  key.add(*what.tail).add(what.n).add(what.shared_bytes).add(what.rows).add(what.k.size());
  for (const int64_t k : what.k) key.add(k);
  return key;
}

Step launch_product(const GpuKernel& g, const cuda::RowProduct& what, const cuda::LaunchParams& params) {
  const cuda::MmaTile tile = cuda::tile_of(what);
  const GpuFunction& function = g.context.compiler().function(key_of(what).bytes(), [&] {
    return cuda::RowSource{cuda::row_product(what), what.rows};
  });
  const int64_t held = int64_t{g.context.device().info().multiprocessors} * tile.together;
  return g.context.launch(function, std::min(blocks_for(g.rows(g.kernel.root), function), held), params);
}

// Returns `what` with as many rows in a block of threads as the variant says.
cuda::RowProduct in_blocks(cuda::RowProduct what, ProductBlock block) {
  what.rows = rows_of(block);
  return what;
}

}  // namespace

void add_own_product(const GpuKernel& g, const ProductFacts& facts, StepList& steps) {
  const SummedProducts& product = facts.product;
  const cuda::RowProduct what = row_product_of(facts, g.context.traits());
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
  const auto step_of = [&](ProductBlock block) { return launch_product(g, in_blocks(what, block), params); };
  const std::string key = key_of(what).add(rows).bytes();
  steps.then(step_of(g.timed_variant<ProductBlock>(product_block_variants(), facts, key, step_of)));
}

}  // namespace nacre
