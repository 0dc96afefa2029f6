// Several counters go over the gTasks in one pass, each over the same number of edges. A counter
// has a stamp for each value (the last gTask that had it) and, for each vertex, the set of types
// that the current gTask has met with it, as the bits of a word. The counters add up whole numbers,
// so the result does not depend on which counter runs first.
#include "nacre/gtask/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "nacre/base/parallel.h"
#include "nacre/gtask/sort_orders.h"

namespace nacre {
namespace {

// The number of types that fit a word. If a graph has more, its pairs are sorted.
constexpr int kWordTypes = 64;
constexpr int64_t kMaxCounters = 16;
constexpr int64_t kOverfill = 4;
constexpr int64_t kOverfillEdges = 64;
constexpr uint32_t kFrequent = 8;

enum Counted : uint8_t { edge_id, src_id, dst_id, edge_type, src_degree, dst_degree, src_pair, dst_pair, kCounted };
using Distinct = std::array<int64_t, kCounted>;  // numbers of distinct values of one gTask

struct Tally {
  int64_t total = 0;
  int64_t most = 0;
  std::array<int64_t, 64> histogram = {};

  void add(int64_t distinct) {
    total += distinct;
    most = std::max(most, distinct);
    ++histogram[static_cast<size_t>(std::bit_width(static_cast<uint64_t>(distinct))) - 1];
  }
  void add(const Tally& other) {
    total += other.total;
    most = std::max(most, other.most);
    for (size_t b = 0; b < histogram.size(); ++b) histogram[b] += other.histogram[b];
  }
};
using Tallies = std::array<Tally, kCounted>;

// Counts the values at one end of the edges, within a counter.
class EndCounter {
 public:
  EndCounter(const std::vector<NodeId>& degree, bool pairs) : degree_(degree), seen_(degree.size(), 0) {
    const NodeId most = degree.empty() ? 0 : *std::max_element(degree.begin(), degree.end());
    degree_seen_.assign(size_t{most} + 1, 0);
    if (pairs) types_.assign(degree.size(), 0);
  }

  // Returns whether the gTask had not met v before.
  bool meet(NodeId v, uint32_t task, int64_t& ids, int64_t& degrees) {
    if (seen_[v] == task) return false;
    seen_[v] = task;
    ++ids;
    uint32_t& last = degree_seen_[degree_[v]];
    degrees += last != task;
    last = task;
    if (!types_.empty()) types_[v] = 0;
    return true;
  }

  void meet_type(NodeId v, int type, int64_t& pairs) {
    const uint64_t bit = uint64_t{1} << type;
    pairs += (types_[v] & bit) == 0;
    types_[v] |= bit;
  }

 private:
  const std::vector<NodeId>& degree_;
  std::vector<uint32_t> seen_;
  std::vector<uint32_t> degree_seen_;
  std::vector<uint64_t> types_;  // only valid for vertices seen in the current gTask
};

// Holds what is computed once for all counters.
struct Finder {
  explicit Finder(const GTasks& g)
      : tasks(g), src_degree_of(degrees_at(g.graph, Location::src)), dst_degree_of(degrees_at(g.graph, Location::dst)) {
    end = g.table.free(Location::src, Attribute::id) ? Location::dst : Location::src;
    if (!g.table.owns(end)) tasks_of.assign((end == Location::src ? src_degree_of : dst_degree_of).size(), 0);
    outlier.assign(g.num_tasks(), Outlier::none);
  }

  const GTasks& tasks;
  std::vector<NodeId> src_degree_of, dst_degree_of;
  Location end;  // the end whose values may be frequent
  // The number of gTasks that have each value. If this is empty, each value is in one gTask.
  std::vector<uint32_t> tasks_of;
  std::vector<Outlier> outlier;
};

class Counter {
 public:
  Counter(Finder& finder, Tallies& tallies)
      : f_(finder),
        tallies_(tallies),
        words_(finder.tasks.graph.typed() && finder.tasks.graph.num_edge_types() <= kWordTypes),
        src_(finder.src_degree_of, words_),
        dst_(finder.dst_degree_of, words_),
        type_seen_(static_cast<size_t>(finder.tasks.graph.num_edge_types()), 0) {}

