// Tests the choice of the rows that travel between ranks: which sites there are, and that the
// search takes what costs least.
#include "nacre/plan/placement.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "plan/plans.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

// Returns the DFG of a training step, as ranks get it.
Dfg step_of(const std::string& model, int layers = 2) {
  ModelOptions options = usual(model, layers);
  options.sampling = Sampling::blocks;
  Dfg dfg = build_model(options);
  differentiate(dfg);
  return dfg;
}

constexpr RankSite kSecond{1, false};

int64_t columns_at(const Dfg& dfg, const RankPlacement& placement, const RankSite& site) {
  const std::map<RankSite, int64_t> columns = travelling_columns(distribute(dfg, placement));
  const auto found = columns.find(site);
  return found == columns.end() ? 0 : found->second;
}

// As written, a GCN sums over neighbours and then multiplies. The sums of the features, 48 columns,
// become the 64 columns that the second layer reads. Its gradient needs the same 48 columns, if
// they are not there already.
TEST(RankSites, AreTheLayersThatReadRowsOfOthers) {
  const std::vector<SiteColumns> sites = rank_sites(step_of("gcn"));
  ASSERT_EQ(sites.size(), 2U) << "features are known to all ranks";
  EXPECT_EQ(rank_site_name(sites[0].site), "layer 1 forward");
  EXPECT_EQ(sites[0].columns,
            (std::map<HaloRows, int64_t>{{HaloRows::late, 64}, {HaloRows::narrow, 48}, {HaloRows::early, 48}}));
  EXPECT_EQ(rank_site_name(sites[1].site), "layer 1 backward");
  EXPECT_EQ(sites[1].columns,
            (std::map<HaloRows, int64_t>{{HaloRows::late, 48}, {HaloRows::narrow, 0}, {HaloRows::early, 0}}));
}

TEST(RankSites, HaveNames) {
  for (const RankSite& site : {RankSite{0, false}, RankSite{12, true}})
    EXPECT_EQ(parse_rank_site(rank_site_name(site)), site);
  for (const char* name : {"", "layer", "layer 0", "layer x forward", "layer 1 sideways", "layer 1 forward "})
    EXPECT_THROW(parse_rank_site(name), UserError) << name;
}

// A choice in one layer changes nothing in the others.
TEST(RankSites, AreChosenOneByOne) {
  const Dfg dfg = step_of("gat", 3);
  const auto columns = [&](const RankPlacement& placement) {
    std::map<RankSite, int64_t> at;
    for (const SiteColumns& site : rank_sites(dfg)) at[site.site] = 0;
    for (const auto& [site, count] : travelling_columns(distribute(dfg, placement))) at.at(site) = count;
    return at;
  };
  const std::map<RankSite, int64_t> late = columns({});
  for (const SiteColumns& changed : rank_sites(dfg)) {
    const std::map<RankSite, int64_t> now = columns({HaloRows::late, {{changed.site, HaloRows::early}}});
    EXPECT_EQ(now != late, changed.columns.at(HaloRows::early) != late.at(changed.site))
        << rank_site_name(changed.site);
    for (const auto& [site, count] : now) {
      if (site.layer == changed.site.layer) continue;
      EXPECT_EQ(count, late.at(site)) << rank_site_name(changed.site) << " changes " << rank_site_name(site);
    }
  }
}

TEST(RankPlacements, AreOptionsOfAPlan) {
  PlanOptions options;
  EXPECT_EQ(parse_options(options_json(options), "test"), options);
  options.halo_rows = {HaloRows::early, {}};
  EXPECT_EQ(parse_options(options_json(options), "test"), options);
  options.halo_rows.sites = {{{0, false}, HaloRows::late}, {{2, true}, HaloRows::narrow}};
  EXPECT_EQ(parse_options(options_json(options), "test"), options);
  EXPECT_EQ(parse_options(R"({"halo_rows": "narrow"})", "test").halo_rows, (RankPlacement{HaloRows::narrow, {}}));
  for (const char* bad : {R"({"halo_rows": "none"})", R"({"halo_rows": 3})", R"({"halo_rows": {"layer 9": "late"}})",
                          R"({"halo_rows": {"layer 9 forward": "up"}})"}) {
    EXPECT_THROW(parse_options(bad, "test"), UserError) << bad;
  }
}

