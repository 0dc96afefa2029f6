// The cover comes from a maximum matching of destination pairs with source pairs (Hopcroft and
// Karp), by the theorem of König: of the pairs that alternating paths from unmatched destination
// pairs reach, the source pairs belong to the cover, and so do the destination pairs that are not
// reached. Every edge has an end in this set even if the matching could still grow.
#include "nacre/graph/edge_cover.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "nacre/base/parallel.h"
#include "nacre/graph/pairs.h"

namespace nacre {
namespace {

constexpr EdgeId kNone = std::numeric_limits<EdgeId>::max();
constexpr int64_t kRows = 1 << 14;

// The pairs at both ends of the edges. The edges of destination pair d are those numbered
// at_dst.edge_ptr[d] to at_dst.edge_ptr[d+1], and `source` has their source pairs.
struct BipartitePairs {
  PairIndex at_dst;
  int64_t num_sources = 0;
  Buffer<EdgeId> source;
};

BipartitePairs bipartite_pairs(const Graph& graph) {
  BipartitePairs b;
  b.at_dst = make_pairs(graph, End::dst);
  const PairIndex at_src = make_pairs(graph, End::src);
  b.num_sources = at_src.num_pairs;
  b.source = Buffer<EdgeId>(graph.num_edges());
  parallel_for(graph.num_edges(), kRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) b.source[i] = at_src.of_edge[b.at_dst.edge[i]];
  });
  return b;
}

// Says which pairs are in the cover.
struct Covered {
  explicit Covered(const BipartitePairs& b)
      : dst(static_cast<size_t>(b.at_dst.num_pairs)), src(static_cast<size_t>(b.num_sources)) {}
  std::vector<char> dst, src;
};

// Matches the pairs of one type. Pairs of different types have no edges in common, so matchings of
// several types may run at once; each writes the entries of its own pairs only.
class Matching {
 public:
  Matching(const BipartitePairs& pairs, std::vector<EdgeId>& of_dst, std::vector<EdgeId>& of_src, int64_t type)
      : b_(pairs),
        of_dst_(of_dst),
        of_src_(of_src),
        first_(pairs.at_dst.type_ptr[type]),
        last_(pairs.at_dst.type_ptr[type + 1]),
        depth_(static_cast<size_t>(last_ - first_)),
        next_(static_cast<size_t>(last_ - first_)) {}

  void grow() {
    match_greedily();
    for (int phase = 0; phase < kMostCoverPhases && find_depths(); ++phase) {
      for (int64_t d = first_; d < last_; ++d) next_[d - first_] = b_.at_dst.edge_ptr[d];
      for (int64_t d = first_; d < last_; ++d) {
        if (of_dst_[d] == kNone) augment(static_cast<EdgeId>(d));
      }
    }
  }

  void cover(Covered& covered) {
    find_depths();
    for (int64_t d = first_; d < last_; ++d) {
      if (depth_[d - first_] == kNone) {
        covered.dst[d] = 1;
        continue;
      }
      for (int64_t i = b_.at_dst.edge_ptr[d]; i < b_.at_dst.edge_ptr[d + 1]; ++i) covered.src[b_.source[i]] = 1;
    }
  }

 private:
  // Pairs with few edges choose first, because they have the fewest partners to choose from.
  void match_greedily() {
    for (const bool single : {true, false}) {
      for (int64_t d = first_; d < last_; ++d) {
        const int64_t begin = b_.at_dst.edge_ptr[d], end = b_.at_dst.edge_ptr[d + 1];
        if (of_dst_[d] != kNone || (end - begin == 1) != single) continue;
        const auto free = std::find_if(&b_.source[begin], &b_.source[begin] + (end - begin),
                                       [&](EdgeId s) { return of_src_[s] == kNone; });
        if (free != &b_.source[begin] + (end - begin)) match(static_cast<EdgeId>(d), *free);
      }
    }
  }

  void match(EdgeId d, EdgeId s) {
    of_dst_[d] = s;
    of_src_[s] = d;
  }

  // Sets the depth of each destination pair: the number of matched edges on the shortest
  // alternating path to it from an unmatched one, or kNone if there is no path. Returns whether a
  // path ends at an unmatched source pair, so that the matching can grow.
  bool find_depths() {
    std::fill(depth_.begin(), depth_.end(), kNone);
    queue_.clear();
    for (int64_t d = first_; d < last_; ++d) {
      if (of_dst_[d] != kNone) continue;
      depth_[d - first_] = 0;
      queue_.push_back(static_cast<EdgeId>(d));
    }
    bool grows = false;
    for (size_t q = 0; q < queue_.size(); ++q) {
      const EdgeId d = queue_[q];
      for (int64_t i = b_.at_dst.edge_ptr[d]; i < b_.at_dst.edge_ptr[d + 1]; ++i) {
        const EdgeId partner = of_src_[b_.source[i]];
        if (partner == kNone) {
          grows = true;
        } else if (depth_[partner - first_] == kNone) {
          depth_[partner - first_] = depth_[d - first_] + 1;
          queue_.push_back(partner);
        }
      }
    }
    return grows;
  }

