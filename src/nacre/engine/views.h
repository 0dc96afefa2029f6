// The prepared forms of a graph that kernels walk. Built once per graph and direction and shared by all executors.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "nacre/kernel/cpu/lstm.h"
#include "nacre/kernel/cpu/sparse.h"
#include "nacre/kernel/cpu/typed.h"

namespace nacre {

class GraphViews {
 public:
  std::shared_ptr<const cpu::RowView> rows(const Graph& graph, cpu::Direction direction);
  std::shared_ptr<const cpu::TypedView> typed(const Graph& graph, cpu::Direction direction);
  std::shared_ptr<const cpu::LstmView> lstm(const Graph& graph);
  int64_t bytes() const;

 private:
  // Graphs that share arrays are the same graph.
  using Key = std::tuple<const void*, const void*, const void*, cpu::Direction>;
  static Key key(const Graph& graph, cpu::Direction direction) {
    return {graph.row_ptr().data(), graph.col_idx().data(), graph.edge_type().data(), direction};
  }

  std::map<Key, std::shared_ptr<const cpu::RowView>> rows_;
  std::map<Key, std::shared_ptr<const cpu::TypedView>> typed_;
  std::map<Key, std::shared_ptr<const cpu::LstmView>> lstm_;
};

}  // namespace nacre