// In this test, a step costs as much as what travels differs from what travels with a secret
// placement, so the search should find that placement.
TEST(PlacementSearch, IsNeverWorseThanOneChoiceForAllSites) {
  Rng rng(5);
  for (const char* model : {"gcn", "sage", "gat", "gin"}) {
    for (const int layers : {1, 2, 3, 5}) {
      SCOPED_TRACE(model + std::to_string(layers));
      const Dfg dfg = step_of(model, layers);
      RankPlacement wanted;
      const std::vector<SiteColumns> sites = rank_sites(dfg);
      for (const SiteColumns& site : sites) wanted.sites[site.site] = kAllHaloRows[rng.below(3)];
      size_t trials = 0;
      const PlacementTrial trial = [&](const RankPlacement& placement) {
        ++trials;
        PlacementCost cost;
        for (const SiteColumns& site : sites) {
          cost.seconds +=
              static_cast<double>(std::abs(columns_at(dfg, placement, site.site) - columns_at(dfg, wanted, site.site)));
        }
        return cost;
      };
      const PlacementChoice found = search_placement(dfg, trial);
      EXPECT_LE(trials, 27 + 8 * sites.size());
      ASSERT_EQ(found.fixed.size(), 3U);
      ASSERT_EQ(found.sites.size(), sites.size());
      for (const PricedRows& fixed : found.fixed) EXPECT_LE(found.cost.seconds, kLateMargin * fixed.cost.seconds);
      for (const PlacedSite& site : found.sites) {
        EXPECT_EQ(site.rows, found.placement.at(site.site));
        EXPECT_EQ(site.columns, columns_at(dfg, found.placement, site.site));
        for (const PricedRows& lost : site.lost) EXPECT_GE(kLateMargin * lost.cost.seconds, found.cost.seconds);
      }
      EXPECT_EQ(trial(found.placement).seconds, found.cost.seconds);
      // With up to three sites, the search tries all combinations, so it finds the placement.
      if (sites.size() <= 3) {
        EXPECT_EQ(found.cost.seconds, 0);
      }
    }
  }
}

TEST(PlacementSearch, MixesChoices) {
  const Dfg dfg = step_of("gat", 3);
  const RankPlacement wanted{HaloRows::late, {{kSecond, HaloRows::early}}};
  const PlacementChoice found = search_placement(dfg, [&](const RankPlacement& placement) {
    const bool same = distribute(dfg, placement) == distribute(dfg, wanted);
    return PlacementCost{same ? 1.0 : 2.0, 100, 0};
  });
  EXPECT_EQ(found.cost.seconds, 1);
  EXPECT_EQ(distribute(dfg, found.placement), distribute(dfg, wanted));
  for (const PricedRows& fixed : found.fixed) EXPECT_EQ(fixed.cost.seconds, 2) << halo_rows_name(fixed.rows);
  const std::vector<std::string> lines = placement_lines(found);
  EXPECT_NE(lines[0].find(placement_text(found.placement)), std::string::npos) << lines[0];
  const auto json = nlohmann::json::parse(placement_json(found));
  ASSERT_EQ(json["sites"].size(), found.sites.size());
  EXPECT_EQ(json["one_choice"]["late"]["predicted_ms"], 2000.0);
  for (const auto& site : json["sites"]) {
    if (site["site"] != rank_site_name(kSecond)) continue;
    EXPECT_EQ(site["rows"], "early");
    EXPECT_EQ(site["columns"], columns_at(dfg, wanted, kSecond));
    EXPECT_EQ(site["lost"]["late"]["predicted_ms"], 2000.0);
    EXPECT_EQ(site["lost"]["late"]["received_bytes"], 100);
  }
}

// Predicted times that differ by less than their error do not decide.
TEST(PlacementSearch, LateStaysUnlessAnotherChoiceIsClearlyFaster) {
  const Dfg dfg = step_of("gat", 3);
  const Dfg late = distribute(dfg, RankPlacement{HaloRows::late, {}});
  for (const double faster : {1.02, 1.04}) {
    const PlacementChoice found = search_placement(dfg, [&](const RankPlacement& placement) {
      return PlacementCost{distribute(dfg, placement) == late ? faster : 1.0, 100, 0};
    });
    EXPECT_EQ(distribute(dfg, found.placement) == late, faster < kLateMargin) << faster;
  }
}

TEST(PlacementSearch, MemoryIsALimit) {
  const Dfg dfg = step_of("gat");
  const int64_t early = columns_at(dfg, {HaloRows::early, {}}, kSecond);
  const PlacementChoice found = search_placement(dfg, [&](const RankPlacement& placement) {
    const bool fits = columns_at(dfg, placement, kSecond) == early;
    return PlacementCost{fits ? 2.0 : 1.0, 0, fits ? -10 : 10};
  });
  EXPECT_EQ(columns_at(dfg, found.placement, kSecond), early);
  EXPECT_LE(found.cost.missing, 0);
  EXPECT_NE(placement_lines(found)[0].find("does not fit"), std::string::npos) << "late lost";
}

}  // namespace
}  // namespace nacre::test
