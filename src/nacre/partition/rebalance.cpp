#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "nacre/base/parallel.h"
#include "nacre/partition/refine.h"

namespace nacre {
namespace {

constexpr int kMostTurns = 24;
constexpr int64_t kRebalanceChunk = 1 << 12;
constexpr int kBuckets = 128;

// Describes a vertex that could move to part `to`. Bucket 0 holds the moves that cost nothing, and
// every further bucket holds more expensive ones.
struct Candidate {
  NodeId vertex;
  uint16_t to;
  uint8_t bucket;
};

// Says how much work each part gives away, and how much it takes, in one turn.
struct Flow {
  std::vector<int64_t> give;
  std::vector<int64_t> room;
};

// Returns how much the parts give and take. If there are parts above their upper bound, these give
// to parts below their target. If there are none, parts above their target give to those below
// their lower bound.
Flow flow_of(const PartDraft& draft) {
  const Balance& balance = draft.balance;
  const int parts = balance.parts();
  Flow flow{std::vector<int64_t>(parts, 0), std::vector<int64_t>(parts, 0)};
  bool over = false, under = false;
  for (int p = 0; p < parts; ++p) {
    over = over || draft.load[p] > balance.high[p];
    under = under || draft.load[p] < balance.low[p];
  }
  for (int p = 0; (over || under) && p < parts; ++p) {
    const int64_t surplus = draft.load[p] - balance.target[p];
    if (over ? draft.load[p] > balance.high[p] : surplus > 0) flow.give[p] = surplus;
    if (over ? surplus < 0 : draft.load[p] < balance.low[p]) flow.room[p] = -surplus;
  }
  return flow;
}

uint8_t bucket_of(double loss) {
  if (loss <= 0) return 0;
  return static_cast<uint8_t>(std::min<double>(kBuckets - 1, 1 + 4 * std::log2(1 + loss)));
}

class Rebalancer {
 public:
  explicit Rebalancer(PartDraft& draft)
      : draft_(draft), connections_(num_threads(), Connections(draft.balance.parts())) {
    const auto total = static_cast<double>(std::accumulate(draft.load.begin(), draft.load.end(), int64_t{0}));
    mean_ = std::max(1.0, total / static_cast<double>(std::max<int64_t>(1, draft.view.count)));
  }

  // Moves vertices once from parts that give to parts that take. Returns whether any vertex moved.
  bool turn() {
    Flow flow = flow_of(draft_);
    const auto most_room =
        static_cast<uint16_t>(std::max_element(flow.room.begin(), flow.room.end()) - flow.room.begin());
    if (flow.room[most_room] == 0) return false;
    bool moved = false;
    for (const Candidate& c : candidates(flow, most_room)) {
      const int64_t work = draft_.work[c.vertex];
      const int from = draft_.part[c.vertex];
      if (work > flow.give[from]) continue;
      const uint16_t to = work <= flow.room[c.to] ? c.to : most_room;
      if (work > flow.room[to]) continue;
      flow.give[from] -= work;
      flow.room[to] -= work;
      draft_.load[from] -= work;
      draft_.load[to] += work;
      draft_.part[c.vertex] = to;
      moved = true;
    }
    return moved;
  }

 private:
  // Returns the possible moves of vertices of parts that give, the cheapest moves first.
  std::vector<Candidate> candidates(const Flow& flow, uint16_t most_room) {
    std::vector<std::vector<Candidate>> found((draft_.view.count + kRebalanceChunk - 1) / kRebalanceChunk);
    parallel_for(draft_.view.count, kRebalanceChunk, [&](int64_t b, int64_t e) {
      Connections& connections = connections_[thread_index()];
      for (int64_t v = b; v < e; ++v) {
        const int own = draft_.part[v];
        if (draft_.work[v] == 0 || draft_.work[v] > flow.give[own]) continue;
        connections.count(draft_.view, draft_.part, v);
        uint16_t best = most_room;
        for (const uint16_t p : connections.met()) {
          if (flow.room[p] > 0 && connections[p] > connections[best]) best = p;
        }
        // Moving a heavy vertex helps the balance more than moving a light one, so the loss is
        // divided by the work of the vertex.
        const double loss =
            static_cast<double>(connections[own] - connections[best]) * mean_ / static_cast<double>(draft_.work[v]);
        found[b / kRebalanceChunk].push_back({static_cast<NodeId>(v), best, bucket_of(loss)});
      }
    });
    return sorted(found);
  }

  static std::vector<Candidate> sorted(const std::vector<std::vector<Candidate>>& found) {
    std::array<int64_t, kBuckets + 1> next{};
    for (const auto& chunk : found) {
      for (const Candidate& c : chunk) ++next[c.bucket + 1];
    }
    std::partial_sum(next.begin(), next.end(), next.begin());
    std::vector<Candidate> all(next[kBuckets]);
    for (const auto& chunk : found) {
      for (const Candidate& c : chunk) all[next[c.bucket]++] = c;
    }
    return all;
  }

  PartDraft& draft_;
  std::vector<Connections> connections_;
  double mean_ = 1;  // mean work of a vertex
};

}  // namespace

void rebalance(PartDraft& draft) {
  Rebalancer rebalancer(draft);
  for (int i = 0; i < kMostTurns && rebalancer.turn(); ++i) {
  }
}

}  // namespace nacre
