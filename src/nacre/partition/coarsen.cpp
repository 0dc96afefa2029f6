// Finds clusters by label propagation in batches. All vertices of a batch choose a cluster in
// parallel, by the clusters as they were before the batch. Then they move one after the other,
// where the chosen cluster still has room. The borders of batches depend on the graph alone, so the
// result does, too.
#include "nacre/partition/coarsen.h"

#include <algorithm>
#include <utility>

#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"
#include "nacre/graph/radix.h"
#include "nacre/partition/ratings.h"

namespace nacre {
namespace {

constexpr NodeId kNone = 0xFFFFFFFF;
constexpr int64_t kBatches = 32;
constexpr int64_t kLeastBatch = 1 << 12;
constexpr int64_t kCoarsenChunk = 1 << 9;

class Clustering {
 public:
  Clustering(const UndirectedView& view, const int64_t* work, const ClusterOptions& options)
      : view_(view), work_(work), options_(options), label_(view.count), load_(view.count), ratings_(num_threads()) {
    for (int64_t v = 0; v < view.count; ++v) {
      label_[v] = static_cast<NodeId>(v);
      load_[v] = work[v];
    }
  }

  Clusters run() {
    for (int round = 0; round < options_.rounds; ++round) {
      if (propagate(round) < view_.count / 100) break;
    }
    join_lonely();
    return numbered();
  }

 private:
  // Lets every vertex choose a cluster once, and moves it there. Returns the number of vertices
  // that moved.
  int64_t propagate(int round) {
    const int64_t batch = std::max(kLeastBatch, (view_.count + kBatches - 1) / kBatches);
    std::vector<NodeId> chosen(std::min(batch, view_.count));
    int64_t moved = 0;
    for (int64_t begin = 0; begin < view_.count; begin += batch) {
      const int64_t size = std::min(batch, view_.count - begin);
      parallel_for(size, kCoarsenChunk, [&](int64_t b, int64_t e) {
        Ratings& ratings = ratings_[thread_index()];
        for (int64_t i = b; i < e; ++i) chosen[i] = choose(begin + i, round, ratings);
      });
      for (int64_t i = 0; i < size; ++i) moved += move(begin + i, chosen[i]);
    }
    return moved;
  }

  bool fits(int64_t v, NodeId cluster) const { return load_[cluster] + work_[v] <= options_.most_work; }

  // Returns the cluster with the most edges to v among those with room for v. If several clusters
  // have as many, v stays in its own cluster if that is one of them; otherwise a hash of the
  // cluster decides.
  NodeId choose(int64_t v, int round, Ratings& ratings) const {
    const NodeId own = label_[v];
    const int64_t entries = view_.entries(v);
    if (entries == 0) return own;
    ratings.reserve(entries);
    view_.each(v, [&](NodeId u, uint32_t weight) { ratings.add(label_[u], weight); });
    const uint64_t key = mix_key(options_.seed + static_cast<uint64_t>(round), static_cast<uint64_t>(v));
    NodeId best = own;
    uint64_t most = 0, best_hash = 0;
    ratings.each([&](NodeId cluster, uint64_t weight) {
      if (weight < most || (cluster != own && !fits(v, cluster))) return;
      const uint64_t hash = cluster == own ? ~uint64_t{0} : mix_key(key, cluster) >> 1;
      if (weight > most || hash > best_hash) {
        best = cluster;
        most = weight;
        best_hash = hash;
      }
    });
    ratings.clear();
    return best;
  }

  bool move(int64_t v, NodeId to) {
    const NodeId from = label_[v];
    // v does not move to a cluster that all its vertices have left. Otherwise, two neighbours that
    // choose each other's cluster would only swap.
    if (to == from || load_[to] == 0 || !fits(v, to)) return false;
    load_[from] -= work_[v];
    load_[to] += work_[v];
    label_[v] = to;
    return true;
  }

  // Joins vertices that are still alone in their clusters: those whose favourite cluster is full,
  // and those without neighbours. Vertices with the same favourite become clusters. Without this
  // step, the neighbours of a hub would never become fewer.
  void join_lonely() {
    Buffer<NodeId> favourite(view_.count);
    parallel_for(view_.count, kCoarsenChunk, [&](int64_t b, int64_t e) {
      Ratings& ratings = ratings_[thread_index()];
      for (int64_t v = b; v < e; ++v) favourite[v] = favourite_of(v, ratings);
    });
    std::vector<NodeId> open(view_.count + 1, kNone);  // for each favourite: a cluster with room
    for (int64_t v = 0; v < view_.count; ++v) {
      if (favourite[v] == kNone) continue;
      NodeId& cluster = open[favourite[v]];
      if (cluster != kNone && cluster != label_[v] && move(v, cluster)) continue;
      cluster = label_[v];
    }
  }

