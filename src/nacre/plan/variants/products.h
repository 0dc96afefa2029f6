// Variants of dense products on a GPU.
#pragma once

#include "nacre/kernel/cuda/row_product.h"
#include "nacre/plan/epilogue.h"
#include "nacre/plan/variants.h"

namespace nacre {

// How much of a kernel's tail the library computes together with the product, and where the result
// goes.
struct LibraryProduct {
  Epilogue e;
  NodeRef to = -1;          // the value in whose memory the result lies; -1: rows of the workspace
  bool narrow = false;      // the operands are bf16
  bool narrow_out = false;  // the result is bf16
};
LibraryProduct library_product(const PlannedKernel& k);

struct ProductFacts {
  int64_t rows = 0, columns = 0;  // size of the result
  std::vector<int64_t> depths;    // widths of the rows of each product that the kernel adds
  // What a kernel of our own computes. If the plan stores the product's result, the tail of this
  // kernel stores it.
  SummedProducts product;
  bool library_does_tail = false;  // the library computes the whole tail together with the product
  int64_t row_bytes = 0;           // bytes of workspace that a row of the library's product takes
};
// Returns the facts of a matmul.
ProductFacts product_facts(const PlannedKernel& k, const DeviceTraits& device);

// The decision `product`: one kernel of our own computes the product and its tail, or the library
// computes the product and as much of the tail as it can.
enum class ProductWay { own_kernel, library };
const VariantList<ProductFacts>& product_variants();
// Returns the description of the product from which its source is written. The facts must outlive
// the result.
cuda::RowProduct row_product_of(const ProductFacts& facts, const DeviceTraits& device);

// The decision `rows of a block`, for our own kernel: with 64 rows two blocks of threads share a
// multiprocessor, with 128 rows there is one. The bits of the result are the same.
enum class ProductBlock { few_rows, many_rows };
const VariantList<ProductFacts>& product_block_variants();
int rows_of(ProductBlock block);

// The decision `rows at a time`, for products that the library (cuBLASLt) computes: one call
// computes all rows or, where the results lie in the workspace until the next step has read them,
// several calls compute some of the rows each.
enum class ProductRun { all_rows, some_rows };
const VariantList<ProductFacts>& product_run_variants();
// Returns how many rows the variant some_rows computes at a time, which is its limit: enough to
// keep the device busy. Fewer rows, whose results would fit into the cache, save no time, because
// the steps become too short.
int64_t rows_at_a_time(const ProductFacts& facts, const DeviceTraits& device);

}  // namespace nacre
