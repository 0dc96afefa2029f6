#include "nacre/plan/variants/products.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/plan/operands.h"

namespace nacre {
namespace {

// The first whose tensor cores read their operands from shared memory.
constexpr int kFirstArch = 90;
// Number of columns up to which the library is slower even without a tail (H200, 256 · 40: 0.09 ms
// against 0.06 ms).
constexpr int64_t kFewColumns = 64;

// Returns whether a factor of rows lies in memory as bf16.
bool reads_narrow(const PlannedKernel& k) {
  if (k.kernel.kind == KernelKind::matmul) return k.narrow(operands<ProductOperands>(k.kernel).x);
  const auto in = operands<WeightGradOperands>(k.kernel);
  return k.narrow(in.x) || k.narrow(in.gradient);
}

// Returns the value in whose memory the result of the library lies, or -1 if there is none.
NodeRef destination(const PlannedKernel& k, const Epilogue& e) {
  if (e.result >= 0) return e.result;
  if (k.stored(k.kernel.root)) return k.kernel.root;
  return e.landing;
}

// Makes the tail store the root.
void store_root(const PlannedKernel& k, RowProgram& tail) {
  const NodeRef root = k.kernel.root;
  if (tail.code.empty()) tail.domain = k.node(root).type.space;
  int reg = -1;
  for (const Micro& m : tail.code) reg = m.op == MicroOp::root ? m.out : reg;
  if (reg < 0) {
    reg = static_cast<int>(tail.widths.size());
    tail.widths.push_back(k.width(root));
    tail.code.insert(tail.code.begin(), Micro{.op = MicroOp::root, .out = reg});
  }
  tail.narrow.resize(tail.operands.size());
  tail.operands.push_back(root);
  tail.narrow.push_back(k.narrow(root) ? 1 : 0);
  tail.code.push_back(Micro{.op = MicroOp::store, .a = reg, .operand = static_cast<int>(tail.operands.size()) - 1});
}

// Returns the bytes of the workspace that a row of the library's product takes.
int64_t workspace_row(const PlannedKernel& k) {
  const LibraryProduct p = library_product(k);
  const NodeRef x = operands<ProductOperands>(k.kernel).x;
  const int64_t result = p.to < 0 ? k.width(k.kernel.root) * (p.narrow_out ? 2 : 4) : 0;
  return result + (p.narrow && !k.narrow(x) ? 2 * k.width(x) : 0);
}

std::string own_kernel_declines(const ProductFacts& f, const DeviceTraits& device) {
  const int64_t least = joined_products(device).rows;
  if (least == 0) return "there are own kernels for tf32 products of GPUs from sm_90 on only";
  // Two products were joined for blocks that have enough rows; blocks that have not are few.
  if (f.product.inputs.size() == 1) {
    if (f.columns > kFewColumns && f.library_does_tail) return "the library does all of the tail";
    if (f.rows < least) return fmt::format("{} rows do not fill the device, {} would", f.rows, least);
  }
  return cuda::fits(row_product_of(f, device)) ? "" : "a block does not hold its rows, or not the tail";
}

std::string few_rows_decline(const ProductFacts& f, const DeviceTraits& device) {
  cuda::RowProduct what = row_product_of(f, device);
  if (!device.tune && cuda::rows_of_block(what) != rows_of(ProductBlock::few_rows))
    return "products over many elements have little to do after them";
  what.rows = rows_of(ProductBlock::few_rows);
  return cuda::fits(what) ? "" : "two blocks at a time do not fit";
}

std::string all_rows_decline(const ProductFacts& f, const DeviceTraits& device) {
  const int64_t some = rows_at_a_time(f, device, ProductRun::some_rows);
  return some < f.rows ? fmt::format("{} rows would wait in memory for what follows", f.rows) : "";
}

}  // namespace

JoinedProducts joined_products(const DeviceTraits& device) {
  if (!device.gpu) return {.rows = 1};
  const bool has = device.products == GemmType::tf32 && device.arch >= kFirstArch;
  if (!has || device.joined_rows == 0) return {0, cuda::kWidestRowProduct, false};
  const int64_t full = int64_t{device.multiprocessors} * cuda::kRowsOfBlock[0];
  return {device.joined_rows > 0 ? device.joined_rows : full, cuda::kWidestRowProduct, true};
}

LibraryProduct library_product(const PlannedKernel& k) {
  const Kernel& kernel = k.kernel;
  LibraryProduct p;
  for (const bool add : {true, false}) {
    p.e = absorb_tail(kernel.tail, k.stored(kernel.root), add);
    p.to = destination(k, p.e);
    p.narrow = reads_narrow(k) || k.narrow(p.to);
    p.narrow_out = p.to >= 0 ? k.narrow(p.to) : p.narrow;
    // What the library adds has the type of the result.
    if (p.e.add < 0 || k.narrow(p.e.add) == p.narrow_out) break;
  }
  return p;
}

ProductFacts product_facts(const PlannedKernel& k, const DeviceTraits& device) {
  ProductFacts f;
  f.columns = k.width(k.kernel.root);
  f.weight_grad = k.kernel.kind == KernelKind::weight_grad;
  f.rows = f.weight_grad ? k.width(operands<WeightGradOperands>(k.kernel).x) : k.rows(k.kernel.root);
  if (f.weight_grad) return f;
  f.row_bytes = workspace_row(k);
  if (joined_products(device).rows == 0) return f;
  f.product = summed_products(k.plan, k.kernel);
  for (const RowFactor& factor : f.product.inputs) f.depths.push_back(k.width(factor.x));
  const bool stored = k.stored(k.kernel.root);
  f.library_does_tail = absorb_tail(k.kernel.tail, stored).rest.empty();
  if (stored) store_root(k, f.product.tail);
  return f;
}

const VariantList<ProductFacts>& product_variants() {
  static const VariantList<ProductFacts> list = {
      "product", false, {{"own kernel", own_kernel_declines, nullptr}, {"library", nullptr, nullptr}}};
  return list;
}

cuda::RowProduct row_product_of(const ProductFacts& f, const DeviceTraits& device) {
  cuda::RowProduct what;
  what.k = f.depths;
  what.n = f.columns;
  what.tail = &f.product.tail;
  what.shared_bytes = device.shared_bytes;
  return what;
}

const VariantList<ProductFacts>& product_block_variants() {
  static const VariantList<ProductFacts> list = {
      "rows of a block", true, {{"64", few_rows_decline, nullptr}, {"128", nullptr, nullptr}}};
  return list;
}

int rows_of(ProductBlock block) { return cuda::kRowsOfBlock[block == ProductBlock::few_rows ? 1 : 0]; }

const VariantList<ProductFacts>& product_run_variants() {
  static const VariantList<ProductFacts> list = {
      "rows at a time", false, {{"all", all_rows_decline, nullptr}, {"some", nullptr, nullptr}}};
  return list;
}

int64_t rows_at_a_time(const ProductFacts& f, const DeviceTraits& device, ProductRun run) {
  if (run == ProductRun::all_rows || f.row_bytes == 0) return f.rows;
  const int64_t some = std::clamp<int64_t>(f.row_bytes * f.rows / 4, int64_t{32} << 20, int64_t{96} << 20);
  const int64_t most = (device.cache_bytes > 0 ? device.cache_bytes : some) / f.row_bytes;
  constexpr int64_t kStep = 16;
  return std::min(f.rows, std::max(kStep, most / kStep * kStep));
}

}  // namespace nacre
