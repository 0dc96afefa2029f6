#include "nacre/engine/views.h"

#include <fmt/format.h>

#include <set>

#include "nacre/base/parallel.h"
#include "nacre/base/trace.h"
#include "nacre/gtask/sort_orders.h"

namespace nacre {

// Of the parent where it has one, of one's own otherwise; what a parent holds is never made again.
template <class Map>
typename Map::mapped_type& GraphViews::slot(Map GraphViews::*map, const typename Map::key_type& key) {
  if (parent_) {
    const Map& known = parent_.get()->*map;
    // A slot that was found is full, and callers fill empty ones only.
    if (const auto found = known.find(key); found != known.end())
      return const_cast<typename Map::mapped_type&>(found->second);
  }
  return (this->*map)[key];
}

std::shared_ptr<const cpu::RowView> GraphViews::rows(const Graph& graph, Direction direction, bool split_outliers) {
  auto& slot =
      this->slot(&GraphViews::rows_, key(graph, fmt::format("{} {}", static_cast<int>(direction), split_outliers)));
  if (!slot) {
    const TraceSpan span("prepare", "rows of edges");
    slot = cpu::make_row_view(graph, direction, split_outliers);
  }
  return slot;
}

std::shared_ptr<const cpu::RowView> GraphViews::uncut_rows(const Graph& graph, Direction direction) {
  auto& slot = this->slot(&GraphViews::rows_, key(graph, fmt::format("{} uncut", static_cast<int>(direction))));
  if (!slot) {
    const TraceSpan span("prepare", "rows of edges");
    slot = cpu::make_uncut_view(graph, direction);
  }
  return slot;
}

std::shared_ptr<const cpu::TypedView> GraphViews::typed(const Graph& graph, Direction direction) {
  auto& slot = this->slot(&GraphViews::typed_, key(graph, direction));
  if (!slot) {
    const TraceSpan span("prepare", "pairs of row and type");
    slot = cpu::make_typed_view(rows(graph, direction));
  }
  return slot;
}

std::shared_ptr<const cpu::LstmView> GraphViews::lstm(const Graph& graph, const cpu::LstmOptions& options) {
  auto& slot = this->slot(&GraphViews::lstm_, key(graph, fmt::format("{} {} {} {}", options.batch_rows,
                                                                     options.on_edges, options.pad, options.one_pass)));
  if (!slot) {
    const TraceSpan span("prepare", "sequences by length");
    slot = cpu::make_lstm_view(rows(graph, Direction::by_dst), options);
  }
  return slot;
}

std::shared_ptr<const cpu::RowsByType> GraphViews::by_type(const Graph& graph, SpaceKind space) {
  auto& slot = this->slot(&GraphViews::by_type_, key(graph, std::to_string(static_cast<int>(space))));
  if (!slot) {
    const TraceSpan span("prepare", "rows by type");
    slot = space == SpaceKind::edge ? cpu::edges_by_type(graph)
                                    : cpu::pairs_by_type(graph, space == SpaceKind::pair_src ? End::src : End::dst);
  }
  return slot;
}

const NodeId* GraphViews::pair_columns(const Graph& graph, Direction direction, End end) {
  const Array<EdgeId>& of_edge = graph.pairs(end).of_edge;
  const auto view = rows(graph, direction);
  if (view->edge_id == nullptr) return of_edge.data();
  Array<NodeId>& slot = this->slot(
      &GraphViews::pair_columns_, key(graph, fmt::format("{} {}", static_cast<int>(direction), static_cast<int>(end))));
  if (slot.empty()) {
    Buffer<NodeId> columns(graph.num_edges());
    parallel_for(graph.num_edges(), 1 << 16, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) columns[i] = of_edge[view->edge_id[i]];
    });
    slot = std::move(columns).freeze();
  }
  return slot.data();
}

std::shared_ptr<const GTasks> GraphViews::tasks(const Graph& graph, const PartitionTable& table) {
  auto& slot = this->slot(&GraphViews::tasks_, key(graph, table.text()));
  if (!slot) {
    const TraceSpan span("prepare", "gTasks");
    auto& orders = this->slot(&GraphViews::orders_, graph_key(graph));
    if (!orders) orders = make_sort_orders(graph);
    slot = std::make_shared<GTasks>(partition_(graph, table, orders.get()));
  }
  return slot;
}

std::shared_ptr<const cpu::GTaskView> GraphViews::gtasks(const Graph& graph, const PartitionTable& table,
                                                         const cpu::GTaskOptions& options) {
  auto& slot = this->slot(&GraphViews::gtasks_,
                          key(graph, fmt::format("{} {} {} {} {}", table.text(), static_cast<int>(options.direction),
                                                 options.width, options.split_outliers, options.by_type)));
  if (!slot) slot = cpu::make_gtask_view(tasks(graph, table), options);
  return slot;
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
