#include "nacre/plan/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "nacre/base/log.h"
#include "nacre/base/trace.h"

namespace nacre {
namespace {

// If there are at most this many placements, the search tries all of them.
constexpr size_t kMostCombinations = 27;
constexpr int kRounds = 3;  // the most rounds over all sites, which end earlier if nothing changes
// Predicted times of sums in columns are too low on GPUs: by a third to a half on an H200. So sums
// in columns are chosen only if they are predicted to be this many times faster than exchanging
// rows of halos.
constexpr double kColumnsMargin = 1.5;

// Returns the choice at a site. `columns` has the number of columns that a distributed DFG
// exchanges at each site.
PlacedSite placed_site(const SiteColumns& site, const RankPlacement& placement,
                       const std::map<RankSite, int64_t>& columns) {
  PlacedSite placed{site.site, placement.at(site.site), 0, {}};
  if (const auto found = columns.find(site.site); found != columns.end()) placed.columns = found->second;
  // Columns and partial sums travel in other layers than the site's. They are as wide as the rows
  // that travel with `late`.
  if (placed.rows == HaloRows::columns || placed.rows == HaloRows::sums)
    placed.columns = site.columns.at(HaloRows::late);
  return placed;
}

class PlacementSearch {
 public:
  PlacementSearch(const Dfg& dfg, const PlacementTrial& trial, const RankViews& views)
      : dfg_(dfg), trial_(trial), views_(views), choices_(halo_choices(views)), sites_(rank_sites(dfg)) {}

  PlacementChoice run() {
    for (const HaloRows rows : std::vector(choices_)) {
      const RankPlacement placement{rows, {}};
      const PlacementCost cost = price(placement);
      choice_.fixed.push_back({rows, cost});
      if (rows == HaloRows::columns && choice_.cost.missing <= 0 &&
          cost.seconds * kColumnsMargin > choice_.cost.seconds) {
        std::erase(choices_, rows);
      } else if (choice_.fixed.size() == 1 || cheaper(cost, choice_.cost)) {
        take(placement, cost);
      }
    }
    if (combinations() <= kMostCombinations) {
      try_all();
    } else {
      for (int round = 0; round < kRounds && improve(); ++round) {
      }
    }
    prefer_late();
    describe();
    return std::move(choice_);
  }

 private:
  // Returns the predicted cost of a step. If another placement sends the same rows, its cost is
  // returned instead of predicting again.
  PlacementCost price(const RankPlacement& placement) {
    const std::string text = print_dfg(distribute(dfg_, placement, views_));
    const auto known = known_.find(text);
    if (known != known_.end()) return known->second;
    return known_[text] = trial_(placement);
  }

  void take(const RankPlacement& placement, const PlacementCost& cost) {
    choice_.placement = placement;
    choice_.cost = cost;
  }

  bool try_placement(const RankPlacement& placement) {
    const PlacementCost cost = price(placement);
    if (!cheaper(cost, choice_.cost)) return false;
    take(placement, cost);
    return true;
  }

  size_t combinations() const {
    size_t count = 1;
    for (size_t s = 0; s < sites_.size() && count <= kMostCombinations; ++s) count *= choices_.size();
    return count;
  }

  void try_all() {
    const size_t all = combinations();
    for (size_t number = 0; number < all; ++number) {
      RankPlacement placement{choice_.placement.usual, {}};
      size_t rest = number;
      for (const SiteColumns& site : sites_) {
        placement.sites[site.site] = choices_[rest % choices_.size()];
        rest /= choices_.size();
      }
      try_placement(placement);
    }
  }

  // Takes `late` at all sites, unless the search has found something that is clearly faster, or
  // `late` does not fit.
  void prefer_late() {
    for (const PricedRows& one : choice_.fixed) {
      if (one.rows == HaloRows::late && one.cost.missing <= 0 && choice_.cost.seconds * kLateMargin > one.cost.seconds)
        take({HaloRows::late, {}}, one.cost);
    }
  }

  // Tries every choice at each site, while the other sites keep theirs. Returns whether the
  // placement has changed.
  bool improve() {
    bool changed = false;
    for (const SiteColumns& site : sites_) {
      for (const HaloRows rows : choices_) changed |= try_placement(with(site.site, rows));
    }
    return changed;
  }

  RankPlacement with(const RankSite& site, HaloRows rows) const {
    RankPlacement placement = choice_.placement;
    placement.sites[site] = rows;
    return placement;
  }

