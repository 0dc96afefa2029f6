#include "nacre/engine/gpu/lstm_sequences.h"

#include <algorithm>

#include "nacre/base/parallel.h"
#include "nacre/plan/variants/lstm.h"

namespace nacre {
SequenceOrder order_sequences(const Graph& graph) {
  SequenceOrder order;
  int64_t longest = 0;
  for (int64_t v = 0; v < graph.num_dst(); ++v) longest = std::max(longest, graph.in_degree(v));
  // This is a counting sort by length that puts the longest sequences first.
  std::vector<int64_t> place(static_cast<size_t>(longest) + 2, 0);
  for (int64_t v = 0; v < graph.num_dst(); ++v) ++place[longest - graph.in_degree(v) + 1];
  for (size_t i = 1; i < place.size(); ++i) place[i] += place[i - 1];
  order.row.resize(place[longest]);
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    if (graph.in_degree(v) == 0) continue;
    order.row[place[longest - graph.in_degree(v)]++] = static_cast<uint32_t>(v);
  }
  order.entry.push_back(0);
  for (const uint32_t v : order.row) order.entry.push_back(order.entry.back() + graph.in_degree(v));
  return order;
}

std::vector<int64_t> cut_sequences(const SequenceOrder& order, int64_t most) {
  const auto rows = static_cast<int64_t>(order.row.size());
  std::vector<int64_t> borders = {0};
  while (borders.back() < rows) {
    const auto from = order.entry.begin() + borders.back();
    const auto past = std::upper_bound(from + 1, order.entry.end(), *from + most);
    borders.push_back(std::max<int64_t>(borders.back() + 1, past - order.entry.begin() - 1));
  }
  return borders;
}

int64_t longest_run(const SequenceOrder& order, const std::vector<int64_t>& borders) {
  int64_t longest = 0;
  for (size_t c = 0; c + 1 < borders.size(); ++c) {
    longest = std::max(longest, order.entry[borders[c + 1]] - order.entry[borders[c]]);
  }
  return longest;
}

SequenceSums sums_of_sources(const Graph& graph, const SequenceOrder& order, const std::vector<int64_t>& borders) {
  const OutCsc& out = graph.out();
  const size_t runs = borders.size() - 1;
  // run_of has the run of each destination; entry_of has the entry of its first step, counted from
  // the first entry of the run.
  std::vector<uint32_t> run_of(graph.num_dst(), 0), entry_of(run_of);
  for (size_t c = 0; c < runs; ++c) {
    const int64_t first = order.entry[borders[c]];
    for (auto p = static_cast<size_t>(borders[c]); p < static_cast<size_t>(borders[c + 1]); ++p) {
      run_of[order.row[p]] = static_cast<uint32_t>(c);
      entry_of[order.row[p]] = static_cast<uint32_t>(order.entry[p] - first);
    }
  }
  // For each run, one task walks all edges and takes those of its run. There are few runs, and no
  // two tasks write the same list.
  struct Sums {
    std::vector<uint32_t> source, entry;
    std::vector<int64_t> end;
  };
  std::vector<Sums> lists(runs);
  parallel_tasks(static_cast<int64_t>(runs), [&](int64_t c) {
    Sums& list = lists[c];
    for (int64_t s = 0; s < graph.num_src(); ++s) {
      const size_t before = list.entry.size();
      for (int64_t i = out.row_ptr[s]; i < out.row_ptr[s + 1]; ++i) {
        const NodeId v = out.dst[i];
        if (run_of[v] != static_cast<uint32_t>(c)) continue;
        list.entry.push_back(entry_of[v] + static_cast<uint32_t>(out.edge_id[i] - graph.row_ptr()[v]));
      }
      if (list.entry.size() == before) continue;
      list.source.push_back(static_cast<uint32_t>(s));
      list.end.push_back(static_cast<int64_t>(list.entry.size()));
    }
  });
  SequenceSums sums;
  sums.run.push_back(0);
  sums.ptr.push_back(0);
  for (Sums& list : lists) {
    const auto offset = static_cast<int64_t>(sums.entry.size());
    sums.source.insert(sums.source.end(), list.source.begin(), list.source.end());
    sums.entry.insert(sums.entry.end(), list.entry.begin(), list.entry.end());
    for (const int64_t end : list.end) sums.ptr.push_back(offset + end);
    sums.run.push_back(static_cast<int64_t>(sums.source.size()));
    list = {};
  }
  return sums;
}

SequenceItems cut_sums(SequenceSums sums, int64_t longest) {
  const int64_t piece = longest == INT64_MAX ? longest : piece_of_source(longest);
  SequenceItems cut;
  cut.entry = std::move(sums.entry);
  cut.item_run = cut.piece_run = {0};
  for (size_t run = 0; run + 1 < sums.run.size(); ++run) {
    int32_t partials = 0;
    for (auto s = static_cast<size_t>(sums.run[run]); s < static_cast<size_t>(sums.run[run + 1]); ++s) {
      const int64_t begin = sums.ptr[s], end = sums.ptr[s + 1];
      if (end - begin <= longest) {
        cut.items.push_back({sums.source[s], -1, begin, end});
        continue;
      }
      const int32_t first = partials;
      for (int64_t i = begin; i < end; i += piece) {
        cut.items.push_back({sums.source[s], partials++, i, std::min(end, i + piece)});
      }
      cut.pieces.push_back({sums.source[s], -1, first, partials});
    }
    cut.item_run.push_back(static_cast<int64_t>(cut.items.size()));
    cut.piece_run.push_back(static_cast<int64_t>(cut.pieces.size()));
    cut.num_partials = std::max<int64_t>(cut.num_partials, partials);
  }
  return cut;
}

}  // namespace nacre
