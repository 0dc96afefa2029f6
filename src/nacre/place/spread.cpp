// The listing of Algorithm 1 in the paper differs from the example below the listing. The listing
// skips a row of V whenever that row leaves the last device of a round unchanged, and it ends after
// as many steps as there are new rows. The example does neither. This code follows the example.
//
// Devices of unequal capacity are a generalisation: a device of capacity c takes part in the rounds
// of the first c rows only. With equal capacities these are the rounds of the paper.
#include "nacre/place/spread.h"

#include <algorithm>
#include <numeric>

#include "nacre/base/parallel.h"

namespace nacre {
namespace {

constexpr int64_t kCopyChunk = 1 << 18;

Buffer<NodeId> first_rows(const Array<NodeId>& order, int64_t count) {
  Buffer<NodeId> rows(count);
  parallel_for(count, kCopyChunk,
               [&](int64_t b, int64_t e) { std::copy(order.begin() + b, order.begin() + e, rows.data() + b); });
  return rows;
}

}  // namespace

std::vector<Array<NodeId>> spread_rows(const Array<NodeId>& order, std::span<const float> reads,
                                       std::span<const int64_t> capacity, double alpha) {
  const size_t devices = capacity.size();
  std::vector<Buffer<NodeId>> rows;
  int64_t fresh = 0;  // place in `order` of the first row that no device has
  for (const int64_t most : capacity) {
    rows.push_back(first_rows(order, std::clamp<int64_t>(most, 0, order.size())));
    fresh = std::max(fresh, rows.back().size());
  }
  const auto read = [&](int64_t place) { return static_cast<double>(reads[order[place]]); };
  std::vector<double> added(devices, 0);  // how often the new rows of each device are read
  std::vector<size_t> holders;
  bool worth = true;
  for (int64_t old = fresh - 1; old >= 0 && worth && fresh < order.size(); --old) {
    holders.clear();
    for (size_t d = 0; d < devices; ++d) {
      if (rows[d].size() > old) holders.push_back(d);
    }
    std::stable_sort(holders.begin(), holders.end(), [&](size_t a, size_t b) { return added[a] < added[b]; });
    for (size_t i = 0; i + 1 < holders.size() && worth && fresh < order.size(); ++i) {
      worth = read(fresh) > alpha * read(old);
      if (!worth) break;
      added[holders[i]] += read(fresh);
      rows[holders[i]][old] = order[fresh++];
    }
  }
  std::vector<Array<NodeId>> result;
  result.reserve(rows.size());
  for (Buffer<NodeId>& each : rows) result.push_back(std::move(each).freeze());
  return result;
}

}  // namespace nacre
