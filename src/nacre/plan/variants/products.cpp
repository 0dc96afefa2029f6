#include "nacre/plan/variants/products.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/log.h"
#include "nacre/plan/operands.h"

namespace nacre {
namespace {

// The first architecture whose tensor cores read their operands from shared memory.
constexpr int kFirstArch = 90;
// Number of columns up to which the library is slower than our own kernel even if no operations
// follow the product (on an H200, a product with a matrix of 256 · 40 takes the library 0.09 ms and
// our own kernel 0.06 ms).
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
  if (device.joined_rows == 0) return "Nacre's own kernels for products are switched off";
  const int64_t least = joined_products(device).rows;
  if (least == 0) {
    return device.products != GemmType::tf32 ? "Nacre's own kernels for products need --precision tf32"
                                             : "Nacre's own kernels for products need a GPU of sm_90 or newer";
  }
  // The planner joins two products only where a typical block of a mini-batch has enough rows, so
  // few blocks have fewer, and two products are never declined for their number of rows.
  if (f.product.inputs.size() == 1) {
    if (f.columns > kFewColumns && f.library_does_tail)
      return "the library also does all operations that follow the product";
    if (f.rows < least)
      return fmt::format("the product has {} rows, fewer than the {} that keep the whole GPU busy", f.rows, least);
  }
  if (cuda::fits(row_product_of(f, device))) return "";
  return "the rows and the operations that follow the product do not fit into one block of threads";
}

std::string few_rows_decline(const ProductFacts& f, const DeviceTraits& device) {
  cuda::RowProduct what = row_product_of(f, device);
  what.rows = rows_of(ProductBlock::few_rows);
  if (!cuda::fits(what)) return "two blocks of threads do not fit on a multiprocessor at the same time";
  if (device.tune || cuda::rows_of_block(what) == what.rows) return "";
  return "this run does not time variants, and for rows as long as these 128 is the rule";
}

std::string all_rows_decline(const ProductFacts& f, const DeviceTraits& device) {
  const int64_t some = rows_at_a_time(f, device);
  if (some >= f.rows) return "";
  return fmt::format("the results of all {} rows would take {} of memory until the next operation has read them",
                     f.rows, human_bytes(static_cast<double>(f.rows * f.row_bytes)));
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
    // A value that the library adds must have the element type of the result.
    if (p.e.add < 0 || k.narrow(p.e.add) == p.narrow_out) break;
  }
  return p;
}

ProductFacts product_facts(const PlannedKernel& k, const DeviceTraits& device) {
  ProductFacts f;
  f.columns = k.width(k.kernel.root);
  f.rows = k.rows(k.kernel.root);
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
      "rows at a time",
      false,
      {{"all", all_rows_decline, nullptr}, {"some", nullptr, nullptr, rows_at_a_time}},
      {"{} at a time"}};
  return list;
}

int64_t rows_at_a_time(const ProductFacts& f, const DeviceTraits& device) {
  if (f.row_bytes == 0) return f.rows;
  const int64_t some = std::clamp<int64_t>(f.row_bytes * f.rows / 4, int64_t{32} << 20, int64_t{96} << 20);
  const int64_t most = (device.cache_bytes > 0 ? device.cache_bytes : some) / f.row_bytes;
  constexpr int64_t kStep = 16;
  return std::min(f.rows, std::max(kStep, most / kStep * kStep));
}

}  // namespace nacre
