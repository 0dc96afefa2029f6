// Partners are drawn row by row: every vertex opens its share of edges and draws distinct partners
// by weight. No pair is drawn twice, so their number is exact without a global sort: in a symmetric
// relation within one kind, only one of two vertices may open the edge between them, the one for
// which the other lies in the next half of the circle of ids.
#include "nacre/data/twin_edges.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/data/twin_math.h"

namespace nacre {
namespace {

constexpr int64_t kRowChunk = 256;
constexpr NodeId kNone = std::numeric_limits<NodeId>::max();
// Share of the edges inside a community that stay inside the block.
constexpr double kBlockShare = 0.5;
// The largest share of a block or community that is drawn for one vertex.
constexpr double kMaxFill = 0.5;

// The set of vertices already drawn for the current row.
class DrawnSet {
 public:
  void reset(int64_t expected) {
    const auto size = std::bit_ceil(static_cast<size_t>(std::max<int64_t>(8, 2 * expected)));
    table_.assign(size, kNone);
    mask_ = static_cast<uint32_t>(size - 1);
  }
  bool insert(NodeId v) {
    uint32_t at = (v * 0x9E3779B1u >> 7) & mask_;
    for (; table_[at] != kNone; at = (at + 1) & mask_) {
      if (table_[at] == v) return false;
    }
    table_[at] = v;
    return true;
  }

 private:
  std::vector<NodeId> table_;
  uint32_t mask_ = 0;
};

// Returns row lengths proportional to the weights (by position), rounded so that they sum to
// `total`.
Array<int64_t> row_lengths(const KindLayout& layout, const std::vector<float>& weights, int64_t total) {
  Buffer<int64_t> row_ptr(layout.count + 1);
  std::vector<uint64_t> fixed(layout.count);
  unsigned __int128 sum = 0;
  for (int64_t i = 0; i < layout.count; ++i) {
    fixed[i] = 1 + static_cast<uint64_t>(weights[layout.position_of[i]] * 65536.0);
    sum += fixed[i];
  }
  unsigned __int128 running = 0;
  row_ptr[0] = 0;
  for (int64_t i = 0; i < layout.count; ++i) {
    running += fixed[i];
    row_ptr[i + 1] = static_cast<int64_t>(running * static_cast<uint64_t>(total) / sum);
  }
  return std::move(row_ptr).freeze();
}

// Where a vertex looks for partners: its community and block, and the chances that a partner comes
// from the block and from the community (which includes the block).
struct Reach {
  int64_t community = 0;
  int64_t block = 0;
  double block_share = 0;
  double community_share = 0;
};

Reach reach_of(const PlannedRelation& relation, const KindLayout& from, const KindLayout& to, int64_t i,
               int64_t wanted) {
  Reach reach;
  const int64_t position = from.position_of[i];
  reach.community = community_at(from, position);
  const int64_t first = to.first_block[reach.community];
  const int64_t blocks = to.first_block[reach.community + 1] - first;
  if (blocks == 0 || wanted == 0) return reach;
  // Takes the block at the same relative place in the community. Within one kind, this is the
  // vertex's own block.
  const int64_t begin = from.community_begin[reach.community];
  const int64_t size = from.community_begin[reach.community + 1] - begin;
  reach.block = first + ((position - begin + 1) * blocks - 1) / size;
  const bool one_sided = relation.symmetric && relation.from == relation.to;
  const double fill = kMaxFill * (one_sided ? 0.5 : 1) / static_cast<double>(wanted);
  const auto in_block = static_cast<double>(to.block_begin[reach.block + 1] - to.block_begin[reach.block]);
  const auto in_community =
      static_cast<double>(to.community_begin[reach.community + 1] - to.community_begin[reach.community]);
  reach.community_share = std::min(relation.homophily, fill * in_community);
  reach.block_share = std::min(reach.community_share * kBlockShare, fill * in_block);
  return reach;
}

Demand expected_demand(const PlannedRelation& relation, const KindLayout& from, const KindLayout& to,
                       const Array<int64_t>& row_ptr) {
  Demand demand{std::vector<double>(to.block_begin.size() - 1), std::vector<double>(to.community_begin.size() - 1)};
  for (int64_t i = 0; i < from.count; ++i) {
    const int64_t wanted = row_ptr[i + 1] - row_ptr[i];
    if (wanted == 0) continue;
    const Reach reach = reach_of(relation, from, to, i, wanted);
    demand.block[reach.block] += static_cast<double>(wanted) * reach.block_share;
    demand.community[reach.community] += static_cast<double>(wanted) * (reach.community_share - reach.block_share);
  }
  return demand;
}

class RowDrawer {
 public:
  RowDrawer(const PartnerTables& tables, const KindLayout& from, const PlannedRelation& relation, uint64_t key)
      : tables_(tables), from_(from), to_(tables.layout()), relation_(relation), key_(key) {
    same_kind_ = relation.from == relation.to;
    one_sided_ = relation.symmetric && same_kind_;
  }

