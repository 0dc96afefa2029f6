#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/data/twin_edges.h"
#include "nacre/data/twin_math.h"

namespace nacre {
namespace {

enum Street : uint8_t { right = 1, down = 2, diagonal = 4 };
constexpr double kDiagonalShare = 0.06;

// Decides item by item which `wanted` of `candidates` items to keep. Every subset is equally
// likely.
class Selection {
 public:
  Selection(int64_t candidates, int64_t wanted) : left_(candidates), wanted_(wanted) {}
  bool take(uint32_t word) {
    const bool taken = pick(word, left_) < wanted_;
    --left_;
    wanted_ -= taken ? 1 : 0;
    return taken;
  }

 private:
  int64_t left_;
  int64_t wanted_;
};

struct Lattice {
  int64_t n;
  int64_t width;
  bool has_right(int64_t v) const { return v + 1 < n && (v + 1) % width != 0; }
  bool has_down(int64_t v) const { return v + width < n; }
  bool has_diagonal(int64_t v) const { return v + width + 1 < n && (v + 1) % width != 0; }
};

std::vector<uint8_t> draw_streets(const TwinPlan& plan, const Lattice& lattice) {
  int64_t straight = 0;
  int64_t diagonals = 0;
  for (int64_t v = 0; v < lattice.n; ++v) {
    straight += (lattice.has_right(v) ? 1 : 0) + (lattice.has_down(v) ? 1 : 0);
    diagonals += lattice.has_diagonal(v) ? 1 : 0;
  }
  const int64_t pairs = plan.relations[0].draws;
  const auto crossing = std::max(static_cast<int64_t>(kDiagonalShare * static_cast<double>(pairs)), pairs - straight);
  NACRE_CHECK(crossing <= diagonals && pairs - crossing <= straight, "the lattice has too few streets");
  Selection straight_kept(straight, pairs - crossing);
  Selection diagonals_kept(diagonals, crossing);
  const uint64_t key = plan.key(TwinStream::roads);
  std::vector<uint8_t> streets(lattice.n, 0);
  for (int64_t v = 0; v < lattice.n; ++v) {
    const PhiloxBlock r = philox(key, 0, static_cast<uint64_t>(v));
    if (lattice.has_right(v) && straight_kept.take(r[0])) streets[v] |= Street::right;
    if (lattice.has_down(v) && straight_kept.take(r[1])) streets[v] |= Street::down;
    if (lattice.has_diagonal(v) && diagonals_kept.take(r[2])) streets[v] |= Street::diagonal;
  }
  return streets;
}

// Writes the neighbours of v in ascending order and returns their number.
int neighbours(const std::vector<uint8_t>& streets, int64_t width, int64_t v, NodeId* out) {
  int n = 0;
  const auto add = [&](int64_t end, int64_t to, Street street) {
    if (end >= 0 && (streets[end] & street) != 0) out[n++] = static_cast<NodeId>(to);
  };
  add(v - width - 1, v - width - 1, Street::diagonal);
  add(v - width, v - width, Street::down);
  add(v - 1, v - 1, Street::right);
  add(v, v + 1, Street::right);
  add(v, v + width, Street::down);
  add(v, v + width + 1, Street::diagonal);
  return n;
}

}  // namespace

int64_t road_width(const TwinPlan& plan) {
  int64_t width = 2;
  while ((width + 1) * (width + 1) <= plan.num_nodes) ++width;
  return width;
}

Graph draw_roads(const TwinPlan& plan) {
  const Lattice lattice{plan.num_nodes, road_width(plan)};
  const std::vector<uint8_t> streets = draw_streets(plan, lattice);
  Buffer<int64_t> row_ptr(lattice.n + 1);
  row_ptr[0] = 0;
  NodeId scratch[6];
  for (int64_t v = 0; v < lattice.n; ++v) {
    row_ptr[v + 1] = row_ptr[v] + neighbours(streets, lattice.width, v, scratch);
  }
  Buffer<NodeId> columns(row_ptr[lattice.n]);
  parallel_for(lattice.n, 1 << 14, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) neighbours(streets, lattice.width, v, columns.data() + row_ptr[v]);
  });
  GraphArrays arrays;
  arrays.num_src = arrays.num_dst = lattice.n;
  arrays.row_ptr = std::move(row_ptr).freeze();
  arrays.col_idx = std::move(columns).freeze();
  return {std::move(arrays), plan.name};
}

}  // namespace nacre
