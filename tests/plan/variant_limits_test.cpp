// The limits of variants are the numbers that the binders of the GPU back end computed before there
// were lists: their rules are written down here once more and compared with the lists over a grid
// of shapes. And a plan file keeps limits, and may name others.
#include <gtest/gtest.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/plan/variants/chunks.h"
#include "nacre/plan/variants/lstm.h"
#include "nacre/plan/variants/rows.h"
#include "nacre/plan/variants/sums.h"
#include "nacre/plan/variants/tasks.h"
#include "nacre/plan/variants/typed.h"
#include "plan/devices.h"
#include "plan/plans.h"

namespace nacre::test {
namespace {

template <class Facts>
Judged taken(const VariantList<Facts>& list, const Facts& facts, const DeviceTraits& device) {
  const std::vector<Judged> all = judge(list, facts, device);
  return all[static_cast<size_t>(variant_to_run(all, ""))];
}

// Returns the rows that a kernel takes at a time.
int64_t chunk(const ChunkFacts& facts) {
  const Judged run = taken(chunk_variants(), facts, large_gpu(GemmType::tf32));
  return std::string(run.name) == "all" ? facts.rows : run.limit;
}

TEST(VariantLimits, OfLongRowsAreThoseOfTheOldRules) {
  for (const int multiprocessors : {16, 132}) {
    DeviceTraits device = large_gpu(GemmType::tf32);
    device.multiprocessors = multiprocessors;
    for (const int64_t entries : {int64_t{0}, int64_t{1000}, int64_t{5000000}, int64_t{9000000000}}) {
      for (const int64_t shortest : {64, 128, 256}) {
        const RowFacts f = {entries, 10, shortest, true};
        const Judged sums = taken(long_sum_variants(), f, device);
        EXPECT_STREQ(sums.name, "in pieces");
        EXPECT_EQ(sums.limit, std::clamp<int64_t>(entries / (int64_t{128} * multiprocessors), shortest, 8192));
      }
    }
    for (int64_t mean = 0; mean < 600; ++mean) {
      const RowFacts f = {1000, mean, 0, true};
      const auto rounded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(mean, 8, 32))));
      EXPECT_EQ(taken(long_softmax_variants(), f, device).limit, 16 * rounded);
      // As many threads share a row as before.
      const Judged threads = taken(row_thread_variants(), f, device);
      const int64_t made_for = threads.limit > 0 ? threads.limit : 1;
      EXPECT_EQ(std::string(threads.name) == "for one edge", mean <= 1);
      for (int64_t power = 1; power <= 128; power *= 2) EXPECT_EQ(power < made_for, power < mean) << mean;
    }
  }
}

TEST(VariantLimits, OfPairsAndSourcesAreThoseOfTheOldRules) {
  const DeviceTraits device = large_gpu(GemmType::tf32);
  for (int64_t edges = 0; edges < 12000000; edges += 4999) {
    PairSumFacts f;
    f.edges = edges;
    const int64_t piece = std::clamp<int64_t>(edges / 16384, 64, 512);
    const Judged pairs = taken(long_pair_variants(), f, device);
    EXPECT_EQ(pairs.limit, piece * 3 / 2);
    EXPECT_EQ(piece_of_pair(pairs.limit), piece);
  }
  LstmFacts f{32, 1000};
  EXPECT_STREQ(taken(long_source_variants(), f, device).name, "whole");
  f.by_source = true;
  EXPECT_EQ(taken(long_source_variants(), f, device).limit, 192);
  EXPECT_EQ(piece_of_source(192), 128);
}

