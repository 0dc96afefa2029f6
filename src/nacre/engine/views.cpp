#include "nacre/engine/views.h"

#include "nacre/base/trace.h"

namespace nacre {

std::shared_ptr<const cpu::RowView> GraphViews::rows(const Graph& graph, cpu::Direction direction) {
  auto& slot = rows_[key(graph, direction)];
  if (!slot) {
    const TraceSpan span("prepare", direction == cpu::Direction::by_dst ? "rows by destination" : "rows by source");
    slot = cpu::make_row_view(graph, direction);
  }
  return slot;
}

std::shared_ptr<const cpu::TypedView> GraphViews::typed(const Graph& graph, cpu::Direction direction) {
  auto& slot = typed_[key(graph, direction)];
  if (!slot) {
    const TraceSpan span("prepare", "pairs of row and type");
    slot = cpu::make_typed_view(rows(graph, direction));
  }
  return slot;
}

std::shared_ptr<const cpu::LstmView> GraphViews::lstm(const Graph& graph) {
  auto& slot = lstm_[key(graph, cpu::Direction::by_dst)];
  if (!slot) {
    const TraceSpan span("prepare", "sequences by length");
    slot = cpu::make_lstm_view(rows(graph, cpu::Direction::by_dst));
  }
  return slot;
}

int64_t GraphViews::bytes() const {
  int64_t sum = 0;
  for (const auto& [k, view] : rows_) {
    sum += static_cast<int64_t>(view->chunks.size() * sizeof(cpu::RowChunk));
    if (view->direction == cpu::Direction::by_src) sum += view->graph.out_bytes();
  }
  for (const auto& [k, view] : typed_) sum += view->bytes();
  for (const auto& [k, view] : lstm_) sum += view->row_order.size() * static_cast<int64_t>(sizeof(NodeId));
  return sum;
}

}  // namespace nacre
