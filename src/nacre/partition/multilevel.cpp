#include "nacre/partition/multilevel.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"
#include "nacre/partition/coarsen.h"
#include "nacre/partition/metis.h"
#include "nacre/partition/refine.h"

namespace nacre {
namespace {

// Graphs with at most this many vertices and entries are not coarsened before METIS cuts them.
constexpr int64_t kFewVertices = 1 << 15;
constexpr int64_t kFewEntries = 1 << 20;
constexpr int64_t kGrowth = 16;  // a cluster may have this many times the mean work of a vertex
constexpr int64_t kLeastClusters = 4096;
constexpr int64_t kClustersPerPart = 256;
constexpr int kMostLevels = 32;
constexpr int kRounds = 12;
constexpr int kTries = 4;
// METIS needs several vertices for each part, and prints to the terminal if there are too few.
constexpr int64_t kLeastVerticesPerPart = 8;

struct Level {
  Coarse graph;
  Clusters clusters;  // clusters of the vertices of the finer graph
};

class Multilevel {
 public:
  Multilevel(const Graph& graph, std::span<const double> shares, const PartitionOptions& options)
      : shares_(shares),
        options_(options),
        work_(vertex_work(graph, options)),
        view_(undirected_view(graph, has_all_reverses(graph))) {
    total_ = sum_of(work_);
    balance_ = balance_of(total_, shares, options.imbalance);
  }

  std::vector<uint16_t> run() {
    coarsen();
    std::vector<uint16_t> part = cut();
    for (size_t l = levels_.size(); l-- > 0;) {
      part = finer(levels_[l].clusters, part);
      levels_[l] = {};
      improve(l == 0 ? view_ : levels_[l - 1].graph.view(), l == 0 ? work_.data() : levels_[l - 1].graph.work.data(),
              part);
    }
    return part;
  }

 private:
  static bool is_small(const UndirectedView& view) {
    return view.count <= kFewVertices && view.all_entries() <= kFewEntries;
  }

  void coarsen() {
    UndirectedView view = view_;
    const int64_t* work = work_.data();
    const int64_t bound = largest_cluster();
    while (!is_small(view) && std::ssize(levels_) < kMostLevels) {
      ClusterOptions how;
      how.most_work = std::min(bound, kGrowth * (total_ / view.count + 1));
      how.seed = mix_key(options_.seed, levels_.size());
      Level level;
      level.clusters = find_clusters(view, work, how);
      // Coarsening ends here if the next graph would hardly be smaller than this one.
      if (level.clusters.count > view.count / 20 * 19) break;
      level.graph = contract(view, work, level.clusters);
      levels_.push_back(std::move(level));
      const Coarse& graph = levels_.back().graph;
      log_verbose(fmt::format("level {}: {} clusters, {} entries", levels_.size(), human_count(graph.count()),
                              human_count(graph.row_ptr[graph.count()])));
      view = graph.view();
      work = graph.work.data();
    }
    // METIS takes only graphs without self loops and parallel edges. A graph of clusters has
    // neither, so a graph that is small enough is also turned into one, with one vertex in each
    // cluster.
    if (levels_.empty()) {
      Level level{{}, single_clusters(view.count)};
      level.graph = contract(view, work, level.clusters);
      levels_.push_back(std::move(level));
    }
  }

  // Returns the most work that a cluster may have, so small that parts can still be balanced.
  int64_t largest_cluster() const {
    const int64_t smallest = *std::min_element(balance_.target.begin(), balance_.target.end());
    return std::max<int64_t>(1, std::min(total_ / kLeastClusters, smallest / kClustersPerPart));
  }

  std::vector<uint16_t> cut() {
    const Coarse& graph = levels_.back().graph;
    if (graph.count() < kLeastVerticesPerPart * balance_.parts()) return improved(graph, greedy(graph));
    MetisOptions how;
    how.imbalance = options_.imbalance * 2 / 3;
    how.seed = options_.seed;
    how.tries = graph.row_ptr[graph.count()] > kFewEntries ? 1 : kTries;
    std::vector<uint16_t> best;
    int64_t least = 0;
    for (const bool recursive : {false, true}) {
      how.recursive = recursive;
      std::vector<uint16_t> part = improved(graph, metis_parts(graph, shares_, how));
      const int64_t weight = cut_weight(graph.view(), part.data());
      log_verbose(fmt::format("METIS {}: cut {}", recursive ? "by bisection" : "into all parts", human_count(weight)));
      if (best.empty() || weight < least) {
        best = std::move(part);
        least = weight;
      }
    }
    return best;
  }

  // Returns parts of the vertices of a small graph: each vertex, the heaviest first, goes to the
  // part that lacks most work.
  std::vector<uint16_t> greedy(const Coarse& graph) const {
    std::vector<NodeId> order(graph.count());
    std::iota(order.begin(), order.end(), NodeId{0});
    std::stable_sort(order.begin(), order.end(), [&](NodeId a, NodeId b) { return graph.work[a] > graph.work[b]; });
    std::vector<int64_t> lack = balance_.target;
    std::vector<uint16_t> part(graph.count());
    for (const NodeId v : order) {
      const auto most = std::max_element(lack.begin(), lack.end());
      *most -= graph.work[v];
      part[v] = static_cast<uint16_t>(most - lack.begin());
    }
    return part;
  }

  std::vector<uint16_t> improved(const Coarse& graph, std::vector<uint16_t> part) const {
    improve(graph.view(), graph.work.data(), part);
    return part;
  }

  void improve(const UndirectedView& view, const int64_t* work, std::vector<uint16_t>& part) const {
    PartDraft draft{view, work, balance_, part.data(), loads_of(part.data(), work, view.count, balance_.parts())};
    rebalance(draft);
    refine(draft, kRounds);
  }

  static std::vector<uint16_t> finer(const Clusters& clusters, const std::vector<uint16_t>& coarse) {
    std::vector<uint16_t> part(clusters.of.size());
    parallel_for(clusters.of.size(), 1 << 16, [&](int64_t b, int64_t e) {
      for (int64_t v = b; v < e; ++v) part[v] = coarse[clusters.of[v]];
    });
    return part;
  }

  std::span<const double> shares_;
  const PartitionOptions& options_;
  Buffer<int64_t> work_;
  UndirectedView view_;
  Balance balance_;
  int64_t total_ = 0;
  std::vector<Level> levels_;  // the levels, the finest first
};

}  // namespace

std::vector<uint16_t> multilevel_parts(const Graph& graph, std::span<const double> shares,
                                       const PartitionOptions& options) {
  if (graph.num_edges() > INT64_C(0xFFFFFFFF)) {
    throw UserError("METIS", human_count(graph.num_edges()) + " edges are more than it can be given",
                    "use --method fennel");
  }
  return Multilevel(graph, shares, options).run();
}

int64_t multilevel_bytes(const GraphCounts& graph, bool symmetric) {
  // These are, for every vertex, the bytes of its work, its cluster and the number of that cluster,
  // its place among the members of clusters, its part and its flags.
  const int64_t vertices = graph.nodes * 72;
  // The entries of the graphs of clusters take 8 bytes each. The first of these graphs may have
  // nearly as many entries as the graph itself. Each graph is in memory twice while its rows are
  // copied to their places. METIS runs when only the finished graphs are in memory.
  const int64_t entries = symmetric ? graph.edges : 2 * graph.edges;
  const int64_t least = metis_bytes(std::min(graph.nodes, kFewVertices), std::min(entries, kFewEntries));
  return vertices + entries * 24 + least + (symmetric ? 0 : making_out_bytes(graph));
}

}  // namespace nacre