// The rows of a typed kernel that are taken at a time, as the binders had it. `words` rounds to
// whole words of four floats, or eight of bf16.
TEST(VariantLimits, OfRowsAtATimeAreThoseOfTheOldRules) {
  const auto least = [](int64_t rows, int64_t most) { return std::min(rows, most); };
  for (const GemmType type : {GemmType::tf32, GemmType::bf16}) {
    DeviceTraits d = large_gpu(type);
    d.memory_bytes = int64_t{4} << 30;
    const int64_t bytes = type == GemmType::bf16 ? 2 : 4;
    const auto words = [](int64_t width, int64_t size) { return (width * size + 15) / 16 * 16 / size; };
    const int64_t rows_budget = d.memory_bytes / 8, copies_budget = std::min(rows_budget, int64_t{2} << 30);
    for (const int64_t vertices : {10, 30000, 3000000}) {
      for (const int64_t width : {5, 64, 602}) {
        const PairCounts pairs = {vertices, vertices * 3, 4};
        TypedReduceFacts sums;
        sums.pairs = pairs;
        sums.in = width;
        sums.out = 40;
        EXPECT_EQ(chunk(typed_chunks(sums, d, TypedReduceWay::side_by_side)),
                  least(vertices, std::max<int64_t>(1, rows_budget / (words(4 * width, bytes) * bytes))));
        EXPECT_EQ(chunk(typed_chunks(sums, d, TypedReduceWay::by_type)),
                  least(pairs.pairs, std::max<int64_t>(128, rows_budget / (words(width, bytes) * bytes + 160))));
        EXPECT_EQ(chunk(typed_chunks(sums, d, PairProductWay::by_type)),
                  least(pairs.pairs, std::max<int64_t>(128, rows_budget / 160)));
        const TypedGradFacts grad = {pairs, width, 40};
        EXPECT_EQ(chunk(typed_chunks(grad, d, TypedGradWay::side_by_side)),
                  least(vertices, std::max<int64_t>(1, rows_budget / (words(4 * width, bytes) * bytes))));
        EXPECT_EQ(chunk(typed_chunks(grad, d, TypedGradWay::by_type)),
                  least(pairs.pairs,
                        std::max<int64_t>(128, rows_budget / ((words(width, bytes) + words(40, bytes)) * bytes))));
        for (int flags = 0; flags < 16; ++flags) {
          const bool of_pairs = (flags & 1) != 0, every = (flags & 8) != 0, ordered = !of_pairs;
          const bool x_by_vertex = (flags & 2) != 0, g_by_vertex = (flags & 4) != 0;
          const auto copy = [&](int64_t columns, bool bf16, bool by_vertex) -> int64_t {
            if (!bf16 && !(by_vertex ? !every : ordered)) return 0;
            return bf16 ? words(columns, 2) * 2 : words(columns, 4) * 4;
          };
          const auto of_row = [&](int64_t rows, int64_t row) {
            return row == 0 ? rows : least(rows, std::max<int64_t>(128, copies_budget / row));
          };
          const TypedRowsFacts rows = {pairs, pairs.pairs, width, 40, of_pairs, x_by_vertex, every};
          const bool bf16 = type == GemmType::bf16 && (x_by_vertex || ordered);
          EXPECT_EQ(chunk(typed_chunks(rows, d, TypedRowsWay::by_type)),
                    of_row(rows.rows, copy(width, bf16, x_by_vertex) + (ordered ? 160 : 0)));
          EXPECT_EQ(chunk(typed_chunks(rows, d, TypedRowsWay::side_by_side)),
                    least(vertices, std::max<int64_t>(1, copies_budget / (160 * 4))));
          const TypedRowsGradFacts g = {pairs, pairs.pairs, width, 40, of_pairs, x_by_vertex, g_by_vertex, every};
          const bool both = type == GemmType::bf16 && (x_by_vertex || ordered) && (g_by_vertex || ordered);
          EXPECT_EQ(chunk(typed_chunks(g, d, TypedRowsGradWay::by_type)),
                    of_row(g.rows, copy(width, both, x_by_vertex) + copy(40, both, g_by_vertex)));
          EXPECT_EQ(
              chunk(typed_chunks(g, d, TypedRowsGradWay::side_by_side)),
              least(vertices, std::max<int64_t>(1, copies_budget / (words(4 * (x_by_vertex ? 40 : width), 4) * 4))));
        }
        const LstmFacts lstm{width, vertices};
        EXPECT_EQ(chunk(lstm_chunks(lstm, d)), least(vertices, std::max<int64_t>(1024, rows_budget / (6 * width * 4))));
      }
    }
  }
}

TEST(VariantLimits, OfGTasksAreThoseOfTheOldRules) {
  const DeviceTraits device = large_gpu(GemmType::tf32);
  const int64_t free = int64_t{1} << 30;
  for (const int64_t edges : {int64_t{0}, int64_t{1000}, (int64_t{1} << 21) - 1, int64_t{1} << 21, int64_t{14900000},
                              int64_t{14913080}, int64_t{14913081}, int64_t{20000000}}) {
    const TaskFacts f = {edges, 2, 77, free};
    const bool on_device = edges >= (1 << 21) && edges * 72 + 2 * 8 < free;
    EXPECT_EQ(std::string(taken(task_cut_variants(), f, device).name),
              on_device ? "cut on the GPU" : "cut on the host");
    EXPECT_STREQ(taken(task_cut_variants(), f, device.of_batches()).name, "cut on the host");
    const Judged window = taken(task_window_variants(), f, device);
    EXPECT_EQ(window.limit, edges == 0 ? 0 : 4 * 77 + 4096);
  }
}