  void count(int64_t t) {
    const GTasks& g = f_.tasks;
    Distinct n = {};
    ++task_;
    for (int64_t i = g.task_ptr[t]; i < g.task_ptr[t + 1]; ++i) meet(i, n);
    n[edge_id] = g.task_ptr[t + 1] - g.task_ptr[t];
    if (n[edge_type] == 1) {
      n[src_pair] = n[src_id];
      n[dst_pair] = n[dst_id];
    } else if (!words_) {
      n[src_pair] = sorted_pairs(t, g.src);
      n[dst_pair] = sorted_pairs(t, g.dst);
    }
    for (size_t a = 0; a < kCounted; ++a) tallies_[a].add(n[a]);
    f_.outlier[t] = judge(n);
  }

 private:
  void meet(int64_t i, Distinct& n) {
    const GTasks& g = f_.tasks;
    const NodeId s = g.src[i];
    const NodeId d = g.dst[i];
    const bool new_src = src_.meet(s, task_, n[src_id], n[src_degree]);
    const bool new_dst = dst_.meet(d, task_, n[dst_id], n[dst_degree]);
    const bool at_src = f_.end == Location::src;
    if ((at_src ? new_src : new_dst) && !f_.tasks_of.empty()) {
      std::atomic_ref<uint32_t>(f_.tasks_of[at_src ? s : d]).fetch_add(1, std::memory_order_relaxed);
    }
    const int type = g.type_at(i);
    uint32_t& last = type_seen_[type];
    n[edge_type] += last != task_;
    last = task_;
    if (words_) {
      src_.meet_type(s, type, n[src_pair]);
      dst_.meet_type(d, type, n[dst_pair]);
    }
  }

  int64_t sorted_pairs(int64_t t, const Array<NodeId>& vertex) {
    const GTasks& g = f_.tasks;
    pairs_.clear();
    for (int64_t i = g.task_ptr[t]; i < g.task_ptr[t + 1]; ++i) {
      pairs_.push_back(static_cast<uint64_t>(g.type_at(i)) << 32 | vertex[i]);
    }
    std::sort(pairs_.begin(), pairs_.end());
    return std::unique(pairs_.begin(), pairs_.end()) - pairs_.begin();
  }

  Outlier judge(const Distinct& n) const {
    const GTasks& g = f_.tasks;
    const bool bounded = g.table.at(Location::edge, Attribute::id).kind == Restriction::exact;
    if (!bounded && n[edge_id] >= kOverfillEdges && n[edge_id] * g.num_tasks() > kOverfill * g.num_edges()) {
      return Outlier::overfill;
    }
    const auto thin = [&](Location location, Attribute attribute, int64_t distinct) {
      const Restriction& entry = g.table.at(location, attribute);
      return entry.kind == Restriction::exact && distinct < entry.k - distinct;
    };
    const bool underfill =
        thin(Location::src, Attribute::id, n[src_id]) || thin(Location::dst, Attribute::id, n[dst_id]) ||
        thin(Location::edge, Attribute::id, n[edge_id]) || thin(Location::edge, Attribute::type, n[edge_type]) ||
        thin(Location::src, Attribute::degree, n[src_degree]) || thin(Location::dst, Attribute::degree, n[dst_degree]);
    return underfill ? Outlier::underfill : Outlier::none;
  }

