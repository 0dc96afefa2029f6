// This part of GpuContext brings the rows of graphs into device memory.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "nacre/base/error.h"
#include "nacre/base/trace.h"
#include "nacre/engine/gpu/context.h"
#include "nacre/graph/transpose.h"

namespace nacre {
namespace {

// Returns `words` rounded up, so that consecutive arrays begin with a memory line of their own.
int64_t whole_lines(int64_t words) { return (words + 63) / 64 * 64; }

void narrow_offsets(const cpu::RowView& view, uint32_t* out) {
  for (int64_t r = 0; r <= view.rows; ++r) out[r] = static_cast<uint32_t>(view.row_ptr[r]);
}

int64_t longest_row(const cpu::RowView& view) {
  int64_t longest = 0;
  for (int64_t r = 0; r < view.rows; ++r) longest = std::max(longest, view.row_ptr[r + 1] - view.row_ptr[r]);
  return longest;
}

}  // namespace

GpuRows& GpuContext::rows(const Graph& graph, Direction direction, bool edges) {
  // The name has the addresses of the arrays, because graphs that share arrays are the same graph.
  const std::string name = fmt::format("{} {} {} {}", static_cast<const void*>(graph.row_ptr().data()),
                                       static_cast<const void*>(graph.col_idx().data()),
                                       static_cast<const void*>(graph.edge_type().data()), static_cast<int>(direction));
  if (GpuRows* known = cache_.find_own<GpuRows>(name)) return *known;
  // A context with a parent takes a copy of the parent's rows. If arrays are copied to the device
  // later, this context keeps them.
  if (const GpuRows* known = cache_.find<GpuRows>(name)) return cache_.put(name, *known);
  GpuRows& r = cache_.put(name, GpuRows{});
  r.name = name;
  r.graph = graph;
  r.direction = direction;
  if (direction == Direction::by_src && parent_ && !graph.has_out() && is_few_edges(graph)) {
    transpose(r, edges);
    return r;
  }
  const cpu::RowView& view = host_rows(r);
  r.rows = view.rows;
  r.entries = view.row_ptr[view.rows];
  r.listed = view.edge_id != nullptr;
  r.long_offsets = r.entries > INT64_C(0xFFFFFFFF);
  r.row_vertex = static_cast<const uint32_t*>(resident(view.row_vertex, view.rows * 4));
  return r;
}

// Groups the edges of a batch by source, and writes them directly into the memory from which they
// are sent.
void GpuContext::transpose(GpuRows& rows, bool edges) {
  const TraceSpan span("prepare", "rows of edges");
  rows.rows = rows.graph.num_src();
  rows.entries = rows.graph.num_edges();
  rows.listed = true;
  const int64_t columns = whole_lines(rows.rows + 2), ids = columns + whole_lines(rows.entries);
  const auto* there = static_cast<const uint32_t*>(
      filled("by source " + rows.name, (edges ? 2 * ids - columns : ids) * 4, [&](void* to) {
        auto* words = static_cast<uint32_t*>(to);
        rows.longest =
            group_by_source(rows.graph, EdgesBySource<uint32_t>{words, words + columns, edges ? words + ids : nullptr});
        for (int64_t r = 0; r < rows.rows && rows.longest > kShortRow; ++r) {
          const int64_t length = words[r + 1] - words[r];
          if (length > kShortRow) rows.long_ones.push_back({r, words[r], length});
        }
      }));
  NACRE_CHECK(rows.longest >= 0, "the edges by source were made before, but not by this context");
  rows.offsets = there;
  rows.columns = there + columns;
  rows.edge_ids = edges ? there + ids : nullptr;
}

std::vector<GpuRows::Long> GpuContext::long_rows(const GpuRows& rows, int64_t most) const {
  NACRE_CHECK(most >= kShortRow, "the lengths of short rows were not kept");
  std::vector<GpuRows::Long> list;
  if (!rows.host) {
    std::copy_if(rows.long_ones.begin(), rows.long_ones.end(), std::back_inserter(list),
                 [&](const GpuRows::Long& row) { return row.length > most; });
    return list;
  }
  const int64_t* ptr = rows.host->row_ptr;
  for (int64_t r = 0; r < rows.rows; ++r) {
    if (ptr[r + 1] - ptr[r] > most) list.push_back({r, ptr[r], ptr[r + 1] - ptr[r]});
  }
  return list;
}

const cpu::RowView& GpuContext::host_rows(GpuRows& rows) {
  if (!rows.host) rows.host = views_->uncut_rows(rows.graph, rows.direction);
  return *rows.host;
}

const void* GpuContext::offsets(GpuRows& rows) {
  if (rows.offsets != nullptr) return rows.offsets;
  const cpu::RowView& view = host_rows(rows);
  // Kernels skip rows that are longer than the length above which rows are cut, so the longest row
  // must be known even if the offsets are already in memory.
  rows.longest = longest_row(view);
  rows.offsets = rows.long_offsets ? row_ptr(rows) : filled("offsets " + rows.name, (rows.rows + 1) * 4, [&](void* to) {
    narrow_offsets(view, static_cast<uint32_t*>(to));
  });
  return rows.offsets;
}

const uint32_t* GpuContext::columns(GpuRows& rows) {
  if (rows.columns == nullptr)
    rows.columns = static_cast<const uint32_t*>(resident(host_rows(rows).col, rows.entries * 4));
  return rows.columns;
}

const uint32_t* GpuContext::edge_ids(GpuRows& rows) {
  if (!rows.listed || rows.edge_ids != nullptr) return rows.edge_ids;
  if (rows.host) return rows.edge_ids = static_cast<const uint32_t*>(resident(rows.host->edge_id, rows.entries * 4));
  return rows.edge_ids = static_cast<const uint32_t*>(filled("edges " + rows.name, rows.entries * 4, [&](void* to) {
           std::vector<uint32_t> offsets(rows.rows + 2);
           group_by_source(rows.graph, EdgesBySource<uint32_t>{offsets.data(), nullptr, static_cast<EdgeId*>(to)});
         }));
}

const uint32_t* GpuContext::edge_dst(const Graph& graph) {
  const int64_t* ptr = graph.row_ptr().data();
  return static_cast<const uint32_t*>(
      filled(fmt::format("destinations {}", static_cast<const void*>(ptr)), graph.num_edges() * 4, [&](void* to) {
        auto* dst = static_cast<uint32_t*>(to);
        for (int64_t v = 0; v < graph.num_dst(); ++v) std::fill(dst + ptr[v], dst + ptr[v + 1], static_cast<NodeId>(v));
      }));
}

const int64_t* GpuContext::row_ptr(GpuRows& rows) {
  return static_cast<const int64_t*>(resident(host_rows(rows).row_ptr, (rows.rows + 1) * 8));
}

}  // namespace nacre
