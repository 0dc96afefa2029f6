// The variant lists choose what the binders of the GPU back end chose before there were lists:
// their rules are written down here once more and compared with the lists over a grid of shapes.
// And a plan keeps what was chosen.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/kernel/cuda/typed.h"
#include "nacre/plan/variants/lstm.h"
#include "nacre/plan/variants/place.h"
#include "nacre/plan/variants/products.h"
#include "nacre/plan/variants/sums.h"
#include "nacre/plan/variants/typed.h"
#include "plan/devices.h"
#include "plan/plans.h"
#include "support/tail.h"

namespace nacre::test {
namespace {

std::vector<DeviceTraits> devices() {
  std::vector<DeviceTraits> all;
  for (const GemmType products : {GemmType::f32, GemmType::tf32, GemmType::bf16}) all.push_back(large_gpu(products));
  all.push_back(large_gpu(GemmType::tf32));
  all.back().multiprocessors = 16;
  all.back().arch = 80;
  all.back().l2_bytes = 4 << 20;
  all.back().shared_bytes = 99 << 10;
  all.back().memory_bytes = int64_t{4} << 30;
  all.push_back(large_gpu(GemmType::tf32));
  all.back().cache_bytes = 1 << 20;
  all.back().joined_rows = 1;
  return all;
}

std::vector<PairCounts> pair_counts() {
  std::vector<PairCounts> all;
  for (const int64_t vertices : {10, 3000, 20000, 200000, 3000000, 700000000}) {
    for (const int64_t types : {1, 2, 4, 16, 64}) {
      for (const double share : {0.05, 0.3, 0.9, 1.0}) {
        const double pairs = static_cast<double>(vertices * types) * share;
        all.push_back({vertices, std::max<int64_t>(1, static_cast<int64_t>(pairs)), types});
      }
    }
  }
  return all;
}

constexpr int64_t kWidths[] = {4, 16, 40, 64, 128, 256, 602};

// What a way of doing typed products costs, as the binders had it.
struct WayCost {
  double launches, floats, flops;
  double seconds() const { return launches * 3e-6 + floats * 4 / 3.5e12 + flops / 300e12; }
};

template <class Way, class Facts>
Way chosen(const VariantList<Facts>& list, const Facts& facts, const DeviceTraits& device) {
  return static_cast<Way>(variant_to_run(judge(list, facts, device), ""));
}

bool old_by_cell(const TypedReduceFacts& f, const DeviceTraits& d) {
  const cuda::TypedProduct what = {f.in, f.out, f.pairs.types, d.shared_bytes, false, nullptr};
  if (d.products != GemmType::tf32 || !f.pairs.has_cells() || !cuda::fits(what)) return false;
  return f.pairs.vertices >= int64_t{cuda::tile_of(what).rows()} * d.multiprocessors;
}

TypedReduceWay old_reduce(const TypedReduceFacts& f, const DeviceTraits& d) {
  const auto in = static_cast<double>(f.in), out = static_cast<double>(f.out);
  const auto pairs = static_cast<double>(f.pairs.pairs), vertices = static_cast<double>(f.pairs.vertices);
  const auto types = static_cast<double>(f.pairs.types), cells = vertices * types;
  const double wide = WayCost{3, 2 * cells * in + vertices * out, 2 * cells * in * out}.seconds();
  const double by_cell = WayCost{3, 2 * pairs * in + vertices * out, 1.4 * 2 * pairs * in * out}.seconds();
  const double by_type = WayCost{types + 2, 2 * pairs * (in + out) + vertices * out, 2 * pairs * in * out}.seconds();
  const bool fits = old_by_cell(f, d) && f.pairs.pairs * f.in * 4 <= d.memory_bytes / 8;
  if (fits && by_cell < std::min(wide, by_type)) return TypedReduceWay::by_cell;
  return f.pairs.has_cells() && wide < by_type ? TypedReduceWay::side_by_side : TypedReduceWay::by_type;
}

TEST(Variants, OfTypedSumsAreThoseOfTheOldRule) {
  int seen[3] = {};
  for (const DeviceTraits& d : devices()) {
    for (const PairCounts& pairs : pair_counts()) {
      for (const int64_t in : kWidths) {
        for (const int64_t out : kWidths) {
          TypedReduceFacts f;
          f.pairs = pairs;
          f.in = in;
          f.out = out;
          const auto way = chosen<TypedReduceWay>(typed_reduce_variants(), f, d);
          ASSERT_EQ(way, old_reduce(f, d)) << pairs.vertices << " " << pairs.pairs << " " << in << " " << out;
          ++seen[static_cast<int>(way)];
          f.of_pairs = true;
          ASSERT_EQ(chosen<PairProductWay>(pair_product_variants(), f, d),
                    old_by_cell(f, d) ? PairProductWay::by_cell : PairProductWay::by_type);
        }
      }
    }
  }
  for (const int count : seen) EXPECT_GT(count, 50) << "the grid leaves a variant out";
}

TEST(Variants, OfProductsOfPairsTakeTheVertexsOwnProductWhereTheTailHasOne) {
  TypedReduceFacts f;
  f.pairs = {10, 25, 4};
  f.in = f.out = 64;
  f.of_pairs = true;
  f.own = RowFactor{1, 2, false};
  Tail tail(64);
  tail.store(tail.apply(MicroOp::relu, tail.root()), 9);
  f.tail = tail.program();
  const DeviceTraits d = large_gpu(GemmType::tf32);
  const auto way = [&] { return chosen<PairProductWay>(pair_product_variants(), f, d); };
  EXPECT_EQ(way(), PairProductWay::by_cell_with_own) << "however few vertices there are";
  f.pairs.pairs = 0;
  EXPECT_EQ(way(), PairProductWay::by_type);
  f.pairs.pairs = 25;
  f.own.reset();
  EXPECT_EQ(way(), PairProductWay::by_type);
}

TEST(Variants, OfTypedWeightGradientsAreThoseOfTheOldRule) {
  const DeviceTraits d = large_gpu(GemmType::f32);
  for (const PairCounts& pairs : pair_counts()) {
    for (const int64_t summed : kWidths) {
      for (const int64_t by_row : kWidths) {
        const auto s = static_cast<double>(summed), r = static_cast<double>(by_row);
        const auto p = static_cast<double>(pairs.pairs), v = static_cast<double>(pairs.vertices);
        const auto t = static_cast<double>(pairs.types);
        const WayCost wide = {3, 2 * v * t * s + v * r, 2 * v * t * s * r};
        const WayCost by_type = {t + 2, p * (2 * s + 3 * r), 2 * p * s * r};
        const bool side = pairs.has_cells() && wide.seconds() < by_type.seconds();
        ASSERT_EQ(chosen<TypedGradWay>(typed_grad_variants(), {pairs, summed, by_row}, d),
                  side ? TypedGradWay::side_by_side : TypedGradWay::by_type);
      }
    }
  }
}

bool old_side_by_side(const PairCounts& c, int64_t by_vertex, int64_t kept, bool spread) {
  const auto v = static_cast<double>(by_vertex), w = static_cast<double>(kept);
  const auto rows = static_cast<double>(c.pairs), vertices = static_cast<double>(c.vertices);
  const auto types = static_cast<double>(c.types);
  const WayCost side = {3, vertices * v + (spread ? 2 : 1) * vertices * types * w + (spread ? 1 : 2) * rows * w,
                        2 * vertices * types * v * w};
  const WayCost by_type = {types + 1, rows * (3 * v + w), 2 * rows * v * w};
  return c.has_cells() && side.seconds() < by_type.seconds();
}

TypedRowsWay old_rows(const TypedRowsFacts& f, const DeviceTraits& d) {
  cuda::TypedProduct what = {f.in, f.out, 0, d.shared_bytes, true};
  what.resident = cuda::fits(what);
  const bool many = d.products == GemmType::tf32 && f.rows >= int64_t{cuda::tile_of(what).rows()} * d.multiprocessors;
  if ((f.by_vertex || !f.of_pairs) && many && cuda::fits(what)) return TypedRowsWay::tensor_cores;
  const bool may = f.by_vertex && f.of_pairs && !f.every_vertex;
  return may && old_side_by_side(f.pairs, f.in, f.out, false) ? TypedRowsWay::side_by_side : TypedRowsWay::by_type;
}

TypedRowsGradWay old_rows_grad(const TypedRowsGradFacts& f, const DeviceTraits& d) {
  const bool many = d.products == GemmType::tf32 && f.rows >= int64_t{256} * d.multiprocessors;
  if (many && cuda::fits(cuda::TypedGrad{f.k, f.n, d.shared_bytes})) return TypedRowsGradWay::tensor_cores;
  const bool may = f.x_by_vertex != f.g_by_vertex && f.of_pairs && !f.every_vertex;
  const int64_t by_vertex = f.x_by_vertex ? f.k : f.n, by_pair = f.x_by_vertex ? f.n : f.k;
  return may && old_side_by_side(f.pairs, by_vertex, by_pair, true) ? TypedRowsGradWay::side_by_side
                                                                    : TypedRowsGradWay::by_type;
}

TEST(Variants, OfTypedRowsAreThoseOfTheOldRule) {
  int seen[3] = {}, seen_grads[3] = {};
  for (const DeviceTraits& d : devices()) {
    for (const PairCounts& pairs : pair_counts()) {
      for (const int64_t in : kWidths) {
        for (const int64_t out : {4, 64, 256}) {
          for (int flags = 0; flags < 16; ++flags) {
            const bool of_pairs = (flags & 1) != 0, every = (flags & 8) != 0;
            const int64_t rows = of_pairs ? pairs.pairs : pairs.pairs * 3;
            const TypedRowsFacts f = {pairs, rows, in, out, of_pairs, (flags & 2) != 0, every};
            const auto way = chosen<TypedRowsWay>(typed_rows_variants(), f, d);
            ASSERT_EQ(way, old_rows(f, d)) << pairs.vertices << " " << pairs.pairs << " " << in << " " << out;
            ++seen[static_cast<int>(way)];
            const TypedRowsGradFacts g = {pairs, rows, in, out, of_pairs, (flags & 2) != 0, (flags & 4) != 0, every};
            const auto grad = chosen<TypedRowsGradWay>(typed_rows_grad_variants(), g, d);
            ASSERT_EQ(grad, old_rows_grad(g, d)) << pairs.vertices << " " << pairs.pairs << " " << in << " " << out;
            ++seen_grads[static_cast<int>(grad)];
          }
        }
      }
    }
  }
  for (const int count : seen) EXPECT_GT(count, 50) << "the grid leaves a variant out";
  for (const int count : seen_grads) EXPECT_GT(count, 50) << "the grid leaves a variant out";
}

ColumnTiles old_tiles(const SpmmFacts& f, const DeviceTraits& d) {
  const ColumnTiles whole = {1, f.width};
  if (f.heads > 1 || f.mean_degree < 64) return whole;
  const int64_t cache = d.cache_bytes;
  if (f.read * f.width * (f.narrow ? 2 : 4) <= (cache > 0 ? cache : d.l2_bytes)) return whole;
  if (!f.narrow && f.width % 4 == 0) {
    constexpr int64_t kLine = 32, kLines = 2 * kLine;
    if (f.width % kLine == 0 && f.width % kLines != 0) return {static_cast<int>(f.width / kLine), kLine};
    const int64_t tiles = (f.width + kLines - 1) / kLines;
    const int64_t budget = std::min(d.memory_bytes / 8, int64_t{2} << 30);
    const bool copied = tiles > 1 && f.width % kLine != 0 && f.read * tiles * kLines * 4 <= budget;
    return {static_cast<int>(tiles), (f.width / 4 + tiles - 1) / tiles * 4, copied ? kLines : 0};
  }
  for (int tiles = static_cast<int>(std::max<int64_t>(1, f.width / 48)); tiles > 1; --tiles) {
    if (f.width % tiles == 0 && f.width / tiles <= 128 && f.width / tiles % (f.narrow ? 8 : 2) == 0) {
      return {tiles, f.width / tiles};
    }
  }
  return whole;
}

TEST(Variants, OfColumnsAreThoseOfTheOldRule) {
  int seen[5] = {};
  for (const DeviceTraits& d : devices()) {
    for (const int64_t read : {1000, 100000, 500000, 30000000}) {
      for (int64_t width = 1; width < 700; ++width) {
        for (int flags = 0; flags < 8; ++flags) {
          SpmmFacts f;
          f.read = read;
          f.width = width;
          f.heads = (flags & 1) != 0 ? 4 : 1;
          f.mean_degree = (flags & 2) != 0 ? 63 : 64;
          f.narrow = (flags & 4) != 0;
          const auto way = chosen<SpmmTiles>(spmm_tile_variants(), f, d);
          const ColumnTiles tiles = column_tiles(f, way), old = old_tiles(f, d);
          ASSERT_EQ(tiles.count, old.count) << width;
          ASSERT_EQ(tiles.width, old.width) << width;
          ASSERT_EQ(tiles.pitch, old.pitch) << width;
          ++seen[static_cast<int>(way)];
          const PairSumFacts sums = {read * f.mean_degree, read, width};
          const bool fits = read * width * 4 <= (d.cache_bytes > 0 ? d.cache_bytes : d.l2_bytes);
          const int64_t count = fits || sums.edges < 64 * read ? 1 : std::max<int64_t>(1, width / 64);
          const auto pair_way = chosen<PairSumTiles>(pair_sum_variants(), sums, d);
          ASSERT_EQ(pair_way == PairSumTiles::tiles ? tiles_of_pair_sum(sums) : 1, count) << width;
        }
      }
    }
  }
  for (const SpmmTiles way : {SpmmTiles::copied, SpmmTiles::in_place, SpmmTiles::none})
    EXPECT_GT(seen[static_cast<int>(way)], 50) << "the grid leaves a variant out";
  EXPECT_EQ(seen[static_cast<int>(SpmmTiles::line)] + seen[static_cast<int>(SpmmTiles::half_line)], 0)
      << "narrow tiles are for devices that share their cache";
}

// Returns the facts of a sum on one of four parts of a GPU that train a graph as large and as dense
// as reddit.
SpmmFacts dense_sum() {
  SpmmFacts f;
  f.read = 233000;
  f.width = 256;
  f.mean_degree = 490;
  f.rows = 58000;
  f.edges = 28e6;
  f.ordered = true;
  return f;
}

DeviceTraits quarter_of_gpu() {
  DeviceTraits d = large_gpu(GemmType::tf32);
  d.multiprocessors = 32;
  d.part = {32.0 / 132, 128.0 / 132};
  return d;
}

TEST(Variants, OfSourcesAreBlocksThatFitTheShareOfTheCache) {
  const SpmmFacts f = dense_sum();
  const DeviceTraits part = quarter_of_gpu();
  EXPECT_EQ(part.gathered_cache(), (50 << 20) / 4);
  const auto way = chosen<SpmmTiles>(spmm_tile_variants(), f, part);
  const ColumnTiles tiles = column_tiles(f, way);
  const int blocks = source_blocks(chosen<int>(spmm_source_variants(), {f, tiles}, part));
  EXPECT_GT(blocks, 1);
  EXPECT_LT(f.read * tiles.width * 4 / blocks, 2 * part.gathered_cache());
  // A part that nobody computes beside has the whole cache, and is planned like a whole GPU.
  DeviceTraits alone = part;
  alone.part.busy = alone.part.own;
  EXPECT_EQ(alone.gathered_cache(), 50 << 20);
  EXPECT_EQ(chosen<SpmmTiles>(spmm_tile_variants(), f, alone), SpmmTiles::in_place);
  EXPECT_EQ(source_blocks(chosen<int>(spmm_source_variants(), {f, tiles}, alone)), 1);
}

TEST(Variants, OfSourcesDeclineRowsThatCannotBeCutWell) {
  const auto blocks = [](const SpmmFacts& f, const DeviceTraits& device) {
    return source_blocks(chosen<int>(spmm_source_variants(), {f, column_tiles(f, SpmmTiles::none)}, device));
  };
  const DeviceTraits part = quarter_of_gpu();
  SpmmFacts f = dense_sum();
  EXPECT_GT(blocks(f, part), 1);
  f.ordered = false;
  EXPECT_EQ(blocks(f, part), 1);
  f = dense_sum();
  f.mean_degree = 31;
  EXPECT_EQ(blocks(f, part), 1);
  f = dense_sum();
  f.read = 1000;
  EXPECT_EQ(blocks(f, part), 1);
  f = dense_sum();
  DeviceTraits small = part;
  small.memory_bytes = 1 << 20;
  EXPECT_EQ(blocks(f, small), 1);
}

TEST(Variants, OfNarrowTilesAreTakenIfAPlanNamesThem) {
  SpmmFacts f = dense_sum();
  for (const DeviceTraits& d : {quarter_of_gpu(), large_gpu(GemmType::tf32)}) {
    const std::vector<Judged> all = judge(spmm_tile_variants(), f, d);
    const auto named = [&](const char* name) { return static_cast<SpmmTiles>(variant_to_run(all, name)); };
    EXPECT_EQ(named("tiles of 32 columns"), SpmmTiles::line);
    EXPECT_EQ(named("tiles of 16 columns"), SpmmTiles::half_line);
    EXPECT_EQ(named("whole rows"), SpmmTiles::none);
  }
  EXPECT_EQ(column_tiles(f, SpmmTiles::line).count, 8);
  EXPECT_EQ(column_tiles(f, SpmmTiles::half_line).count, 16);
  f.width = 48;  // 48 columns are one tile of 48, or three of 16
  const std::vector<Judged> all = judge(spmm_tile_variants(), f, quarter_of_gpu());
  EXPECT_FALSE(all[static_cast<size_t>(SpmmTiles::line)].accepts());
}

TEST(Variants, OfRowsOfPairSumsCopyLongRowsThatAreReadOften) {
  const DeviceTraits d = large_gpu(GemmType::tf32);
  int copied = 0;
  for (const int64_t edges : {0, 8191, 8192, 1000000}) {
    for (const int64_t others : {1, 2047, 2048, 2049, 250000, 250001}) {
      for (int64_t width = 1; width < 100; ++width) {
        // Rows of fewer than 8 vectors are read in shorter vectors.
        const bool as_they_lie = width % 4 == 0 || width <= 28 || edges < 8192 || edges < 4 * others;
        const PairSumFacts facts = {edges, others, width};
        const auto way = chosen<PairSumRows>(pair_row_variants(), facts, d);
        ASSERT_EQ(way, as_they_lie ? PairSumRows::in_place : PairSumRows::copied) << edges << " " << others;
        ASSERT_EQ(pair_row_length(facts, way), as_they_lie ? width : (width + 3) / 4 * 4);
        copied += as_they_lie ? 0 : 1;
      }
    }
  }
  EXPECT_GT(copied, 50);
}

TEST(Variants, OfLstmsAreThoseOfTheOldRule) {
  const DeviceTraits d = large_gpu(GemmType::tf32);
  for (int64_t hidden = 1; hidden < 80; ++hidden) {
    EXPECT_EQ(chosen<LstmWay>(lstm_variants(), LstmFacts{hidden}, d), hidden > 32 ? LstmWay::tiles : LstmWay::groups);
  }
}

TEST(Variants, OfProductsAreThoseOfTheOldRule) {
  int own = 0;
  for (const DeviceTraits& d : devices()) {
    const bool has = d.products == GemmType::tf32 && d.arch >= 90;
    const int64_t least = !has ? 0 : d.joined_rows > 0 ? d.joined_rows : int64_t{d.multiprocessors} * 128;
    EXPECT_EQ(joined_products(d), (JoinedProducts{least, cuda::kWidestRowProduct, least > 0}));
    for (const int64_t rows : {1, 1000, 16896, 200000}) {
      for (const int64_t columns : {2, 3, 40, 64, 65, 66, 128, 256, 258}) {
        for (const bool all_of_tail : {false, true}) {
          for (const size_t inputs : {1U, 2U}) {
            Tail tail(columns);
            tail.store(tail.root(), 9);
            ProductFacts f;
            f.rows = rows;
            f.columns = columns;
            f.depths.assign(inputs, 96);
            f.product.inputs.resize(inputs);
            f.product.tail = tail.program();
            f.library_does_tail = all_of_tail;
            cuda::RowProduct what;
            what.k = f.depths;
            what.n = columns;
            what.tail = &f.product.tail;
            what.shared_bytes = d.shared_bytes;
            const bool of_library = inputs == 1 && ((columns > 64 && all_of_tail) || rows < least);
            const bool expected = least > 0 && !of_library && cuda::fits(what);
            ASSERT_EQ(chosen<ProductWay>(product_variants(), f, d) == ProductWay::own_kernel, expected) << columns;
            own += expected ? 1 : 0;
            if (!expected) continue;
            const auto block = chosen<ProductBlock>(product_block_variants(), f, d);
            EXPECT_EQ(rows_of(block), cuda::rows_of_block(what)) << "without timing";
          }
        }
      }
    }
  }
  EXPECT_GT(own, 50);
}

TEST(Variants, OfRowsAtATimeAreThoseOfTheOldRule) {
  for (const DeviceTraits& d : devices()) {
    for (const int64_t rows : {1, 15, 1000, 100000, 50000000}) {
      for (const int64_t bytes : {0, 2, 160, 1024, 2408}) {
        int64_t expected = rows;
        if (bytes > 0) {
          const int64_t some = std::clamp<int64_t>(bytes * rows / 4, int64_t{32} << 20, int64_t{96} << 20);
          const int64_t most = (d.cache_bytes > 0 ? d.cache_bytes : some) / bytes;
          expected = std::min(rows, std::max<int64_t>(16, most / 16 * 16));
        }
        ProductFacts f;
        f.rows = rows;
        f.row_bytes = bytes;
        const std::vector<Judged> all = judge(product_run_variants(), f, d);
        const Judged& taken = all[static_cast<size_t>(cheapest(all))];
        EXPECT_EQ(taken.limit > 0 ? taken.limit : rows, expected);
      }
    }
  }
}

// ---- lists

std::vector<Judged> three(double a, double b, double c) { return {{"a", "", a}, {"b", "", b}, {"c", "", c}}; }

TEST(VariantLists, TakeTheCheapestAndOfEqualOnesThePlainest) {
  EXPECT_EQ(cheapest(three(1, 2, 3)), 0);
  EXPECT_EQ(cheapest(three(2, 1, 3)), 1);
  EXPECT_EQ(cheapest(three(1, 1, 3)), 1);
  EXPECT_EQ(cheapest(three(2, 2, 2)), 2);
  EXPECT_EQ(cheapest(three(-1, 1, 1)), 0) << "a first variant without a cost";
  std::vector<Judged> all = three(1, 2, 3);
  all[0].declined = "no";
  EXPECT_EQ(cheapest(all), 1);
}

TEST(VariantLists, RunWhatIsPlannedOrTheNextThatDoesNotDecline) {
  std::vector<Judged> all = three(1, 2, 3);
  EXPECT_EQ(variant_to_run(all, "c"), 2);
  EXPECT_EQ(variant_to_run(all, "b"), 1);
  all[1].declined = "too few vertices";
  EXPECT_EQ(variant_to_run(all, "b"), 2);
  EXPECT_EQ(variant_to_run(all, ""), 0);
}

TEST(VariantLists, SayWhyTheOthersWereNotTaken) {
  std::vector<Judged> all = three(2e-3, 1e-3, 4e-3);
  all[0].declined = "products are not tf32";
  const VariantChoice record = record_of("typed sums", all, 1);
  EXPECT_EQ(record.variant, "b");
  EXPECT_EQ(record.why, "not a: products are not tf32; not c: it would take 4 ms instead of 1 ms");
  EXPECT_EQ(record_untimed("in flight", three(-1, -1, -1)).variant, "");
  EXPECT_EQ(record_timed("in flight", all, 2, {2e-3, 1e-3}).why, "timed: b 2 ms, c 1 ms");
}

// ---- plans

Plan plan_for(const PlannedModel& m, const DeviceTraits& device, const std::set<std::string>& disabled = {}) {
  PlanOptions how = m.plan.options;
  how.disabled_passes = disabled;
  return make_plan(m.dfg, m.blocks, how, {.validate = true, .device = &device});
}

const VariantChoice* find_variant(const Plan& plan, KernelKind kind, std::string_view decision) {
  for (const Kernel* k : kernels_of(plan, kind)) {
    for (const VariantChoice& v : k->variants) {
      if (v.decision == decision) return &v;
    }
  }
  return nullptr;
}

// Returns an RGCN whose typed products are sums over the pairs of destinations.
PlannedModel summed_by_pair() {
  const PlannedModel written = plan_model(usual("rgcn"));
  return plan_model(usual("rgcn"), choosing(written, "dst"));
}

TEST(VariantsOfPlans, AreNamedForADeviceAlone) {
  const PlannedModel m = summed_by_pair();
  for (const Kernel& k : m.plan.kernels) EXPECT_TRUE(k.variants.empty()) << "made without a device";
  const DeviceTraits host;
  for (const Kernel& k : plan_for(m, host).kernels) EXPECT_TRUE(k.variants.empty()) << "the host has no lists";
  const DeviceTraits gpu = large_gpu(GemmType::tf32);
  const Plan plan = plan_for(m, gpu);
  const VariantChoice* sums = find_variant(plan, KernelKind::typed_reduce, "typed sums");
  ASSERT_NE(sums, nullptr);
  EXPECT_NE(sums->why.find("that keep the whole GPU busy"), std::string::npos) << sums->why;
  EXPECT_NE(plan_text(plan, m.blocks).find("variant of typed sums: " + sums->variant), std::string::npos);
  const VariantChoice* product = find_variant(plan, KernelKind::matmul, "product");
  ASSERT_NE(product, nullptr);
  EXPECT_EQ(product->variant, "library");
  const Plan without = plan_for(m, gpu, {"choose_variants"});
  for (const Kernel& k : without.kernels) EXPECT_TRUE(k.variants.empty());
}

TEST(VariantsOfPlans, OfKernelsThatTheDeviceTimesAreNotKnownBefore) {
  const PlannedModel m = plan_model(usual("gcn"));
  DeviceTraits gpu = large_gpu(GemmType::tf32);
  const auto in_flight = [&] { return *find_variant(plan_for(m, gpu), KernelKind::spmm, "in flight"); };
  EXPECT_EQ(in_flight().variant, "more rows");
  EXPECT_EQ(in_flight().why, "not more warps: this run does not time variants");
  gpu.tune = true;
  EXPECT_EQ(in_flight().why, "not more warps: the kernel takes too little time to be timed");
  const RowShapeFacts facts = {1e9, 0};
  EXPECT_TRUE(needs_timing(judge(row_shape_variants(), facts, gpu)));
}

TEST(VariantsOfPlans, AreKeptByPlanFiles) {
  const PlannedModel m = summed_by_pair();
  const DeviceTraits gpu = large_gpu(GemmType::tf32);
  const Plan plan = plan_for(m, gpu);
  const Plan loaded = load_plan(plan_json(plan), "f", m.dfg, m.blocks, &gpu);
  ASSERT_EQ(loaded.kernels.size(), plan.kernels.size());
  for (size_t i = 0; i < plan.kernels.size(); ++i) EXPECT_EQ(loaded.kernels[i].variants, plan.kernels[i].variants);
  const Plan on_host = load_plan(plan_json(plan), "f", m.dfg, m.blocks);
  for (const Kernel& k : on_host.kernels) EXPECT_TRUE(k.variants.empty());
  const Plan without = plan_for(m, gpu, {"choose_variants"});
  for (const Kernel& k : load_plan(plan_json(without), "f", m.dfg, m.blocks, &gpu).kernels)
    EXPECT_TRUE(k.variants.empty()) << "the file says that the pass was left out";
}

// Sets the variant of the first typed sum in a plan file.
std::string with_variant(const Plan& plan, const std::string& variant) {
  nlohmann::json file = nlohmann::json::parse(plan_json(plan));
  for (auto& kernel : file["kernels"]) {
    for (auto& v : kernel["variants"]) {
      if (v["decision"] != "typed sums") continue;
      v["variant"] = variant;
      return file.dump();
    }
  }
  return "";
}

TEST(VariantsOfPlans, ThatAPlanFileNamesAreTakenUnlessTheyDecline) {
  const PlannedModel m = summed_by_pair();
  const DeviceTraits gpu = large_gpu(GemmType::tf32);
  const Plan plan = plan_for(m, gpu);
  const std::string chosen = find_variant(plan, KernelKind::typed_reduce, "typed sums")->variant;
  const std::string other = chosen == "by type" ? "side by side" : "by type";
  const auto load = [&](const std::string& variant) {
    return *find_variant(load_plan(with_variant(plan, variant), "f", m.dfg, m.blocks, &gpu), KernelKind::typed_reduce,
                         "typed sums");
  };
  EXPECT_EQ(load(other).variant, other);
  EXPECT_EQ(load(other).why, "the plan file names it");
  EXPECT_EQ(load("by cell").variant, "side by side") << "20 vertices do not fill the device: the next of the list";
  EXPECT_THROW(load("by magic"), UserError);
}

}  // namespace
}  // namespace nacre::test
