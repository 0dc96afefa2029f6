#include "nacre/plan/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace nacre {
namespace {

// One amount of work counts as no larger than another if it exceeds it by at most this share,
// because sums of equal work may differ in their last bits.
constexpr double kRounding = 1e-12;

// Returns a number of plans as text. The number may be too large for an integer.
std::string count_text(double count) {
  return count < 1e6 ? fmt::format("{:.0f}", count) : fmt::format("about {:.1e}", count);
}

}  // namespace

double SearchSpace::plans() const {
  double product = 1;
  for (const SpaceGroup& group : groups) product *= static_cast<double>(group.options);
  return product;
}

void TotalWork::add(const Work& work, int direction, double times) {
  auto& sum = of_kind[{work.kind, direction}];
  for (int f = 0; f < kFeatures; ++f) sum[f] += times * work.amount[f];
}

bool TotalWork::covers(const TotalWork& other) const {
  if (peak > other.peak) return false;
  return std::all_of(of_kind.begin(), of_kind.end(), [&](const auto& own) {
    const auto theirs = other.of_kind.find(own.first);
    if (theirs == other.of_kind.end()) return false;
    for (int f = 0; f < kFeatures; ++f) {
      if (own.second[f] > theirs->second[f] * (1 + kRounding)) return false;
    }
    return true;
  });
}

std::string space_text(const SearchSpace& space) {
  std::string text =
      fmt::format("space of plans: {} in {} {} of choices; {} planned and predicted, {} compared in whole steps\n",
                  count_text(space.plans()), space.groups.size(), space.groups.size() == 1 ? "group" : "groups",
                  space.planned, space.whole_steps);
  for (const SpaceGroup& group : space.groups) {
    text += fmt::format("  {}: {} options, {} timed\n", group.name, group.options, group.timed);
    for (const auto& [rule, count] : group.left_out) text += fmt::format("    {} left out: {}\n", count, rule);
  }
  return text;
}

std::string space_json(const SearchSpace& space) {
  nlohmann::ordered_json groups = nlohmann::ordered_json::array();
  for (const SpaceGroup& group : space.groups) {
    groups.push_back({{"group", group.name},
                      {"options", group.options},
                      {"timed", group.timed},
                      {"left_out", nlohmann::ordered_json(group.left_out)}});
  }
  const nlohmann::ordered_json json = {
      {"plans", space.plans()}, {"planned", space.planned}, {"whole_steps", space.whole_steps}, {"groups", groups}};
  return json.dump(2);
}

}  // namespace nacre
