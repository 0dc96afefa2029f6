#include "nacre/gtask/sort_keys.h"

#include <algorithm>
#include <array>

namespace nacre {
namespace {

constexpr SortKey kSrc = {Location::src, Attribute::id, 1};
constexpr SortKey kDst = {Location::dst, Attribute::id, 1};

// Returns how loose a restriction is; a smaller number is tighter.
int64_t slack(const Restriction& entry) {
  if (entry.kind == Restriction::minimum) return 1;
  return entry.k == 1 ? 0 : entry.k;
}

bool ends_with(const std::vector<SortKey>& keys, std::initializer_list<SortKey> tail) {
  return keys.size() >= tail.size() && std::equal(tail.begin(), tail.end(), keys.end() - std::ssize(tail));
}

}  // namespace

std::vector<SortKey> sort_keys(const PartitionTable& table) {
  std::vector<SortKey> keys;
  if (!table.free(Location::edge, Attribute::type)) keys.push_back({Location::edge, Attribute::type});
  for (const Attribute attribute : {Attribute::degree, Attribute::id}) {
    const Restriction& dst = table.at(Location::dst, attribute);
    const Restriction& src = table.at(Location::src, attribute);
    std::array<SortKey, 2> ends = {{{Location::dst, attribute}, {Location::src, attribute}}};
    const bool grid = attribute == Attribute::id && dst.k > 1 && src.k > 1;
    if (grid) {
      ends[0].block = dst.k;
      ends[1].block = src.k;
    }
    if (slack(src) < slack(dst)) std::swap(ends[0], ends[1]);
    for (const SortKey& key : ends) {
      if (!table.free(key.location, attribute)) keys.push_back(key);
    }
  }
  return keys;
}

std::vector<SortKey> essential_keys(std::vector<SortKey> keys, const Graph& graph) {
  if (!graph.typed()) std::erase(keys, SortKey{Location::edge, Attribute::type});
  if (ends_with(keys, {kDst, kSrc})) keys.pop_back();
  // A trailing [dst-id] is left out after any other keys, also after [src-id], because edges that
  // are equal in those keys are in the order of dst anyway.
  if (ends_with(keys, {kDst})) keys.pop_back();
  return keys;
}

}  // namespace nacre
