// Tests of predictions for each kind of kernel, their correction, and their text.
#include "nacre/cost/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cost/synthetic.h"
#include "nacre/base/error.h"
#include "nacre/cost/nominal.h"
#include "support/log_capture.h"

namespace nacre {
namespace {

using test::kMachine;
using test::random_samples;
using test::random_work;
using test::Rng;
using test::scaled;
using test::seconds_of;

std::vector<Timing> joined(std::vector<Timing> a, const std::vector<Timing>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Features, HaveDistinctNames) {
  std::set<std::string_view> names;
  for (int f = 0; f < kFeatures; ++f) names.insert(feature_name(static_cast<Feature>(f)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kFeatures));
  EXPECT_EQ(names.count(""), 0U);
  EXPECT_EQ(feature_name(Feature::constant), "constant");
  EXPECT_EQ(feature_name(Feature::far_bytes), "far_bytes");
  EXPECT_EQ(feature_name(Feature::steps), "steps");
  EXPECT_THROW(feature_name(Feature::count_), InternalError);
}

TEST(CostModel, EveryKindHasItsOwnCoefficients) {
  Rng rng(11);
  const Coefficients other = {1e-4, 4e-10, 0, 5e-11, 1e-9, 0, 0, 5e-8, 0, 1e-5};
  const CostModel model = CostModel::fitted(
      joined(random_samples(rng, "spmm", 1000, kMachine, 0.03), random_samples(rng, "lstm", 1000, other, 0.03)));
  EXPECT_FALSE(model.empty());
  for (int i = 0; i < 100; ++i) {
    const Work spmm = random_work(rng, "spmm");
    const Work lstm = random_work(rng, "lstm");
    EXPECT_NEAR(model.predict(spmm) / seconds_of(kMachine, spmm), 1, 0.05);
    EXPECT_NEAR(model.predict(lstm) / seconds_of(other, lstm), 1, 0.05);
  }
}

TEST(CostModel, UnseenKindsUseThePool) {
  Rng rng(12);
  const CostModel model = CostModel::fitted(
      joined(random_samples(rng, "a", 500, kMachine, 0.03), random_samples(rng, "b", 500, kMachine, 0.03)));
  for (int i = 0; i < 100; ++i) {
    for (const char* kind : {"never seen", ""}) {
      const Work work = random_work(rng, kind);
      EXPECT_NEAR(model.predict(work) / seconds_of(kMachine, work), 1, 0.05);
    }
  }
}

TEST(CostModel, FewSamplesScaleThePool) {
  Rng rng(13);
  const auto known = random_samples(rng, "known", 400, kMachine, 0);
  // The rare kind is three times as slow. 19 samples are fewer than twice the ten features.
  for (const int few : {1, 2, 19}) {
    const auto rare = random_samples(rng, "rare", few, scaled(kMachine, 3), 0);
    const CostModel model = CostModel::fitted(joined(known, rare));
    const Work here = random_work(rng, "rare");
    Work pooled = here;
    pooled.kind = "";
    const double factor = model.predict(here) / model.predict(pooled);
    EXPECT_GT(factor, 2) << few;
    for (int i = 0; i < 50; ++i) {
      Work work = random_work(rng, "rare");
      const double seconds = model.predict(work);
      work.kind = "";
      EXPECT_NEAR(seconds / model.predict(work), factor, 1e-9 * factor) << "one factor for all work";
    }
  }
  const auto many = random_samples(rng, "rare", 20, scaled(kMachine, 3), 0);
  const CostModel model = CostModel::fitted(joined(known, many));
  for (int i = 0; i < 50; ++i) {
    const Work work = random_work(rng, "rare");
    EXPECT_NEAR(model.predict(work) / (3 * seconds_of(kMachine, work)), 1, 1e-4) << "its own fit";
  }
}

TEST(CostModel, OneOutlierAmongFewDoesNotCount) {
  Rng rng(14);
  auto rare = random_samples(rng, "rare", 5, kMachine, 0);
  rare[2].seconds *= 1000;
  const CostModel model = CostModel::fitted(joined(random_samples(rng, "known", 2000, kMachine, 0), rare));
  const Work work = random_work(rng, "rare");
  EXPECT_NEAR(model.predict(work) / seconds_of(kMachine, work), 1, 0.05);
}

TEST(CostModel, AKindThePoolKnowsNothingOfIsFittedAlone) {
  // In a fit of all kinds, rows would explain the long kernels and be worth nothing beside edges.
  std::vector<Timing> samples;
  for (int i = 1; i <= 40; ++i) {
    Timing s{.work = {.kind = "long"}, .seconds = 1e-6 * i};
    s.work[Feature::edges] = i;
    s.work[Feature::rows] = 1e9 * (41 - i);
    samples.push_back(s);
  }
  Timing alone{.work = {.kind = "alone"}, .seconds = 2.0};
  alone.work[Feature::rows] = 4;
  samples.push_back(alone);
  const CostModel model = CostModel::fitted(samples);
  EXPECT_NEAR(model.predict(alone.work), 2.0, 1e-9);
}

TEST(CostModel, NothingToLearnFromIsEmpty) {
  EXPECT_TRUE(CostModel().empty());
  EXPECT_TRUE(CostModel::fitted({}).empty());
  test::LogCapture log;
  CostModel model = CostModel::fitted({{{.kind = "k"}, 0.0}, {{.kind = "k"}, std::nan("")}, {{.kind = "k"}, -3.0}});
  EXPECT_TRUE(model.empty());
  EXPECT_NE(log.take().find("ignores 3 of 3 timings"), std::string::npos);
  EXPECT_THROW(model.predict({.kind = "k"}), InternalError);
  Rng rng(15);
  model.correct(random_samples(rng, "k", 3, kMachine, 0));
  EXPECT_TRUE(model.empty());
}

TEST(CostModel, CorrectScalesEachKindByItsMedian) {
  Rng rng(16);
  CostModel model =
      CostModel::fitted(joined(random_samples(rng, "a", 100, kMachine, 0), random_samples(rng, "b", 100, kMachine, 0)));
  auto later = random_samples(rng, "a", 5, scaled(kMachine, 2), 0);
  later[0].seconds *= 50;  // the machine was busy
  later[3].seconds = std::nan("");
  later[4].seconds = -1;
  test::LogCapture log;
  model.correct(joined(later, random_samples(rng, "new", 3, scaled(kMachine, 0.5), 0)));
  EXPECT_NE(log.take().find("ignores 2 of 8 timings"), std::string::npos);
  for (int i = 0; i < 20; ++i) {
    for (const auto& [kind, factor] :
         std::map<std::string, double>{{"a", 2}, {"b", 1}, {"new", 0.5}, {"", 1}, {"unseen", 1}}) {
      const Work work = random_work(rng, kind);
      EXPECT_NEAR(model.predict(work) / seconds_of(kMachine, work), factor, 1e-4 * factor) << kind;
    }
  }
  const std::string before = model.json();
  model.correct({});
  EXPECT_EQ(model.json(), before);
  model.correct({{{.kind = "a"}, 1.0}});
  EXPECT_EQ(model.json(), before) << "work of nothing cannot be scaled";
}

TEST(CostModel, MedianError) {
  Rng rng(17);
  const CostModel model = CostModel::fitted(random_samples(rng, "a", 100, kMachine, 0));
  auto samples = random_samples(rng, "a", 5, kMachine, 0);
  EXPECT_NEAR(model.median_error(samples), 0, 1e-4);
  // Errors of 50, 20, 10, 300 and 30 %.
  const double factors[] = {1 / 1.5, 1 / 0.8, 1 / 1.1, 1 / 4.0, 1 / 0.7};
  for (size_t i = 0; i < 5; ++i) samples[i].seconds *= factors[i];
  EXPECT_NEAR(model.median_error(samples), 0.3, 1e-3);
  samples.pop_back();
  EXPECT_NEAR(model.median_error(samples), 0.35, 1e-3);
  EXPECT_TRUE(std::isnan(model.median_error({})));
}

TEST(CostModelText, ComesBackBitForBit) {
  Rng rng(18);
  std::vector<Timing> samples;
  for (const char* kind : {"spmm", "matmul", "a \"quoted\" kind/näme", "all", "kinds"}) {
    const auto more = random_samples(rng, kind, 10 + static_cast<int>(rng.below(40)), kMachine, 0.2);
    samples = joined(std::move(samples), more);
  }
  const CostModel model = CostModel::fitted(samples);
  const CostModel again = CostModel::parse(model.json(), "text");
  EXPECT_EQ(again.json(), model.json());
  for (const Timing& s : samples) EXPECT_EQ(again.predict(s.work), model.predict(s.work));
  const Work unseen = random_work(rng, "unseen");
  EXPECT_EQ(again.predict(unseen), model.predict(unseen));
  EXPECT_TRUE(CostModel::parse(CostModel().json(), "text").empty());
}

TEST(CostModelText, MalformedTextSaysWhere) {
  Rng rng(19);
  const std::string good = CostModel::fitted(random_samples(rng, "spmm", 40, kMachine, 0.1)).json();
  const auto message = [](const std::string& text) -> std::string {
    try {
      CostModel::parse(text, "cost.json");
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.rfind(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  ASSERT_EQ(message(good), "accepted");
  EXPECT_EQ(message("").rfind("cost.json: is not valid JSON: parse error at line 1, column 1", 0), 0U) << message("");
  EXPECT_NE(message("{\n\"kinds\": x}").find("line 2, column"), std::string::npos);
  EXPECT_EQ(message("[]"), "cost.json: is not a JSON object");
  EXPECT_EQ(message("{}"), "cost.json: has no \"kinds\"");
  EXPECT_EQ(message("{\"kinds\": 3}"), "cost.json: \"kinds\" is not an object");
  EXPECT_EQ(message("{\"kinds\": {\"spmm\": []}}"), "cost.json: kinds: spmm: is not an object of coefficients");
  EXPECT_EQ(message("{\"kinds\": {\"spmm\": {}}}"), "cost.json: kinds: spmm: has no \"constant\"");
  EXPECT_EQ(message(changed("\"all\"", "\"none\"")),
            "cost.json: has no coefficients \"all\" for kinds that were never timed");
  EXPECT_EQ(message(changed("\"spmm\"", "\"\"")), "cost.json: holds a kind without a name");
  EXPECT_EQ(message(changed("\"edges\":", "\"wedges\":")), "cost.json: kinds: spmm: has no \"edges\"");
  EXPECT_EQ(message(changed("\"edges\":", "\"wedges\": 1, \"edges\":")),
            "cost.json: kinds: spmm: holds a feature this program does not know");
  for (const char* bad : {"null", "-1e-9", "\"1\"", "[1]", "true"}) {
    EXPECT_EQ(message(changed("\"edges\":", std::string("\"edges\": ") + bad + ", \"was\":")),
              "cost.json: kinds: spmm: \"edges\" is not a number of at least 0");
  }
  EXPECT_EQ(message(changed("\"edges\":", "\"edges\": 1e999, \"was\":")).rfind("cost.json: is not valid JSON", 0), 0U);
  for (size_t size = 0; size < good.size(); ++size) ASSERT_NE(message(good.substr(0, size)), "accepted") << size;
}

// Returns the seconds that a GPU, or a part of it, takes for one unit of a kind of work.
double seconds_for(const NominalProfile& profile, Feature feature) {
  Work work;
  work[feature] = 1e12;
  return profile.model.predict(work);
}

TEST(NominalProfile, PartsOfAGpuAreAsMuchSlowerAsTheyAreSmaller) {
  const NominalProfile& whole = nominal_gpu();
  const NominalProfile quarter = nominal_gpu({.own = 0.25, .busy = 1});
  for (const Feature f : {Feature::flops, Feature::stream_bytes, Feature::far_bytes, Feature::edges})
    EXPECT_NEAR(seconds_for(quarter, f), 4 * seconds_for(whole, f), 1e-9 * seconds_for(whole, f)) << feature_name(f);
  EXPECT_EQ(quarter.cache_bytes, whole.cache_bytes / 4);
  EXPECT_EQ(seconds_for(nominal_gpu({}), Feature::far_bytes), seconds_for(whole, Feature::far_bytes));
  // While the rest of the GPU is idle, a quarter of it has more than a quarter of the memory's rate
  // and the whole cache, but only a quarter of the arithmetic.
  const NominalProfile alone = nominal_gpu({.own = 0.25, .busy = 0.25});
  EXPECT_LT(seconds_for(alone, Feature::far_bytes), 2 * seconds_for(whole, Feature::far_bytes));
  EXPECT_GT(seconds_for(alone, Feature::far_bytes), 1.5 * seconds_for(whole, Feature::far_bytes));
  EXPECT_EQ(seconds_for(alone, Feature::flops), seconds_for(quarter, Feature::flops));
  EXPECT_EQ(alone.cache_bytes, whole.cache_bytes);
}

}  // namespace
}  // namespace nacre
