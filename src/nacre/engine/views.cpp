#include "nacre/engine/views.h"

#include <fmt/format.h>

#include <set>

#include "nacre/base/parallel.h"
#include "nacre/base/trace.h"
#include "nacre/gtask/sort_orders.h"

namespace nacre {

// Returns the entry of the parent if it has one; otherwise an entry of this object. A view that a
// parent holds is never made again.
template <class Map>
typename Map::mapped_type& GraphViews::entry(Map GraphViews::*map, const typename Map::key_type& key) {
  if (parent_) {
    const Map& known = parent_.get()->*map;
    // A view that was found is complete, and callers only fill empty ones, so the cast is safe.
    if (const auto found = known.find(key); found != known.end())
      return const_cast<typename Map::mapped_type&>(found->second);
  }
  return (this->*map)[key];
}

std::shared_ptr<const cpu::RowView> GraphViews::rows(const Graph& graph, Direction direction, bool split_outliers,
                                                     RowSpan range) {
  std::string form = fmt::format("{} {}", static_cast<int>(direction), split_outliers);
  if (!range.all()) form += fmt::format(" {} {}", range.begin, range.end);
  auto& view = this->entry(&GraphViews::rows_, key(graph, form));
  if (!view) {
    const TraceSpan span("prepare", "rows of edges");
    view = cpu::make_row_view(graph, direction, split_outliers, range);
  }
  return view;
}

std::shared_ptr<const cpu::RowView> GraphViews::uncut_rows(const Graph& graph, Direction direction) {
  auto& view = this->entry(&GraphViews::rows_, key(graph, fmt::format("{} uncut", static_cast<int>(direction))));
  if (!view) {
    const TraceSpan span("prepare", "rows of edges");
    view = cpu::make_uncut_view(graph, direction);
  }
  return view;
}

std::shared_ptr<const cpu::TypedView> GraphViews::typed(const Graph& graph, Direction direction) {
  auto& view = this->entry(&GraphViews::typed_, key(graph, direction));
  if (!view) {
    const TraceSpan span("prepare", "pairs of row and type");
    view = cpu::make_typed_view(rows(graph, direction));
  }
  return view;
}

std::shared_ptr<const cpu::LstmView> GraphViews::lstm(const Graph& graph, const cpu::LstmOptions& options) {
  auto& view = this->entry(
      &GraphViews::lstm_,
      key(graph, fmt::format("{} {} {} {}", options.batch_rows, options.on_edges, options.pad, options.one_pass)));
  if (!view) {
    const TraceSpan span("prepare", "sequences by length");
    view = cpu::make_lstm_view(rows(graph, Direction::by_dst), options);
  }
  return view;
}

std::shared_ptr<const cpu::RowsByType> GraphViews::by_type(const Graph& graph, SpaceKind space) {
  auto& view = this->entry(&GraphViews::by_type_, key(graph, std::to_string(static_cast<int>(space))));
  if (!view) {
    const TraceSpan span("prepare", "rows by type");
    view = space == SpaceKind::edge ? cpu::edges_by_type(graph)
                                    : cpu::pairs_by_type(graph, space == SpaceKind::pair_src ? End::src : End::dst);
  }
  return view;
}

const NodeId* GraphViews::pair_columns(const Graph& graph, Direction direction, End end) {
  const Array<EdgeId>& of_edge = graph.pairs(end).of_edge;
  const auto view = rows(graph, direction);
  if (view->edge_id == nullptr) return of_edge.data();
  Array<NodeId>& kept = this->entry(
      &GraphViews::pair_columns_, key(graph, fmt::format("{} {}", static_cast<int>(direction), static_cast<int>(end))));
  if (kept.empty()) {
    Buffer<NodeId> columns(graph.num_edges());
    parallel_for(graph.num_edges(), 1 << 16, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) columns[i] = of_edge[view->edge_id[i]];
    });
    kept = std::move(columns).freeze();
  }
  return kept.data();
}

std::shared_ptr<const GTasks> GraphViews::tasks(const Graph& graph, const PartitionTable& table, bool on_device) {
  auto& view = this->entry(&GraphViews::tasks_, key(graph, table.text()));
  if (!view) {
    const TraceSpan span("prepare", "gTasks");
    if (on_device && partition_) return view = std::make_shared<GTasks>(partition_(graph, table));
    auto& orders = this->entry(&GraphViews::orders_, graph_key(graph));
    if (!orders) orders = make_sort_orders(graph);
    view = std::make_shared<GTasks>(partition(graph, table, orders.get()));
  }
  return view;
}

std::shared_ptr<const cpu::GTaskView> GraphViews::gtasks(const Graph& graph, const PartitionTable& table,
                                                         const cpu::GTaskOptions& options) {
  auto& view = this->entry(&GraphViews::gtasks_,
                           key(graph, fmt::format("{} {} {} {} {}", table.text(), static_cast<int>(options.direction),
                                                  options.width, options.split_outliers, options.by_type)));
  if (!view) view = cpu::make_gtask_view(tasks(graph, table), options);
  return view;
}

// Drops the views of a graph that will be freed. Views are found by the addresses of a graph's
// arrays, which another graph may have later.
void GraphViews::forget(const Graph& graph) {
  const GraphKey gone = graph_key(graph);
  const auto erase = [&](auto& forms) {
    std::erase_if(forms, [&](const auto& form) { return std::get<0>(form.first) == gone; });
  };
  erase(rows_);
  erase(typed_);
  erase(lstm_);
  erase(by_type_);
  erase(pair_columns_);
  erase(tasks_);
  erase(gtasks_);
  orders_.erase(gone);
}

int64_t GraphViews::bytes() const {
  int64_t sum = 0;
  std::set<const void*> by_src;
  for (const auto& [k, view] : rows_) {
    sum += static_cast<int64_t>(view->chunks.size() * sizeof(cpu::RowChunk));
    if (view->direction == Direction::by_src && by_src.insert(view->row_ptr).second) sum += view->graph.out_bytes();
  }
  std::set<std::pair<const void*, End>> pairs;
  for (const auto& [k, view] : rows_) {
    for (const End end : {End::src, End::dst}) {
      if (!view->graph.has_pairs(end) || !pairs.emplace(view->graph.row_ptr().data(), end).second) continue;
      sum += view->graph.pairs(end).bytes();
    }
  }
  for (const auto& [k, view] : typed_) sum += view->bytes();
  for (const auto& [k, view] : lstm_) sum += view->bytes();
  for (const auto& [k, columns] : pair_columns_) sum += columns.size() * static_cast<int64_t>(sizeof(NodeId));
  for (const auto& [k, tasks] : tasks_) sum += tasks->bytes();
  for (const auto& [k, orders] : orders_) sum += orders->bytes();
  for (const auto& [k, view] : gtasks_) sum += cpu::gtask_view_bytes(*view);
  return sum;
}

}  // namespace nacre