  // Looks for an alternating path from an unmatched destination pair along growing depths, and
  // swaps matched and unmatched edges on it. `path_` holds the destination pairs of the path.
  void augment(EdgeId root) {
    path_.assign(1, root);
    while (!path_.empty()) {
      const EdgeId d = path_.back();
      int64_t& i = next_[d - first_];
      if (i == b_.at_dst.edge_ptr[int64_t{d} + 1]) {
        path_.pop_back();
        if (!path_.empty()) ++next_[path_.back() - first_];
        continue;
      }
      const EdgeId partner = of_src_[b_.source[i]];
      if (partner == kNone) {
        for (const EdgeId on : path_) match(on, b_.source[next_[on - first_]]);
        return;
      }
      if (depth_[partner - first_] == depth_[d - first_] + 1) {
        path_.push_back(partner);
      } else {
        ++i;
      }
    }
  }

  const BipartitePairs& b_;
  std::vector<EdgeId>& of_dst_;  // the source pair that each destination pair is matched with
  std::vector<EdgeId>& of_src_;
  int64_t first_, last_;  // the destination pairs of the type
  std::vector<EdgeId> depth_;
  std::vector<int64_t> next_;  // the next edge that augment() tries at each destination pair
  std::vector<EdgeId> queue_, path_;
};

Covered minimum_cover(const BipartitePairs& b, int types) {
  std::vector<EdgeId> of_dst(static_cast<size_t>(b.at_dst.num_pairs), kNone);
  std::vector<EdgeId> of_src(static_cast<size_t>(b.num_sources), kNone);
  Covered covered(b);
  parallel_tasks(types, [&](int64_t type) {
    Matching matching(b, of_dst, of_src, type);
    matching.grow();
    matching.cover(covered);
  });
  return covered;
}

// Returns the graph of the edges e of `graph` with keep[e] == wanted. `positions` becomes the list
// of these e.
Graph half_of(const Graph& graph, const Buffer<char>& keep, char wanted, Array<EdgeId>& positions) {
  GraphArrays half;
  half.num_src = graph.num_src();
  half.num_dst = graph.num_dst();
  half.num_edge_types = graph.num_edge_types();
  Buffer<int64_t> row_ptr(graph.num_dst() + 1);
  row_ptr[0] = 0;
  parallel_for(graph.num_dst(), kRows, [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v)
      row_ptr[v + 1] = std::count(&keep[graph.row_ptr()[v]], &keep[0] + graph.row_ptr()[v + 1], wanted);
  });
  for (int64_t v = 0; v < graph.num_dst(); ++v) row_ptr[v + 1] += row_ptr[v];
  const int64_t edges = row_ptr[graph.num_dst()];
  Buffer<NodeId> col_idx(edges);
  Buffer<uint16_t> types(graph.typed() ? edges : 0);
  Buffer<EdgeId> numbers(edges);
  parallel_for(graph.num_dst(), kRows, [&](int64_t begin, int64_t end) {
    int64_t at = row_ptr[begin];
    for (int64_t e = graph.row_ptr()[begin]; e < graph.row_ptr()[end]; ++e) {
      if (keep[e] != wanted) continue;
      col_idx[at] = graph.col_idx()[e];
      if (graph.typed()) types[at] = graph.edge_type()[e];
      numbers[at++] = static_cast<EdgeId>(e);
    }
  });
  half.row_ptr = std::move(row_ptr).freeze();
  half.col_idx = std::move(col_idx).freeze();
  half.edge_type = std::move(types).freeze();
  positions = std::move(numbers).freeze();
  return Graph::trusted(std::move(half));
}

}  // namespace

int64_t EdgeCover::bytes() const {
  return at_dst.bytes() + at_src.bytes() + (dst_edges.size() + src_edges.size()) * static_cast<int64_t>(sizeof(EdgeId));
}

// There are two indexes of pairs, and each takes at most 30 bytes for each edge. The index at the
// sources is freed before the pairs are matched, and the matching takes less memory than that
// index.
int64_t covering_bytes(int64_t edges) { return edges * 2 * 30; }

EdgeCover cover_edges(const Graph& graph) {
  // at_dst[e] is 1 if edge e belongs to the pair of its destination, and 0 if it belongs to the
  // pair of its source. An edge with both pairs in the cover belongs to its destination.
  Buffer<char> at_dst(std::max<int64_t>(1, graph.num_edges()));
  {
    const BipartitePairs pairs = bipartite_pairs(graph);
    const Covered covered = minimum_cover(pairs, graph.num_edge_types());
    parallel_for(graph.num_edges(), kRows, [&](int64_t begin, int64_t end) {
      for (int64_t e = begin; e < end; ++e) at_dst[e] = covered.dst[pairs.at_dst.of_edge[e]];
    });
  }
  EdgeCover cover;
  cover.at_dst = half_of(graph, at_dst, 1, cover.dst_edges);
  cover.at_src = half_of(graph, at_dst, 0, cover.src_edges);
  return cover;
}

}  // namespace nacre