  Finder& f_;
  Tallies& tallies_;
  bool words_;  // whether pairs are counted with words
  EndCounter src_, dst_;
  std::vector<uint32_t> type_seen_;
  std::vector<uint64_t> pairs_;  // memory that is used again for each gTask
  uint32_t task_ = 0;            // number of gTasks counted, the current one included
};

// Counters need memory for every vertex, so a graph with few edges per vertex gets few counters.
int64_t num_counters(const Graph& graph) {
  const int64_t vertices = graph.num_src() + graph.num_dst() + 1;
  return std::clamp<int64_t>(graph.num_edges() / (4 * vertices), 1, kMaxCounters);
}

Tallies count_all(Finder& finder) {
  const GTasks& g = finder.tasks;
  const int64_t counters = num_counters(g.graph);
  std::vector<Tallies> parts(counters);
  const auto first_task = [&](int64_t counter) {
    return std::lower_bound(g.task_ptr.begin(), g.task_ptr.end(), g.num_edges() * counter / counters) -
           g.task_ptr.begin();
  };
  parallel_tasks(counters, [&](int64_t l) {
    const int64_t from = first_task(l);
    const int64_t to = l + 1 == counters ? g.num_tasks() : first_task(l + 1);
    if (from >= to) return;
    Counter counter(finder, parts[l]);
    for (int64_t t = from; t < to; ++t) counter.count(t);
  });
  Tallies sum;
  for (const Tallies& part : parts) {
    for (size_t a = 0; a < kCounted; ++a) sum[a].add(part[a]);
  }
  return sum;
}

void find_frequent(Finder& finder) {
  if (finder.tasks_of.empty()) return;
  const GTasks& g = finder.tasks;
  const Array<NodeId>& vertex = finder.end == Location::src ? g.src : g.dst;
  parallel_for(g.num_tasks(), 256, [&](int64_t b, int64_t e) {
    for (int64_t t = b; t < e; ++t) {
      Outlier& outlier = finder.outlier[t];
      if (outlier != Outlier::none) continue;
      int64_t shared = 0;
      for (int64_t i = g.task_ptr[t]; i < g.task_ptr[t + 1]; ++i) shared += finder.tasks_of[vertex[i]] > kFrequent;
      if (2 * shared > g.task_ptr[t + 1] - g.task_ptr[t]) outlier = Outlier::frequent;
    }
  });
}

AttributePattern make_pattern(const Tally& tally, int64_t tasks, int64_t edges) {
  AttributePattern pattern;
  pattern.unique_total = tally.total;
  pattern.unique_max = tally.most;
  if (tasks == 0) return pattern;
  pattern.unique_mean = static_cast<double>(tally.total) / static_cast<double>(tasks);
  pattern.duplication = static_cast<double>(edges) / static_cast<double>(tally.total);
  const auto size = std::bit_width(static_cast<uint64_t>(tally.most));
  pattern.histogram.assign(tally.histogram.begin(), tally.histogram.begin() + size);
  return pattern;
}

void sum_outliers(const Finder& finder, Patterns& p) {
  for (int64_t t = 0; t < p.tasks; ++t) {
    const int64_t edges = finder.tasks.task_ptr[t + 1] - finder.tasks.task_ptr[t];
    const auto add = [edges](int64_t& tasks, int64_t& sum) {
      ++tasks;
      sum += edges;
    };
    switch (finder.outlier[t]) {
      case Outlier::none:
        break;
      case Outlier::underfill:
        add(p.underfill, p.underfill_edges);
        break;
      case Outlier::overfill:
        add(p.overfill, p.overfill_edges);
        break;
      case Outlier::frequent:
        add(p.frequent, p.frequent_edges);
        break;
    }
  }
}

}  // namespace

PatternReport find_patterns(const GTasks& tasks) {
  Finder finder(tasks);
  const Tallies sum = count_all(finder);
  find_frequent(finder);
  Patterns p;
  p.tasks = tasks.num_tasks();
  p.edges = tasks.num_edges();
  const auto pattern = [&](Counted which) { return make_pattern(sum[which], p.tasks, p.edges); };
  p.edge_id = pattern(edge_id);
  p.src_id = pattern(src_id);
  p.dst_id = pattern(dst_id);
  p.edge_type = pattern(edge_type);
  p.src_degree = pattern(src_degree);
  p.dst_degree = pattern(dst_degree);
  p.src_type_pair = pattern(src_pair);
  p.dst_type_pair = pattern(dst_pair);
  if (p.tasks > 0) {
    p.volume_change = static_cast<double>(p.dst_id.unique_total) / static_cast<double>(p.src_id.unique_total);
  }
  sum_outliers(finder, p);
  return {std::move(p), std::move(finder.outlier)};
}

std::string pattern_text(const Patterns& p) {
  std::string text = fmt::format("{} gTasks of {} edges, {:.1f} each on average, {} at most\n", p.tasks, p.edges,
                                 p.edge_id.unique_mean, p.edge_id.unique_max);
  const auto line = [&](const char* name, const AttributePattern& a) {
    text += fmt::format("  {:<16} {:>10.1f} distinct per gTask (at most {}), each used {:.2f} times\n", name,
                        a.unique_mean, a.unique_max, a.duplication);
  };
  line("src-id", p.src_id);
  line("dst-id", p.dst_id);
  line("edge-type", p.edge_type);
  line("src-degree", p.src_degree);
  line("dst-degree", p.dst_degree);
  line("(src, type)", p.src_type_pair);
  line("(dst, type)", p.dst_type_pair);
  text += fmt::format("  volume: {:.3g} rows written for each row read\n", p.volume_change);
  const auto share = [&](int64_t edges) {
    return p.edges == 0 ? 0.0 : 100 * static_cast<double>(edges) / static_cast<double>(p.edges);
  };
  text += fmt::format(
      "  outliers: {} underfill ({:.1f} % of edges), {} overfill ({:.1f} %), {} with frequent values ({:.1f} %)\n",
      p.underfill, share(p.underfill_edges), p.overfill, share(p.overfill_edges), p.frequent, share(p.frequent_edges));
  return text;
}

}  // namespace nacre
