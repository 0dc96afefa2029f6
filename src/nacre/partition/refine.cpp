// Refines partitions in batches. The vertices of a batch are looked at in parallel; those that want
// to move do so one after the other, each after a second look at the parts of its neighbours. So
// the cut never grows, and the result does not depend on the number of threads. After the first
// round, only vertices with a neighbour that moved are looked at again.
#include "nacre/partition/refine.h"

#include <algorithm>
#include <atomic>

#include "nacre/base/parallel.h"

namespace nacre {
namespace {

constexpr int64_t kBatches = 8;
constexpr int64_t kLeastBatch = 1 << 12;
constexpr int64_t kRefineChunk = 1 << 10;

// Returns whether part `a` with work `x` is less full than part `b` with work `y`, measured by
// their targets.
bool emptier(const Balance& balance, int a, int64_t x, int b, int64_t y) {
  return static_cast<double>(x) * static_cast<double>(balance.target[b]) <
         static_cast<double>(y) * static_cast<double>(balance.target[a]);
}

// Returns the part that v should move to, or the part it is in. A move must make the cut smaller,
// or leave it as it is and make the balance better.
int best_part(const PartDraft& draft, const Connections& connections, int64_t v) {
  const Balance& balance = draft.balance;
  const int own = draft.part[v];
  const int64_t work = draft.work[v];
  if (draft.load[own] - work < balance.low[own]) return own;
  int best = own;
  int64_t most = connections[own];
  for (const uint16_t p : connections.met()) {
    if (p == own || connections[p] < most || draft.load[p] + work > balance.high[p]) continue;
    if (connections[p] == most) {
      const int64_t now = draft.load[best] + (best == own ? 0 : work);
      if (!emptier(balance, p, draft.load[p] + work, best, now)) continue;
    }
    best = p;
    most = connections[p];
  }
  return best;
}

class Refiner {
 public:
  explicit Refiner(PartDraft& draft)
      : draft_(draft),
        active_(draft.view.count, 1),
        next_(draft.view.count, 0),
        connections_(num_threads(), Connections(draft.balance.parts())) {}

  int64_t round() {
    const int64_t count = draft_.view.count;
    const int64_t batch = std::max(kLeastBatch, (count + kBatches - 1) / kBatches);
    int64_t moved = 0;
    for (int64_t begin = 0; begin < count; begin += batch) moved += move_batch(begin, std::min(count, begin + batch));
    active_.swap(next_);
    std::fill(next_.begin(), next_.end(), 0);
    return moved;
  }

 private:
  int64_t move_batch(int64_t begin, int64_t end) {
    std::vector<std::vector<NodeId>> wanting((end - begin + kRefineChunk - 1) / kRefineChunk);
    parallel_for(end - begin, kRefineChunk, [&](int64_t b, int64_t e) {
      Connections& connections = connections_[thread_index()];
      for (int64_t v = begin + b; v < begin + e; ++v) {
        if (active_[v] == 0) continue;
        connections.count(draft_.view, draft_.part, v);
        if (best_part(draft_, connections, v) != draft_.part[v])
          wanting[b / kRefineChunk].push_back(static_cast<NodeId>(v));
      }
    });
    int64_t moved = 0;
    for (const std::vector<NodeId>& chunk : wanting) {
      for (const NodeId v : chunk) moved += move(v);
    }
    return moved;
  }

  bool move(NodeId v) {
    connections_[0].count(draft_.view, draft_.part, v);
    const int from = draft_.part[v], to = best_part(draft_, connections_[0], v);
    if (from == to) return false;
    draft_.load[from] -= draft_.work[v];
    draft_.load[to] += draft_.work[v];
    draft_.part[v] = static_cast<uint16_t>(to);
    next_[v] = 1;
    draft_.view.each(v, [&](NodeId u, uint32_t) { next_[u] = 1; });
    return true;
  }

  PartDraft& draft_;
  std::vector<uint8_t> active_;
  std::vector<uint8_t> next_;
  std::vector<Connections> connections_;
};

}  // namespace

void refine(PartDraft& draft, int rounds) {
  Refiner refiner(draft);
  for (int i = 0; i < rounds; ++i) {
    if (refiner.round() <= draft.view.count / 10'000) return;
  }
}

int64_t cut_weight(const UndirectedView& view, const uint16_t* part) {
  std::atomic<int64_t> twice{0};
  parallel_for(view.count, kRefineChunk, [&](int64_t b, int64_t e) {
    int64_t sum = 0;
    for (int64_t v = b; v < e; ++v) {
      view.each(v, [&](NodeId u, uint32_t weight) { sum += part[u] == part[v] ? 0 : weight; });
    }
    twice += sum;
  });
  return twice / 2;
}

}  // namespace nacre
