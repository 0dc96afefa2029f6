// The figures come from linear passes over the in-CSR. All counts are integers, so the order in
// which threads add them does not matter.
//
// Components are found with a union-find forest in which every root points to itself and every link
// goes to a smaller id. A root is hooked under a smaller root by compare-and-swap, so threads need
// no locks and the partition is the same whatever their order. A graph is symmetric if its set of
// edges equals the set of reversed edges. Every edge of both sets is hashed, and the 64-bit hashes
// are summed; equal sums mean equal sets, but for one chance in 2^64.
#include "nacre/graph/stats.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"
#include "nacre/graph/degrees.h"

namespace nacre {
namespace {

constexpr int64_t kRows = 1 << 13;

class Forest {
 public:
  explicit Forest(int64_t vertices) : parent_(vertices) {
    parallel_for(vertices, 1 << 16, [&](int64_t b, int64_t e) {
      for (int64_t v = b; v < e; ++v) parent_[v] = static_cast<NodeId>(v);
    });
  }

  NodeId root(NodeId v) {
    for (NodeId up = load(v); up != v; up = load(v)) {
      const NodeId above = load(up);
      // Halves the path from v to its root. If another thread changes the parent of v at the same
      // time, the parent that it sets is an ancestor of v, too.
      if (above != up) std::atomic_ref(parent_[v]).compare_exchange_weak(up, above, std::memory_order_relaxed);
      v = above;
    }
    return v;
  }

  void join(NodeId a, NodeId b) {
    for (;;) {
      a = root(a);
      b = root(b);
      if (a == b) return;
      if (a < b) std::swap(a, b);
      NodeId expected = a;
      if (std::atomic_ref(parent_[a]).compare_exchange_strong(expected, b, std::memory_order_relaxed)) return;
    }
  }

 private:
  NodeId load(NodeId v) { return std::atomic_ref(parent_[v]).load(std::memory_order_relaxed); }

  Buffer<NodeId> parent_;
};

void count_components(const Graph& graph, GraphStats& stats) {
  Forest forest(graph.num_src());
  parallel_for(graph.num_dst(), kRows, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) {
      for (int64_t i = graph.row_ptr()[v]; i < graph.row_ptr()[v + 1]; ++i) {
        forest.join(static_cast<NodeId>(v), graph.col_idx()[i]);
      }
    }
  });
  std::vector<int64_t> size(graph.num_src(), 0);
  parallel_for(graph.num_src(), 1 << 16, [&](int64_t b, int64_t e) {
    // Consecutive vertices mostly share a root, so runs are counted before the shared counter is
    // changed.
    NodeId current = 0;
    int64_t run = 0;
    const auto flush = [&] {
      if (run > 0) std::atomic_ref(size[current]).fetch_add(run, std::memory_order_relaxed);
    };
    for (int64_t v = b; v < e; ++v) {
      const NodeId r = forest.root(static_cast<NodeId>(v));
      if (r != current) {
        flush();
        current = r;
        run = 0;
      }
      ++run;
    }
    flush();
  });
  for (const int64_t s : size) {
    stats.components += s > 0 ? 1 : 0;
    stats.largest_component = std::max(stats.largest_component, s);
  }
}

struct EdgeCounts {
  int64_t self_loops = 0;
  int64_t duplicates = 0;
  uint64_t forward = 0;
  uint64_t backward = 0;
};

EdgeCounts count_rows(const Graph& graph, int64_t begin, int64_t end) {
  EdgeCounts counts;
  for (int64_t v = begin; v < end; ++v) {
    const auto dst = static_cast<NodeId>(v);
    for (int64_t i = graph.row_ptr()[v]; i < graph.row_ptr()[v + 1]; ++i) {
      const NodeId src = graph.col_idx()[i];
      if (src == dst) ++counts.self_loops;
      if (i > graph.row_ptr()[v] && graph.col_idx()[i - 1] == src) {
        ++counts.duplicates;
        continue;
      }
      counts.forward += mix_key(src, dst);
      counts.backward += mix_key(dst, src);
    }
  }
  return counts;
}

void count_edges(const Graph& graph, GraphStats& stats) {
  std::vector<EdgeCounts> parts((graph.num_dst() + kRows - 1) / kRows);
  parallel_for(graph.num_dst(), kRows, [&](int64_t b, int64_t e) { parts[b / kRows] = count_rows(graph, b, e); });
  uint64_t difference = 0;
  for (const EdgeCounts& part : parts) {
    stats.self_loops += part.self_loops;
    stats.duplicate_edges += part.duplicates;
    difference += part.forward - part.backward;
  }
  stats.symmetric = difference == 0;
}

}  // namespace

GraphStats compute_stats(const Graph& graph) {
  GraphStats stats;
  const std::vector<int64_t> out = out_degrees(graph);
  stats.in = degree_stats(graph.num_dst(), graph.num_edges(), [&](int64_t v) { return graph.in_degree(v); });
  stats.out = degree_stats(graph.num_src(), graph.num_edges(), [&](int64_t v) { return out[v]; });
  for (int64_t v = 0; v < graph.num_src(); ++v) {
    stats.isolated += out[v] == 0 && (v >= graph.num_dst() || graph.in_degree(v) == 0) ? 1 : 0;
  }
  count_edges(graph, stats);
  count_components(graph, stats);
  return stats;
}

double edge_homophily(const Graph& graph, std::span<const int32_t> labels) {
  NACRE_CHECK(static_cast<int64_t>(labels.size()) == graph.num_src(),
              "the number of labels is not the number of vertices");
  std::vector<std::pair<int64_t, int64_t>> parts((graph.num_dst() + kRows - 1) / kRows);
  parallel_for(graph.num_dst(), kRows, [&](int64_t b, int64_t e) {
    auto& [same, all] = parts[b / kRows];
    for (int64_t v = b; v < e; ++v) {
      if (labels[v] < 0) continue;
      for (int64_t i = graph.row_ptr()[v]; i < graph.row_ptr()[v + 1]; ++i) {
        const int32_t other = labels[graph.col_idx()[i]];
        if (other < 0) continue;
        ++all;
        same += other == labels[v] ? 1 : 0;
      }
    }
  });
  int64_t same = 0;
  int64_t all = 0;
  for (const auto& [s, a] : parts) {
    same += s;
    all += a;
  }
  return all == 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(same) / static_cast<double>(all);
}

}  // namespace nacre
