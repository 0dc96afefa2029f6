// The index work behind the GPU's typed products and sequences, which needs no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "nacre/engine/gpu/lstm_parts.h"
#include "nacre/engine/gpu/typed_parts.h"
#include "support/random_graphs.h"

namespace nacre::test {
namespace {

TEST(GpuParts, ChunksCoverAllRowsEvenly) {
  EXPECT_EQ(chunk_rows(0, 10), 1);
  EXPECT_EQ(chunk_rows(10, 10), 10);
  EXPECT_EQ(chunk_rows(1000, 999), 512);
  EXPECT_EQ(chunk_rows(1000, 0), 128);
}

TEST(GpuParts, RunsOfVerticesHaveFewPairs) {
  const Array<int64_t> ptr(std::vector<int64_t>{0, 2, 2, 9, 10, 11, 11});
  EXPECT_EQ(cut_by_pairs(ptr, 3), (std::vector<int64_t>{0, 2, 3, 6}));
  EXPECT_EQ(cut_by_pairs(ptr, 100), (std::vector<int64_t>{0, 6}));
  EXPECT_EQ(cut_by_pairs(Array<int64_t>(std::vector<int64_t>{0}), 1), (std::vector<int64_t>{0}));
}

TEST(GpuParts, RangesHoldEveryPairOfTheirVerticesOnce) {
  for (const GraphCase& c : random_graphs(7, 20)) {
    SCOPED_TRACE(c.name);
    const PairIndex& pairs = c.graph.pairs(End::dst);
    const std::vector<int64_t> borders = cut_by_pairs(pairs.vertex_ptr, 5);
    std::vector<int> seen(static_cast<size_t>(pairs.num_pairs), 0);
    for (size_t i = 0; i + 1 < borders.size(); ++i) {
      int64_t offset = 0;
      for (const PairRange& r : ranges_of(pairs, borders[i], borders[i + 1])) {
        EXPECT_EQ(r.offset, offset);
        offset += r.end - r.begin;
        for (int64_t p = r.begin; p < r.end; ++p) {
          ++seen[static_cast<size_t>(p)];
          EXPECT_EQ(pairs.type[p], r.type);
          EXPECT_GE(pairs.vertex[p], borders[i]);
          EXPECT_LT(pairs.vertex[p], borders[i + 1]);
        }
      }
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), pairs.num_pairs);
    const auto all = merged(ranges_of(pairs, 0, c.graph.num_dst()));
    if (pairs.num_pairs > 0) {
      ASSERT_EQ(all.size(), 1u);
      EXPECT_EQ(all[0].end, pairs.num_pairs);
    }
  }
}

TEST(GpuParts, SlotsNameTheirPairs) {
  for (const GraphCase& c : random_graphs(3, 20)) {
    SCOPED_TRACE(c.name);
    const PairIndex& pairs = c.graph.pairs(End::src);
    const int types = c.graph.num_edge_types();
    const std::vector<uint32_t> slots = pairs_of_slots(pairs, c.graph.num_src(), types);
    int64_t filled = 0;
    for (size_t s = 0; s < slots.size(); ++s) {
      if (slots[s] == cuda::kNoRow) continue;
      ++filled;
      EXPECT_EQ(static_cast<size_t>(pairs.vertex[slots[s]]) * static_cast<size_t>(types) + pairs.type[slots[s]], s);
    }
    EXPECT_EQ(filled, pairs.num_pairs);
  }
}

TEST(GpuParts, PiecesCoverLongPairsInOrder) {
  // One destination with 1000 edges of two types by turns, one with a single edge.
  EdgeList edges;
  edges.num_nodes = 1001;
  edges.num_types = 2;
  for (NodeId s = 1; s <= 1000; ++s) {
    edges.src.push_back(s);
    edges.dst.push_back(0);
    edges.type.push_back(static_cast<uint16_t>(s % 2));
  }
  edges.src.push_back(0);
  edges.dst.push_back(5);
  edges.type.push_back(1);
  const Graph graph = build_graph(edges, "test");
  const PairIndex& pairs = graph.pairs(End::dst);
  for (const bool slots : {false, true}) {
    const LongPairs list = long_pairs(pairs, 2, slots, long_pair(graph.num_edges()));
    ASSERT_EQ(list.rows.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      const GpuSplitRow& row = list.rows[i];
      const auto pair = static_cast<int64_t>(i);  // of destination 0, type i
      EXPECT_EQ(row.row, slots ? i : static_cast<size_t>(pairs.type_ptr[pair]));
      EXPECT_EQ(row.length, 500);
      int64_t at = pairs.edge_ptr[pairs.type_ptr[pair]];
      for (int32_t p = row.first; p < row.first + row.count; ++p) {
        const GpuSegment& piece = list.pieces[static_cast<size_t>(p)];
        EXPECT_EQ(piece.row, row.row);
        EXPECT_EQ(piece.partial, p);
        EXPECT_EQ(piece.begin, at);
        at = piece.end;
      }
      EXPECT_EQ(at, pairs.edge_ptr[pairs.type_ptr[pair] + 1]);
    }
  }
}

TEST(GpuParts, RowsAreSplitOverLanesWithoutGaps) {
  for (int64_t width = 1; width < 2000; ++width) {
    const cuda::RowSplit r = cuda::split_row(width);
    ASSERT_EQ(width % r.vector, 0);
    ASSERT_GE(int64_t{r.tiles} * r.slots * r.lanes * r.vector, width);
    ASSERT_LT((int64_t{r.tiles} - 1) * r.slots * r.lanes * r.vector, width);
    ASSERT_LE(r.slots * r.vector, 16);
    ASSERT_GE(r.lanes, 8);
    ASSERT_LE(r.lanes, 32);
  }
}

TEST(GpuParts, SequencesComeLongestFirst) {
  for (const GraphCase& c : random_graphs(11, 30)) {
    SCOPED_TRACE(c.name);
    const SequenceOrder order = order_sequences(c.graph);
    ASSERT_EQ(order.entry.size(), order.row.size() + 1);
    EXPECT_EQ(order.entry.back(), c.graph.num_edges());
    for (size_t i = 0; i < order.row.size(); ++i) {
      EXPECT_EQ(order.entry[i + 1] - order.entry[i], c.graph.in_degree(order.row[i]));
      if (i > 0) {
        const int64_t before = c.graph.in_degree(order.row[i - 1]), now = c.graph.in_degree(order.row[i]);
        EXPECT_TRUE(before > now || (before == now && order.row[i - 1] < order.row[i]));
      }
    }
  }
}

TEST(GpuParts, SumsOfSourcesTakeEveryStepOnce) {
  for (const GraphCase& c : random_graphs(13, 30)) {
    SCOPED_TRACE(c.name);
    const SequenceOrder order = order_sequences(c.graph);
    for (const int64_t most : {1, 7, 1000000}) {
      const std::vector<int64_t> borders = cut_sequences(order, most);
      const SequenceSums sums = sums_of_sources(c.graph, order, borders);
      ASSERT_EQ(sums.run.size(), borders.size());
      ASSERT_EQ(sums.ptr.size(), sums.source.size() + 1);
      EXPECT_EQ(sums.ptr.back(), c.graph.num_edges());
      for (size_t run = 0; run + 1 < borders.size(); ++run) {
        const auto first = static_cast<size_t>(borders[run]);
        const int64_t entries = order.entry[static_cast<size_t>(borders[run + 1])] - order.entry[first];
        EXPECT_LE(entries, longest_run(order, borders));
        // Source of each step of the run, by its entry.
        std::map<uint32_t, uint32_t> want, got;
        for (auto p = first; p < static_cast<size_t>(borders[run + 1]); ++p) {
          for (int64_t t = 0; t < c.graph.in_degree(order.row[p]); ++t) {
            want[static_cast<uint32_t>(order.entry[p] - order.entry[first] + t)] =
                c.graph.col_idx()[c.graph.row_ptr()[order.row[p]] + t];
          }
        }
        for (int64_t s = sums.run[run]; s < sums.run[run + 1]; ++s) {
          const auto sum = static_cast<size_t>(s);
          for (int64_t i = sums.ptr[sum]; i < sums.ptr[sum + 1]; ++i) {
            EXPECT_TRUE(got.emplace(sums.entry[static_cast<size_t>(i)], sums.source[sum]).second);
          }
        }
        EXPECT_EQ(got, want);
      }
    }
  }
}

}  // namespace
}  // namespace nacre::test