TEST(VariantLimits, OfAlgorithmsAreThoseOfTheOldRules) {
  DeviceTraits device = large_gpu(GemmType::tf32);
  for (const bool tune : {false, true}) {
    device.tune = tune;
    const auto way = [&](KernelKind kind) { return taken(algorithm_variants(), algorithm_facts(kind), device); };
    for (const KernelKind kind : {KernelKind::matmul, KernelKind::weight_grad}) {
      EXPECT_STREQ(way(kind).name, tune ? "timed" : "the library's first");
      EXPECT_EQ(way(kind).limit, tune ? 8 : 0);
    }
    for (const KernelKind kind : {KernelKind::typed_reduce, KernelKind::typed_weight_grad, KernelKind::typed_rows,
                                  KernelKind::typed_rows_grad, KernelKind::lstm_grad}) {
      EXPECT_STREQ(way(kind).name, tune ? "timed for large products" : "the library's first");
      EXPECT_EQ(way(kind).limit, tune ? 8 : 0);
    }
    EXPECT_STREQ(way(KernelKind::gtask_grad).name, "the library's first");
    EXPECT_STREQ(taken(algorithm_variants(), algorithm_facts(KernelKind::matmul), device.of_batches()).name,
                 "the library's first");
  }
}

// ---- plan files

// Returns the record of a decision about the first kernel that has one; null if none has.
const VariantChoice* record_in(const Plan& plan, std::string_view decision) {
  for (const Kernel& k : plan.kernels) {
    for (const VariantChoice& v : k.variants) {
      if (v.decision == decision) return &v;
    }
  }
  return nullptr;
}

class VariantLimitsOfPlans : public testing::Test {
 protected:
  // Returns the plan after `change` has changed the first record of the decision in its file.
  template <class Change>
  Plan changed(const std::string& decision, const Change& change) {
    nlohmann::json file = nlohmann::json::parse(plan_json(plan_));
    bool found = false;
    for (auto& kernel : file["kernels"]) {
      for (auto& v : kernel["variants"]) {
        if (v["decision"] != decision || found) continue;
        change(v);
        found = true;
      }
    }
    EXPECT_TRUE(found) << decision;
    return load_plan(file.dump(), "f", model_.dfg, model_.blocks, &gpu_);
  }
  Plan with_limit(const std::string& decision, const nlohmann::json& limit) {
    return changed(decision, [&](nlohmann::json& v) { v["limit"] = limit; });
  }
  std::string refusal(const std::string& decision, const nlohmann::json& limit) {
    try {
      with_limit(decision, limit);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  DeviceTraits gpu_ = large_gpu(GemmType::tf32);
  PlannedModel model_ = plan_model(usual("gat"));
  Plan plan_ = make_plan(model_.dfg, model_.blocks, {}, {.validate = true, .device = &gpu_});
};

TEST_F(VariantLimitsOfPlans, AreKeptAndShown) {
  const VariantChoice* rows = record_in(plan_, "long rows of softmax");
  ASSERT_NE(rows, nullptr);
  EXPECT_GE(rows->limit, 128);
  const std::string line =
      "variant of long rows of softmax: a block of threads each, above " + std::to_string(rows->limit) + " edges\n";
  EXPECT_NE(plan_text(plan_, model_.blocks).find(line), std::string::npos) << plan_text(plan_, model_.blocks);
  const Plan loaded = load_plan(plan_json(plan_), "f", model_.dfg, model_.blocks, &gpu_);
  ASSERT_EQ(loaded.kernels.size(), plan_.kernels.size());
  for (size_t i = 0; i < loaded.kernels.size(); ++i) EXPECT_EQ(loaded.kernels[i].variants, plan_.kernels[i].variants);
}

TEST_F(VariantLimitsOfPlans, AreTakenFromTheFile) {
  const Plan loaded = with_limit("long rows of softmax", 77);
  EXPECT_EQ(record_in(loaded, "long rows of softmax")->limit, 77);
  EXPECT_EQ(record_in(loaded, "long rows of softmax")->why, "the plan file names it");
  // A file that names the variant alone gets the limit of the list.
  const Plan plain = changed("long rows of softmax", [](nlohmann::json& v) { v.erase("limit"); });
  EXPECT_EQ(*record_in(plain, "long rows of softmax"), *record_in(plan_, "long rows of softmax"));
}

TEST_F(VariantLimitsOfPlans, ThatMakeNoSenseAreRefused) {
  EXPECT_NE(refusal("long rows of softmax", 31)
                .find("names a limit of 31 for 'a block of threads each' of long rows of "
                      "softmax"),
            std::string::npos);
  EXPECT_NE(refusal("long rows of softmax", 0).find("name a number from 32 on"), std::string::npos);
  EXPECT_NE(refusal("long rows of softmax", -5), "");
  EXPECT_NE(refusal("long rows of softmax", int64_t{1} << 50), "");
  EXPECT_NE(refusal("threads of a row", 257).find("name a number from 1 to 256"), std::string::npos);
  EXPECT_NE(refusal("rows at a time", 5).find("names a limit of 5 for 'all' of rows at a time, which has none"),
            std::string::npos);
  EXPECT_NE(refusal("long rows of softmax", "many").find("has damaged kernels"), std::string::npos);
}

}  // namespace
}  // namespace nacre::test
