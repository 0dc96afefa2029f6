#include "nacre/dfg/columns.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace nacre {
namespace {

constexpr int64_t kAligned = 4;  // columns that a vector register or a load of a GPU takes

}  // namespace

std::vector<int64_t> column_bounds(int64_t width, std::span<const double> shares) {
  const auto ranks = static_cast<int64_t>(shares.size());
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  const int64_t unit = width % kAligned == 0 && width >= 4 * kAligned * ranks ? kAligned : 1;
  const int64_t units = width / unit;
  std::vector<int64_t> bounds = {0};
  double before = 0;
  for (const double share : shares) {
    before += share;
    const double place = static_cast<double>(units) * (total > 0 ? before / total : 1);
    bounds.push_back(std::clamp(static_cast<int64_t>(std::llround(place)) * unit, bounds.back(), width));
  }
  if (shares.empty()) bounds.push_back(width);
  bounds.back() = width;
  return bounds;
}

}  // namespace nacre
