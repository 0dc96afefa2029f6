// GraphViews: makes and holds the prepared forms of graphs that kernels walk. A form of a graph is
// made once and shared by all executors. Views with a `parent` use what the parent holds and keep
// what they make to themselves, so the views of a batch's blocks end with the batch.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "nacre/gtask/partition.h"
#include "nacre/kernel/cpu/gtask.h"
#include "nacre/kernel/cpu/lstm.h"
#include "nacre/kernel/cpu/sparse.h"
#include "nacre/kernel/cpu/typed.h"
#include "nacre/kernel/cpu/typed_rows.h"

namespace nacre {

class GraphViews {
 public:
  GraphViews() = default;
  explicit GraphViews(std::shared_ptr<const GraphViews> parent) : parent_(std::move(parent)) {}
  std::shared_ptr<const cpu::RowView> rows(const Graph& graph, Direction direction, bool split_outliers = true,
                                           RowSpan range = {});
  // Returns the view without chunks and without the longest row.
  std::shared_ptr<const cpu::RowView> uncut_rows(const Graph& graph, Direction direction);
  std::shared_ptr<const cpu::TypedView> typed(const Graph& graph, Direction direction);
  std::shared_ptr<const cpu::LstmView> lstm(const Graph& graph, const cpu::LstmOptions& options);
  // Returns the rows of a space of edges or pairs, by type.
  std::shared_ptr<const cpu::RowsByType> by_type(const Graph& graph, SpaceKind space);
  // Returns the pair at `end` of every entry of a view of edges.
  const NodeId* pair_columns(const Graph& graph, Direction direction, End end);
  // Cuts the edges into gTasks: on the device, if `on_device` and there is a device that can do it,
  // otherwise on the host. Both give the same gTasks.
  std::shared_ptr<const GTasks> tasks(const Graph& graph, const PartitionTable& table, bool on_device = false);
  std::shared_ptr<const cpu::GTaskView> gtasks(const Graph& graph, const PartitionTable& table,
                                               const cpu::GTaskOptions& options);
  int64_t bytes() const;
  // Drops the forms of a graph that this object itself holds, before the graph is freed. Executors
  // that walk them must be gone.
  void forget(const Graph& graph);
  // Makes gTasks on a device. The gTasks must be equal to those that the host would make.
  using Partition = std::function<GTasks(const Graph&, const PartitionTable&)>;
  void partition_with(Partition make) { partition_ = std::move(make); }

 private:
  // Graphs that share their arrays are the same graph.
  using GraphKey = std::tuple<const void*, const void*, const void*>;
  using Key = std::tuple<GraphKey, std::string>;
  static GraphKey graph_key(const Graph& graph) {
    return {graph.row_ptr().data(), graph.col_idx().data(), graph.edge_type().data()};
  }
  static Key key(const Graph& graph, const std::string& form) { return {graph_key(graph), form}; }
  static Key key(const Graph& graph, Direction direction) {
    return key(graph, std::to_string(static_cast<int>(direction)));
  }

  template <class Map>
  typename Map::mapped_type& entry(Map GraphViews::*map, const typename Map::key_type& key);

  std::shared_ptr<const GraphViews> parent_;
  std::map<Key, std::shared_ptr<const cpu::RowView>> rows_;
  std::map<Key, std::shared_ptr<const cpu::TypedView>> typed_;
  std::map<Key, std::shared_ptr<const cpu::LstmView>> lstm_;
  std::map<Key, std::shared_ptr<const cpu::RowsByType>> by_type_;
  std::map<Key, Array<NodeId>> pair_columns_;
  std::map<Key, std::shared_ptr<const GTasks>> tasks_;
  std::map<Key, std::shared_ptr<const cpu::GTaskView>> gtasks_;
  std::map<GraphKey, std::shared_ptr<SortOrders>> orders_;
  Partition partition_;  // null: there is no device that makes gTasks
};

}  // namespace nacre
