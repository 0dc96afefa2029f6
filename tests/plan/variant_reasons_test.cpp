// Every variant that declines says why, in a sentence for people who read `nacre explain`.
#include <gtest/gtest.h>

#include "nacre/plan/variants/lstm.h"
#include "nacre/plan/variants/place.h"
#include "nacre/plan/variants/products.h"
#include "nacre/plan/variants/rows.h"
#include "nacre/plan/variants/sums.h"
#include "nacre/plan/variants/tasks.h"
#include "nacre/plan/variants/typed.h"
#include "plan/devices.h"
#include "support/tail.h"

namespace nacre::test {
namespace {

// Expects the variant `name` of the list to decline with exactly this reason, and the record of the
// decision to repeat it.
template <class Facts>
void expect_reason(const VariantList<Facts>& list, const Facts& facts, const DeviceTraits& device,
                   const std::string& name, const std::string& reason) {
  const std::vector<Judged> all = judge(list, facts, device);
  bool found = false;
  for (const Judged& v : all) {
    EXPECT_EQ(v.declined.find("vert"), std::string::npos) << "users read node: " << v.declined;
    if (v.name != name) continue;
    found = true;
    EXPECT_EQ(v.declined, reason) << list.decision;
  }
  EXPECT_TRUE(found) << list.decision << " has no variant " << name;
  EXPECT_TRUE(all.back().accepts()) << list.decision << ": the plainest variant never declines";
  const VariantChoice record = record_of(list.decision, all, cheapest(all));
  EXPECT_NE(record.why.find("not " + name + ": " + reason), std::string::npos) << record.why;
}

DeviceTraits tf32() { return large_gpu(GemmType::tf32); }
DeviceTraits f32() { return large_gpu(GemmType::f32); }

TEST(VariantReasons, OfPlaces) {
  expect_reason(place_variants(), {"reference", true}, f32(), "on the device",
                "there is no GPU version of the kernel reference");
}

TEST(VariantReasons, OfLstms) {
  expect_reason(lstm_variants(), {64}, f32(), "a group of threads each",
                "the LSTM has 64 units, and the registers of a group of threads hold the recurrent matrix of 32");
  expect_reason(long_source_variants(), {64}, f32(), "in pieces", "no rows of several steps are added");
}

ProductFacts product_of(int64_t rows, int64_t columns, int64_t depth, const RowProgram& tail) {
  ProductFacts f;
  f.rows = rows;
  f.columns = columns;
  f.depths = {depth};
  f.product.inputs.resize(1);
  f.product.tail = tail;
  return f;
}

TEST(VariantReasons, OfProducts) {
  Tail tail(128);
  tail.store(tail.root(), 9);
  ProductFacts f = product_of(1000, 128, 96, tail.program());
  const auto expect = [&](const DeviceTraits& device, const std::string& reason) {
    expect_reason(product_variants(), f, device, "own kernel", reason);
  };
  expect(f32(), "Nacre's own kernels for products need --precision tf32");
  DeviceTraits other = tf32();
  other.arch = 80;
  expect(other, "Nacre's own kernels for products need a GPU of sm_90 or newer");
  other = tf32();
  other.joined_rows = 0;
  expect(other, "Nacre's own kernels for products are switched off");
  expect(tf32(), "the product has 1000 rows, fewer than the 16896 that keep the whole GPU busy");
  f.rows = 200000;
  f.library_does_tail = true;
  expect(tf32(), "the library also does all operations that follow the product");
  f.columns = 3;
  f.depths = {0};
  expect(tf32(), "the rows and the operations that follow the product do not fit into one block of threads");
}

TEST(VariantReasons, OfBlocksAndRunsOfProducts) {
  Tail tail(256);
  tail.store(tail.root(), 9);
  const ProductFacts deep = product_of(200000, 256, 4096, tail.program());
  expect_reason(product_block_variants(), deep, tf32(), "64",
                "this run does not time variants, and for rows as long as these 128 is the rule");
  ProductFacts f;
  f.rows = 1 << 24;
  f.row_bytes = 64;
  expect_reason(
      product_run_variants(), f, f32(), "all",
      "the results of all 16777216 rows would take 1.00 GiB of memory until the next operation has read them");
}

TEST(VariantReasons, OfColumnsAndWeights) {
  SpmmFacts f;
  f.read = 1000000;
  f.width = 128;
  f.mean_degree = 10;
  const auto expect = [&](const char* name, const std::string& reason) {
    expect_reason(spmm_tile_variants(), f, f32(), name, reason);
  };
  expect("tiles", "a row is read 10 times on average, and tiles save time from 64 times on");
  f.mean_degree = 100;
  expect("tiles of a copy", "tiles of the rows themselves already begin where a line of memory begins");
  f.width = 100;
  f.read = 100000000;
  expect("tiles of a copy", "a copy of the rows would take 47.68 GiB, and at most 2.00 GiB may be used for it");
  f.width = 30;
  expect("tiles", "rows of 30 columns cannot be cut into tiles of a useful width");
  f.read = 1024;
  f.width = 64;
  expect("tiles", "the rows take 256.00 KiB, which fits into the GPU's cache");
  f.heads = 4;
  expect("tiles", "there are several attention heads, each with its own weights");
  const auto weights = [&](const std::string& reason) {
    expect_reason(spmm_weight_variants(), f, f32(), "in the order of the walk", reason);
  };
  weights("the edges have no weights");
  f.weighted = true;
  weights("the weights already lie in the order in which the sum reads them");
  f.other_order = true;
  f.width = 32;
  weights("the rows are so short that a copy of the weights saves no time");
  f.width = 64;
  expect_reason(spmm_weight_variants(), f, f32(), "kept in the order of the walk", "the weights change in every step");
}

TEST(VariantReasons, OfRowsInFlight) {
  DeviceTraits device = f32();
  expect_reason(row_shape_variants(), {1e9, 0}, device, "more warps", "this run does not time variants");
  device.tune = true;
  expect_reason(row_shape_variants(), {1e6, 0}, device, "more warps", "the kernel takes too little time to be timed");
  expect_reason(row_shape_variants(), {1e9, 2}, device, "more warps",
                "a group of threads reads fewer than four rows at the same time anyway");
}

TEST(VariantReasons, OfRows) {
  const RowFacts f = {1000, 1, 64, false};
  expect_reason(row_thread_variants(), f, f32(), "for a mean row", "a row has at most one edge on average");
  const std::string alike = "this plan does not treat outliers apart (split_outliers)";
  expect_reason(long_sum_variants(), f, f32(), "in pieces", alike);
  expect_reason(long_softmax_variants(), f, f32(), "a block of threads each", alike);
}

TEST(VariantReasons, OfChunksAndAlgorithms) {
  expect_reason(chunk_variants(), {1000000, 1024, 1 << 20, 128}, f32(), "all",
                "the 1000000 rows would take 976.56 MiB of memory, and at most 1.00 MiB may be used for them");
  const auto expect = [](KernelKind kind, const DeviceTraits& device, const char* name, const std::string& reason) {
    expect_reason(algorithm_variants(), algorithm_facts(kind), device, name, reason);
  };
  DeviceTraits device = f32();
  expect(KernelKind::matmul, device, "timed", "this run does not time variants");
  device.tune = true;
  expect(KernelKind::matmul, device.of_batches(), "timed", "the shapes of a batch do not come again");
  expect(KernelKind::typed_rows, device, "timed", "small products of this kernel are not worth timing");
  expect(KernelKind::gtask_grad, device, "timed for large products", "the products of gTasks are not worth timing");
}

TEST(VariantReasons, OfGTasks) {
  const auto expect = [](const TaskFacts& f, const DeviceTraits& device, const std::string& reason) {
    expect_reason(task_cut_variants(), f, device, "cut on the GPU", reason);
  };
  expect({1000, 20, 10, 1 << 30}, f32(), "1000 edges are cut on the host in less time than copying them takes");
  expect({100000000, 20, 10, 1 << 30}, f32(), "cutting would take 6.71 GiB of the GPU's memory, and 1.00 GiB are free");
  expect({100000000, 20, 10, int64_t{1} << 40}, f32().of_batches(),
         "the edges of a batch are cut while the GPU works on other batches");
  expect_reason(task_window_variants(), {0, 20, 10, 1 << 30}, f32(), "until rows are in few pieces",
                "there are no edges");
}

TEST(VariantReasons, OfEdgesAndWeightsOfPairs) {
  PairSumFacts f;
  const auto edges = [&](const std::string& reason) {
    expect_reason(pair_edge_variants(), f, f32(), "brought for one use", reason);
  };
  const auto weights = [&](const std::string& reason) {
    expect_reason(pair_weight_variants(), f, f32(), "kept in the order of the pairs", reason);
  };
  edges("the sums are computed in every step");
  weights("the edges have no weights");
  f.weighted = true;
  weights("the weights change in every step");
  f.once = true;
  f.constant_weights = true;
  weights("the weights are read once");
  f.others_in_steps = true;
  edges("kernels that run in every step walk the same edges");
}

TEST(VariantReasons, OfSumsOverPairs) {
  const auto tiles = [&](const PairSumFacts& f, const std::string& reason) {
    expect_reason(pair_sum_variants(), f, f32(), "tiles", reason);
  };
  tiles({1000000, 1024, 64}, "the rows take 256.00 KiB, which fits into the GPU's cache");
  tiles({20000000, 1000000, 128}, "a row is read 20 times on average, and tiles save time from 64 times on");
  tiles({100000000, 1000000, 100}, "rows of 100 columns cannot be cut into tiles of a useful width");
  const auto rows = [&](const PairSumFacts& f, const std::string& reason) {
    expect_reason(pair_row_variants(), f, f32(), "copied to whole vectors", reason);
  };
  rows({1000000, 1000, 64}, "rows of 64 numbers can be read in vectors as they are");
  rows({1000000, 1000, 5}, "rows of 5 numbers are too short to pay for a copy");
  rows({1000, 10, 30}, "1000 edges are too few to pay for a copy of the rows");
  rows({1000000, 500000, 30}, "a row is read fewer than 4 times on average, which does not pay for a copy");
}

TEST(VariantReasons, OfTypedSums) {
  TypedReduceFacts f;
  f.pairs = {1000, 4000, 4};
  f.in = f.out = 64;
  expect_reason(typed_reduce_variants(), f, f32(), "by cell", "this variant needs --precision tf32");
  expect_reason(pair_product_variants(), f, tf32(), "by cell, with the node's own",
                "no product of the nodes' own rows is added");
  f.pairs.pairs = 0;
  f.own = RowFactor{1, 2, false};
  expect_reason(pair_product_variants(), f, tf32(), "by cell, with the node's own", "there are no edges");
  f.own.reset();
  f.pairs = {100000000, 400000000, 4};
  expect_reason(typed_reduce_variants(), f, tf32(), "by cell",
                "the sums would take 95.37 GiB of memory, and at most 10.00 GiB may be used for them");
  f.pairs.vertices = int64_t{1} << 32;
  expect_reason(typed_reduce_variants(), f, tf32(), "side by side",
                "there are more pairs of node and edge type than 32 bits can number");
}

TEST(VariantReasons, OfTypedWeightGradients) {
  expect_reason(typed_grad_variants(), {{int64_t{1} << 32, 1000, 4}, 64, 64}, tf32(), "side by side",
                "there are more pairs of node and edge type than 32 bits can number");
}

TEST(VariantReasons, OfTypedRows) {
  TypedRowsFacts f = {{1000, 3000, 4}, 3000, 64, 64, true, false, false};
  expect_reason(typed_rows_variants(), f, tf32(), "read where they lie",
                "the rows of each edge type lie together, so the library can read them");
  expect_reason(typed_rows_variants(), f, tf32(), "side by side",
                "the kernel does not work on both rows of nodes and rows of pairs of node and edge type");
  f.by_vertex = true;
  expect_reason(typed_rows_variants(), f, f32(), "read where they lie", "this variant needs --precision tf32");
  f.every_vertex = true;
  expect_reason(typed_rows_variants(), f, tf32(), "side by side",
                "each edge type has all nodes in their order, so its rows lie together already");
  f.in = f.out = 4096;
  expect_reason(type_matrix_variants(), f, tf32(), "kept in shared memory",
                "a matrix does not fit into the shared memory of a block of threads beside the rows");
  TypedRowsGradFacts g = {{1000, 3000, 4}, 3000, 64, 64, true, true, false, false};
  expect_reason(typed_rows_grad_variants(), g, tf32(), "read where they lie",
                "there are 3000 rows, fewer than the 33792 that keep the whole GPU busy");
}

}  // namespace
}  // namespace nacre::test
