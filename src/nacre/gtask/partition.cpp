// The scan counts distinct values with a stamp for each value: the number of the last gTask that
// had the value. Edges that cannot differ in any counted attribute are taken at once, for example
// the edges of one vertex if only that vertex's attributes are counted.
#include "nacre/gtask/partition.h"

#include <algorithm>
#include <limits>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/gtask/sort_orders.h"

namespace nacre {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// An attribute other than edge-id, which may take `limit` distinct values in a gTask.
struct Watch {
  Location location;
  Attribute attribute;
  int64_t limit;
  std::vector<NodeId> degree;   // degree of each vertex, if degrees are counted
  std::vector<uint32_t> stamp;  // last gTask that had each value
  int64_t seen = 0;             // number of distinct values in the open gTask
  NodeId value = 0;             // value of the current edge
};

Watch make_watch(const Graph& graph, const SortKey& key, int64_t limit) {
  Watch watch{key.location, key.attribute, limit};
  int64_t values = graph.num_edge_types();
  if (key.attribute == Attribute::id) values = key.location == Location::src ? graph.num_src() : graph.num_dst();
  if (key.attribute == Attribute::degree) {
    watch.degree = degrees_at(graph, key.location);
    values = watch.degree.empty() ? 0 : int64_t{*std::max_element(watch.degree.begin(), watch.degree.end())} + 1;
  }
  watch.stamp.assign(values, 0);
  return watch;
}

class Scan {
 public:
  Scan(const Graph& graph, const PartitionTable& table, const EdgeOrder& order) : order_(order) {
    for (const SortKey& key : sort_keys(table)) {
      const Restriction& entry = table.at(key.location, key.attribute);
      if (key.attribute == Attribute::type && !graph.typed()) continue;
      if (entry.kind == Restriction::exact) watches_.push_back(make_watch(graph, key, entry.k));
    }
    const Restriction& edges = table.at(Location::edge, Attribute::id);
    if (edges.kind == Restriction::exact) max_edges_ = edges.k;
    find_runs(graph);
  }

  Array<int64_t> run() {
    const int64_t edges = order_.src.size();
    if (watches_.empty() || edges == 0) return cut_evenly(edges);
    for (int64_t i = 0; i < edges;) {
      const int64_t end = run_end(i);
      load(i);
      if (room_ == 0 || !fits()) open(i);
      stamp();
      while (end - i > room_) {
        i += room_;
        open(i);
        stamp();
      }
      room_ -= end - i;
      i = end;
    }
    task_ptr_.push_back(edges);
    return std::move(task_ptr_);
  }

 private:
  // Sets up runs of edges that can be taken at once. There are runs if all counted attributes
  // belong to one end, and the sort kept the edges of each vertex of that end together.
  void find_runs(const Graph& graph) {
    const auto& keys = order_.keys;
    const auto all_at = [&](Location end) {
      const auto here = [end](const auto& x) { return x.location == end; };
      return std::all_of(watches_.begin(), watches_.end(), here) && std::all_of(keys.begin(), keys.end(), here);
    };
    if (all_at(Location::dst)) {
      row_ptr_ = graph.row_ptr().data();
      row_of_ = order_.dst.data();
    } else if (all_at(Location::src) && !keys.empty() && keys.back() == SortKey{Location::src, Attribute::id}) {
      row_ptr_ = graph.out().row_ptr.data();
      row_of_ = order_.src.data();
    }
  }

  int64_t run_end(int64_t i) const {
    if (row_ptr_ == nullptr) return i + 1;
    const int64_t v = row_of_[i];
    return i + row_ptr_[v + 1] - row_ptr_[v];
  }

  void load(int64_t i) {
    for (Watch& watch : watches_) {
      if (watch.attribute == Attribute::type) {
        watch.value = order_.type[i];
        continue;
      }
      watch.value = watch.location == Location::src ? order_.src[i] : order_.dst[i];
      if (watch.attribute == Attribute::degree) watch.value = watch.degree[watch.value];
    }
  }

  bool fits() const {
    return std::all_of(watches_.begin(), watches_.end(), [this](const Watch& watch) {
      return watch.seen < watch.limit || watch.stamp[watch.value] == task_;
    });
  }

  void stamp() {
    for (Watch& watch : watches_) {
      uint32_t& last = watch.stamp[watch.value];
      watch.seen += last != task_;
      last = task_;
    }
  }

  void open(int64_t i) {
    task_ptr_.push_back(i);
    ++task_;
    room_ = max_edges_;
    for (Watch& watch : watches_) watch.seen = 0;
  }

  Array<int64_t> cut_evenly(int64_t edges) const {
    const int64_t size = std::min(max_edges_, std::max<int64_t>(edges, 1));
    const int64_t tasks = (edges + size - 1) / size;
    Buffer<int64_t> task_ptr(tasks + 1);
    parallel_for(tasks + 1, 1 << 18, [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t) task_ptr[t] = std::min(t * size, edges);
    });
    return std::move(task_ptr).freeze();
  }

  const EdgeOrder& order_;
  std::vector<Watch> watches_;
  int64_t max_edges_ = kUnlimited;
  const int64_t* row_ptr_ = nullptr;  // borders of the runs; null: every edge is a run
  const NodeId* row_of_ = nullptr;

  uint32_t task_ = 0;  // number of the open gTask, from 1
  // The number of edges that the open gTask can still take; 0 before the first gTask.
  int64_t room_ = 0;
  std::vector<int64_t> task_ptr_;
};

}  // namespace

int64_t GTasks::bytes() const {
  const bool in_order = edge.empty();
  const bool out_order = graph.has_out() && edge.data() == graph.out().edge_id.data();
  const int64_t own_edge = out_order ? 0 : edge.size();
  const int64_t own_src = in_order ? 0 : src.size();
  const int64_t own_dst = in_order || out_order ? 0 : dst.size();
  const int64_t own_type = in_order ? 0 : type.size();
  return task_ptr.size() * 8 + (own_edge + own_src + own_dst) * 4 + own_type * 2;
}

GTasks partition(const Graph& graph, const PartitionTable& table, SortOrders* orders) {
  if (graph.num_edges() > INT64_C(0xFFFFFFFF)) {
    throw UserError("graph", "more than 4,294,967,295 edges cannot be partitioned as one graph",
                    "train with --mode minibatch");
  }
  NACRE_CHECK(orders == nullptr || orders->graph().col_idx().data() == graph.col_idx().data(),
              "these sort orders belong to another graph");
  SortOrders mine(graph);
  const EdgeOrder order = (orders ? orders : &mine)->order(table);
  Array<int64_t> task_ptr = Scan(graph, table, order).run();
  return {graph, table, std::move(task_ptr), order.edge, order.src, order.dst, order.type};
}

}  // namespace nacre