  // Returns the favourite of v if v is alone in its own cluster: the cluster with the most edges to
  // v, full or not, or view_.count if v has no neighbours. Returns kNone if v is not alone.
  NodeId favourite_of(int64_t v, Ratings& ratings) const {
    if (label_[v] != v || load_[v] != work_[v]) return kNone;
    if (view_.entries(v) == 0) return static_cast<NodeId>(view_.count);
    ratings.reserve(view_.entries(v));
    view_.each(v, [&](NodeId u, uint32_t weight) { ratings.add(label_[u], weight); });
    NodeId best = static_cast<NodeId>(view_.count);
    uint64_t most = 0;
    ratings.each([&](NodeId cluster, uint64_t weight) {
      if (weight > most || (weight == most && cluster < best)) {
        best = cluster;
        most = weight;
      }
    });
    ratings.clear();
    return best;
  }

  Clusters numbered() {
    std::vector<NodeId> number(view_.count, kNone);
    Clusters clusters{std::move(label_), 0};
    for (int64_t v = 0; v < view_.count; ++v) {
      NodeId& own = number[clusters.of[v]];
      if (own == kNone) own = static_cast<NodeId>(clusters.count++);
      clusters.of[v] = own;
    }
    return clusters;
  }

  const UndirectedView& view_;
  const int64_t* work_;
  ClusterOptions options_;
  Buffer<NodeId> label_;
  Buffer<int64_t> load_;  // work of each cluster
  std::vector<Ratings> ratings_;
};

// Holds the adjacency lists of consecutive vertices of the coarse graph, one after another.
struct Rows {
  std::vector<NodeId> adjacent;
  std::vector<uint32_t> weight;
};

}  // namespace

Clusters find_clusters(const UndirectedView& view, const int64_t* work, const ClusterOptions& options) {
  return Clustering(view, work, options).run();
}

Clusters single_clusters(int64_t count) {
  Clusters clusters{Buffer<NodeId>(count), count};
  for (int64_t v = 0; v < count; ++v) clusters.of[v] = static_cast<NodeId>(v);
  return clusters;
}

Coarse contract(const UndirectedView& view, const int64_t* work, const Clusters& clusters) {
  const int64_t count = clusters.count;
  const GroupedBy members = group_stable(clusters.of.data(), view.count, count);
  Coarse coarse;
  coarse.work = Buffer<int64_t>(count);
  coarse.row_ptr = Buffer<int64_t>(count + 1);
  coarse.row_ptr[0] = 0;
  std::vector<Rows> rows((count + kCoarsenChunk - 1) / kCoarsenChunk);
  std::vector<Ratings> all(num_threads());
  parallel_for(count, kCoarsenChunk, [&](int64_t b, int64_t e) {
    Ratings& ratings = all[thread_index()];
    Rows& out = rows[b / kCoarsenChunk];
    for (int64_t c = b; c < e; ++c) {
      int64_t entries = 0, sum = 0;
      for (int64_t i = members.offsets[c]; i < members.offsets[c + 1]; ++i) {
        entries += view.entries(members.order[i]);
        sum += work[members.order[i]];
      }
      ratings.reserve(std::min(entries, count));
      for (int64_t i = members.offsets[c]; i < members.offsets[c + 1]; ++i) {
        view.each(members.order[i], [&](NodeId u, uint32_t weight) {
          if (clusters.of[u] != c) ratings.add(clusters.of[u], weight);
        });
      }
      coarse.work[c] = sum;
      coarse.row_ptr[c + 1] = ratings.size();
      ratings.each([&](NodeId other, uint64_t weight) {
        out.adjacent.push_back(other);
        out.weight.push_back(static_cast<uint32_t>(std::min<uint64_t>(weight, 0xFFFFFFFF)));
      });
      ratings.clear();
    }
    out.adjacent.shrink_to_fit();
    out.weight.shrink_to_fit();
  });
  for (int64_t c = 0; c < count; ++c) coarse.row_ptr[c + 1] += coarse.row_ptr[c];
  coarse.adjacent = Buffer<NodeId>(coarse.row_ptr[count]);
  coarse.weight = Buffer<uint32_t>(coarse.row_ptr[count]);
  parallel_tasks(static_cast<int64_t>(rows.size()), [&](int64_t r) {
    Rows out = std::exchange(rows[r], {});
    std::copy(out.adjacent.begin(), out.adjacent.end(), coarse.adjacent.data() + coarse.row_ptr[r * kCoarsenChunk]);
    std::copy(out.weight.begin(), out.weight.end(), coarse.weight.data() + coarse.row_ptr[r * kCoarsenChunk]);
  });
  return coarse;
}

}  // namespace nacre
