// Variants of dense products on a GPU.
#pragma once

#include "nacre/kernel/cuda/row_product.h"
#include "nacre/plan/epilogue.h"
#include "nacre/plan/variants.h"

namespace nacre {

// How the library's product takes the tail of a kernel, and where its result goes.
struct LibraryProduct {
  Epilogue e;
  NodeRef to = -1;          // the value in whose memory the result lies; -1: rows of the workspace
  bool narrow = false;      // its operands are bf16
  bool narrow_out = false;  // its result is bf16
};
LibraryProduct library_product(const PlannedKernel& k);

struct ProductFacts {
  int64_t rows = 0, columns = 0;  // of the result
  std::vector<int64_t> depths;    // widths of the rows of each product that the kernel adds
  // What a kernel of our own computes; its tail stores the result where it is wanted.
  SummedProducts product;
  bool library_does_tail = false;
  bool weight_grad = false;
  int64_t row_bytes = 0;  // of the workspace that a row of the library's product takes
};
ProductFacts product_facts(const PlannedKernel& k, const DeviceTraits& device);

// A product and its tail as one kernel of our own, or the library's product with what it can do of
// the tail.
enum class ProductWay { own_kernel, library };
const VariantList<ProductFacts>& product_variants();
// Returns the product as the writer of its source takes it. The facts must outlive the result.
cuda::RowProduct row_product_of(const ProductFacts& facts, const DeviceTraits& device);

// Rows of a block of our own kernel: fewer rows, and two blocks at a time, or more rows. Neither
// changes a bit.
enum class ProductBlock { few_rows, many_rows };
const VariantList<ProductFacts>& product_block_variants();
int rows_of(ProductBlock block);

// Rows of the library's product that lie in the workspace until the next step has read them are
// done some at a time.
enum class ProductRun { all_rows, some_rows };
const VariantList<ProductFacts>& product_run_variants();
// Returns how many rows a product does at a time: enough to keep the device busy. (As many as fit
// the cache save no time, because the steps become too short.)
int64_t rows_at_a_time(const ProductFacts& facts, const DeviceTraits& device, ProductRun run);

}  // namespace nacre