  void describe() {
    // A site whose choice is the usual one need not be named.
    std::erase_if(choice_.placement.sites, [&](const auto& site) { return site.second == choice_.placement.usual; });
    const Dfg chosen = distribute(dfg_, choice_.placement, views_);
    const std::map<RankSite, int64_t> columns = travelling_columns(chosen);
    for (const SiteColumns& site : sites_) {
      PlacedSite placed = placed_site(site, choice_.placement, columns);
      for (const HaloRows rows : choices_) {
        const RankPlacement other = with(site.site, rows);
        if (rows != placed.rows && distribute(dfg_, other, views_) != chosen)
          placed.lost.push_back({rows, price(other)});
      }
      choice_.sites.push_back(std::move(placed));
    }
  }

  const Dfg& dfg_;
  const PlacementTrial& trial_;
  const RankViews& views_;
  std::vector<HaloRows> choices_;
  std::vector<SiteColumns> sites_;
  std::map<std::string, PlacementCost> known_;
  PlacementChoice choice_;
};

std::string cost_text(const PlacementCost& cost) {
  return fmt::format("{}, {}{}", human_seconds(cost.seconds), human_bytes(static_cast<double>(cost.received)),
                     cost.missing > 0 ? " (does not fit)" : "");
}

std::string list_text(const std::vector<PricedRows>& list) {
  std::string text;
  for (const PricedRows& priced : list) {
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", halo_rows_name(priced.rows), cost_text(priced.cost));
  }
  return text;
}

nlohmann::ordered_json cost_object(const PlacementCost& cost) {
  return {{"predicted_ms", cost.seconds * 1e3}, {"received_bytes", cost.received}, {"fits", cost.missing <= 0}};
}

nlohmann::ordered_json list_object(const std::vector<PricedRows>& list) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const PricedRows& priced : list) object[halo_rows_name(priced.rows)] = cost_object(priced.cost);
  return object;
}

}  // namespace

bool cheaper(const PlacementCost& a, const PlacementCost& b) {
  const auto key = [](const PlacementCost& c) {
    return std::tuple(std::max<int64_t>(0, c.missing), c.seconds, c.received);
  };
  return key(a) < key(b);
}

PlacementChoice search_placement(const Dfg& dfg, const PlacementTrial& trial, const RankViews& views) {
  const TraceSpan span("plan", "placement");
  return PlacementSearch(dfg, trial, views).run();
}

PlacementChoice given_placement(const Dfg& dfg, const RankPlacement& placement, const PlacementTrial& trial,
                                const RankViews& views) {
  PlacementChoice choice{.placement = placement, .cost = trial(placement)};
  const std::map<RankSite, int64_t> columns = travelling_columns(distribute(dfg, placement, views));
  for (const SiteColumns& site : rank_sites(dfg)) choice.sites.push_back(placed_site(site, placement, columns));
  return choice;
}

std::vector<std::string> placement_lines(const PlacementChoice& choice) {
  if (choice.fixed.empty()) return {};
  const std::string link = choice.link_bytes_per_second > 0
                               ? fmt::format(" (links measured: {}/s)", human_bytes(choice.link_bytes_per_second))
                               : "";
  std::vector<std::string> lines = {fmt::format(
      "--halo-rows auto chooses {}; predicted time of a step on the slowest rank{}, and bytes of rows that a "
      "rank receives at most: {}; with one choice for all layers: {}",
      placement_text(choice.placement), link, cost_text(choice.cost), list_text(choice.fixed))};
  for (const PlacedSite& site : choice.sites) {
    if (site.lost.empty()) continue;
    lines.push_back(fmt::format("{}: {}, {} columns travel; a step with another choice here: {}",
                                rank_site_name(site.site), halo_rows_name(site.rows), site.columns,
                                list_text(site.lost)));
  }
  return lines;
}

std::string placement_json(const PlacementChoice& choice) {
  nlohmann::ordered_json object = cost_object(choice.cost);
  if (choice.link_bytes_per_second > 0) object["link_bytes_per_s"] = choice.link_bytes_per_second;
  if (!choice.fixed.empty()) object["one_choice"] = list_object(choice.fixed);
  object["sites"] = nlohmann::ordered_json::array();
  for (const PlacedSite& site : choice.sites) {
    nlohmann::ordered_json entry = {
        {"site", rank_site_name(site.site)}, {"rows", halo_rows_name(site.rows)}, {"columns", site.columns}};
    if (!site.lost.empty()) entry["lost"] = list_object(site.lost);
    object["sites"].push_back(std::move(entry));
  }
  return object.dump();
}

}  // namespace nacre