  // Fills out[0, wanted) with sorted distinct partners of vertex `from.begin + i`.
  void draw(int64_t i, int64_t wanted, NodeId* out) {
    if (wanted == 0) return;
    reach_ = reach_of(relation_, from_, to_, i, wanted);
    block_level_ = static_cast<uint32_t>(reach_.block_share * 4294967295.0);
    community_level_ = static_cast<uint32_t>(reach_.community_share * 4294967295.0);
    drawn_.reset(wanted);
    const auto u = static_cast<NodeId>(from_.begin + i);
    const int64_t weighted = 6 * wanted + 64;
    int64_t have = 0;
    for (int64_t attempt = 0; have < wanted && attempt < 2 * weighted; ++attempt) {
      const PhiloxBlock r = philox(key_, u, static_cast<uint64_t>(attempt));
      // If too many draws fail, the rest is drawn without regard to weights.
      const NodeId v = attempt < weighted ? by_weight(r) : static_cast<NodeId>(to_.begin + pick(r[1], to_.count));
      if (allowed(u, v) && drawn_.insert(v)) out[have++] = v;
    }
    for (int64_t step = 1; have < wanted; ++step) {
      NACRE_CHECK(step <= to_.count, "a twin vertex has more edges than partners");
      const auto v = static_cast<NodeId>(to_.begin + (i + step) % to_.count);
      if (allowed(u, v) && drawn_.insert(v)) out[have++] = v;
    }
    std::sort(out, out + wanted);
  }

 private:
  NodeId by_weight(const PhiloxBlock& r) const {
    if (r[0] < block_level_) return tables_.from_block(reach_.block, r[1]);
    if (r[0] < community_level_) return tables_.from_community(reach_.community, r[1], r[2]);
    return tables_.from_all(r[1], r[2]);
  }

  bool allowed(NodeId u, NodeId v) const {
    if (!same_kind_) return true;
    if (!one_sided_) return u != v;
    const int64_t ahead = v >= u ? v - u : to_.count - (u - v);
    return 2 * ahead < to_.count ? ahead != 0 : 2 * ahead == to_.count && u < v;
  }

  const PartnerTables& tables_;
  const KindLayout& from_;
  const KindLayout& to_;
  const PlannedRelation& relation_;
  uint64_t key_;
  bool same_kind_;
  bool one_sided_;
  DrawnSet drawn_;
  Reach reach_;
  uint32_t block_level_ = 0;  // a random word below this takes a partner from the block
  // A random word from block_level_ up to this takes a partner from the community; a larger word
  // takes one from all vertices of the kind.
  uint32_t community_level_ = 0;
};

}  // namespace

Rows draw_rows(const TwinPlan& plan, int relation, const KindLayout& from, const KindLayout& to) {
  const PlannedRelation& r = plan.relations[relation];
  const auto index = static_cast<uint64_t>(relation);
  const bool one_sided = r.symmetric && r.from == r.to;
  const auto mean_over = [&](int64_t vertices) {
    return static_cast<double>(r.draws) * (one_sided ? 2 : 1) / static_cast<double>(vertices);
  };
  std::vector<float> in = draw_weights(to.count, r.in, mean_over(to.count), plan.key(TwinStream::degrees, index));
  Rows rows;
  rows.begin = from.begin;
  // In a symmetric relation within one kind, a vertex opens half of its edges and is drawn by
  // others for the other half.
  if (one_sided) {
    rows.row_ptr = row_lengths(from, in, r.draws);
    for (float& weight : in) weight /= 2;
  } else {
    const uint64_t key = plan.key(TwinStream::out_degrees, index);
    rows.row_ptr = row_lengths(from, draw_weights(from.count, r.out, mean_over(from.count), key), r.draws);
  }
  const PartnerTables tables(to, std::move(in), expected_demand(r, from, to, rows.row_ptr));
  Buffer<NodeId> columns(r.draws);
  parallel_for(from.count, kRowChunk, [&](int64_t b, int64_t e) {
    RowDrawer drawer(tables, from, r, plan.key(TwinStream::partners, index));
    for (int64_t i = b; i < e; ++i) {
      drawer.draw(i, rows.row_ptr[i + 1] - rows.row_ptr[i], columns.data() + rows.row_ptr[i]);
    }
  });
  rows.columns = std::move(columns).freeze();
  return rows;
}

}  // namespace nacre
