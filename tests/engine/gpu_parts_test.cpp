// Tests the index work behind the GPU's typed products and sequences, which needs no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>

#include "nacre/engine/gpu/function_key.h"
#include "nacre/engine/gpu/gpu_pairs.h"
#include "nacre/engine/gpu/lstm_sequences.h"
#include "nacre/engine/gpu/row_cut.h"
#include "support/random_graphs.h"

namespace nacre::test {
namespace {

// Checks that the segments of a cut cover the entries of every row once, that the pieces of a row
// have places of their own in the order of the row, and that no piece is too long.
void expect_covers(const RowCut& cut, const cpu::RowView& view, int64_t longest) {
  std::vector<std::vector<cuda::reduction::Segment>> rows(static_cast<size_t>(view.rows));
  for (const auto& s : cut.segments) rows[s.row].push_back(s);
  std::set<int> places;
  for (int64_t r = 0; r < view.rows; ++r) {
    auto& pieces = rows[r];
    ASSERT_FALSE(pieces.empty()) << "row " << r << " is written by nobody";
    std::sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    int64_t at = view.row_ptr[r];
    for (const auto& s : pieces) {
      EXPECT_EQ(s.begin, at);
      EXPECT_LE(s.end - s.begin, longest);
      at = s.end;
      EXPECT_EQ(s.partial < 0, pieces.size() == 1);
      if (s.partial < 0) continue;
      EXPECT_TRUE(places.insert(s.partial).second);
      const auto& split = cut.split.at(s.split);
      EXPECT_EQ(split.count, static_cast<int>(pieces.size()));
      EXPECT_EQ(s.partial, split.first + (&s - pieces.data()));
      EXPECT_EQ(split.length, view.row_ptr[r + 1] - view.row_ptr[r]);
    }
    EXPECT_EQ(at, view.row_ptr[r + 1]);
  }
  EXPECT_EQ(static_cast<int64_t>(places.size()), cut.partials);
}

TEST(GpuParts, RowsCutBySourcesWalkOneBlockAfterTheOther) {
  for (const auto& [name, graph] : random_graphs(7, 40)) {
    SCOPED_TRACE(name);
    for (const Direction direction : {Direction::by_dst, Direction::by_src}) {
      const auto view = cpu::make_uncut_view(graph, direction);
      const int64_t vertices = direction == Direction::by_dst ? graph.num_src() : graph.num_dst();
      for (const int blocks : {1, 2, 3, 16}) {
        const RowCut cut = cut_by_sources(*view, {vertices, {}, blocks}, 5);
        expect_covers(cut, *view, 5);
        const int64_t third = view->rows / 3;
        const RowCut head = cut_by_sources(*view, {vertices, {}, blocks}, 5, {0, third});
        const RowCut rest = cut_by_sources(*view, {vertices, {}, blocks}, 5, {third, view->rows});
        EXPECT_EQ(head.segments.size() + rest.segments.size(), cut.segments.size());
        for (const auto& s : head.segments) EXPECT_LT(s.row, third);
        for (const auto& s : rest.segments) EXPECT_GE(s.row, third);
        int64_t last = 0;  // block of the previous segment
        for (const auto& s : cut.segments) {
          if (s.begin == s.end) continue;
          const auto block_of = [&](int64_t v) {
            int64_t block = 0;
            while (block + 1 < blocks && v >= vertices * (block + 1) / blocks) ++block;
            return block;
          };
          EXPECT_EQ(block_of(view->col[s.begin]), block_of(view->col[s.end - 1]));
          EXPECT_GE(block_of(view->col[s.begin]), last);
          last = block_of(view->col[s.begin]);
        }
      }
    }
  }
}

// The entries of a rank come in the order of the whole graph, which its own numbers do not follow.
TEST(GpuParts, RowsOfARankAreCutByTheNumbersOfTheWholeGraph) {
  GraphArrays arrays;
  arrays.num_src = 6;
  arrays.num_dst = 2;
  const std::vector<uint32_t> numbers = {1, 4, 0, 2, 3, 5};  // two own vertices, then the halo
  arrays.row_ptr = std::vector<int64_t>{0, 4, 6};
  arrays.col_idx = std::vector<NodeId>{2, 0, 3, 5, 4, 1};  // vertices 0, 1, 2, 5 of the whole
                                                           // graph, and 3, 4
  const Graph graph(std::move(arrays), "test");
  const auto view = cpu::make_uncut_view(graph, Direction::by_dst);
  const RowCut cut = cut_by_sources(*view, {6, {numbers.data()}, 2}, 100);
  expect_covers(cut, *view, 100);
  ASSERT_EQ(cut.segments.size(), 3U);
  EXPECT_EQ(cut.segments[0].end, 3);  // row 0 up to and including vertex 2
  EXPECT_EQ(cut.segments[1].row, 0U);
  EXPECT_EQ(cut.segments[2].row, 1U);
  EXPECT_EQ(cut.segments[2].partial, -1) << "the row lies in the second block as a whole";
}

// Everything that changes the text of a kernel changes the key of its function.
TEST(GpuParts, FunctionsAreKnownByAllTheirTextDependsOn) {
  RowProgram program;
  program.domain = Space::edge(0);
  program.operands = {3, 4};
  program.widths = {16, 16};
  program.code = {Micro{.op = MicroOp::load_src, .out = 0, .operand = 0}, Micro{.op = MicroOp::relu, .out = 1, .a = 0}};
  std::vector<RowProgram> programs(12, program);
  programs[1].domain = Space::vertex(0);
  programs[2].widths = {16, 8};
  programs[3].narrow = {1};
  programs[4].code[0].operand = 1;
  programs[5].code[0].op = MicroOp::load_dst;
  programs[6].code[1].alpha = 0.5F;
  programs[7].code[1].salt = 9;
  programs[8].code[1].b_repeat = 2;
  programs[9].code[1].begin = 1;
  programs[10].code.pop_back();
  programs[11].operands.push_back(5);
  std::set<std::string> keys;
  for (const RowProgram& p : programs) EXPECT_TRUE(keys.insert(FunctionKey("map").add(p).bytes()).second);
  EXPECT_TRUE(keys.insert(FunctionKey("sum").add(program).bytes()).second);

  cuda::ReduceSpec spec;
  spec.program = &program;
  spec.value = 1;
  std::vector<cuda::ReduceSpec> specs(17, spec);
  specs[1].value = 0;
  specs[2].reduce = ReduceOp::mean;
  specs[3].store = false;
  specs[4].narrow_out = true;
  specs[5].argmax = true;
  specs[6].tail = &programs[10];
  specs[7].side.rows_at_dst = false;
  specs[8].side.edge_ids = true;
  specs[9].side.row_vertex = true;
  specs[10].side.long_offsets = true;
  specs[11].side.mean_degree = 9;
  specs[12].tiles = 2;
  specs[13].batch = 2;
  specs[14].min_blocks = 8;
  specs[15].row_width = 12;
  specs[16].tile_pitch = 64;
  for (const cuda::ReduceSpec& s : specs) EXPECT_TRUE(keys.insert(FunctionKey("reduce").add(s).bytes()).second);
  // The memory that a kernel is bound to does not change the key.
  RowProgram elsewhere = program;
  elsewhere.operands = {8, 9};
  EXPECT_TRUE(keys.contains(FunctionKey("map").add(elsewhere).bytes()));
}

TEST(GpuParts, ColumnTilesCoverTheRow) {
  for (const auto& [row, width] : {std::pair<int64_t, int64_t>{128, 64}, {100, 52}, {140, 48}, {68, 36}, {508, 64}}) {
    RowProgram program;
    program.widths = {width};
    cuda::ReduceSpec spec;
    spec.program = &program;
    spec.value = 0;
    spec.row_width = row;
    spec.tiles = static_cast<int>((row + width - 1) / width);
    int64_t covered = 0;
    for (int tile = 0; tile < spec.tiles; ++tile) {
      const int64_t begin = cuda::tile_column(spec, tile);
      EXPECT_LE(begin, covered) << row << ": a gap before tile " << tile;
      EXPECT_EQ(begin % 4, 0);
      covered = begin + width;
    }
    EXPECT_EQ(covered, row);
  }
}

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
  }
}

TEST(GpuParts, EvenRunsCoverEveryTypeInWholeTiles) {
  const std::vector<int64_t> type_ptr = {0, 1000, 1000, 1001, 5000};
  for (const int64_t wanted : {0, 1, 7, 5000}) {
    const std::vector<cuda::MmaRun> runs = cut_evenly(type_ptr, wanted, 128);
    int64_t at = 0;
    for (const cuda::MmaRun& run : runs) {
      EXPECT_EQ(run.begin, at);
      EXPECT_LT(run.begin, run.end);
      EXPECT_GE(run.begin, type_ptr[run.type]);
      EXPECT_LE(run.end, type_ptr[run.type + 1]);
      EXPECT_TRUE((run.end - run.begin) % 128 == 0 || run.end == type_ptr[run.type + 1]);
      at = run.end;
    }
    EXPECT_EQ(at, 5000);
    EXPECT_TRUE(wanted != 7 || runs.size() == 7u) << runs.size();
  }
  EXPECT_TRUE(cut_evenly({0, 0, 0}, 5, 128).empty());
}

TEST(GpuParts, OrderedCellsHoldEveryPairOnceAndRunsKnowTheirTypes) {
  for (const GraphCase& c : random_graphs(7, 20)) {
    SCOPED_TRACE(c.name);
    for (const End end : {End::dst, End::src}) {
      const PairIndex& pairs = c.graph.pairs(end);
      const int64_t vertices = end == End::dst ? c.graph.num_dst() : c.graph.num_src();
      const int types = c.graph.num_edge_types();
      const CellOrder order = order_cells(pairs, vertices, types, 4);
      std::vector<int> covered(static_cast<size_t>(vertices), 0), seen(static_cast<size_t>(pairs.num_pairs), 0);
      for (const cuda::MmaRun& run : order.runs) {
        EXPECT_LE(run.end - run.begin, 4u);
        uint32_t has = 0;
        for (uint32_t i = run.begin; i < run.end; ++i) {
          ++covered[order.vertex[i]];
          for (int t = 0; t < types; ++t) {
            const uint32_t p = order.pair[static_cast<size_t>(int64_t{i} * types + t)];
            if (p == cuda::kNoRow) continue;
            EXPECT_EQ(pairs.vertex[p], order.vertex[i]);
            EXPECT_EQ(pairs.type[p], t);
            ++seen[p];
            has |= 1u << t;
          }
        }
        EXPECT_EQ(run.types, has);
      }
      EXPECT_EQ(std::count(covered.begin(), covered.end(), 1), vertices);
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), pairs.num_pairs);
      EXPECT_TRUE(std::is_sorted(order.runs.begin(), order.runs.end(), [](const auto& a, const auto& b) {
        return std::popcount(a.types) > std::popcount(b.types);
      }));
    }
  }
}

TEST(GpuParts, RunsOfTypesCoverARangeOnce) {
  const std::vector<int64_t> type_ptr = {0, 3, 3, 10};
  const std::vector<TypeRun> runs = runs_of_types(type_ptr, 2, 7);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].type, 0);
  EXPECT_EQ(runs[0].begin, 2);
  EXPECT_EQ(runs[0].end, 3);
  EXPECT_EQ(runs[1].type, 2);
  EXPECT_EQ(runs[1].begin, 3);
  EXPECT_EQ(runs[1].end, 7);
  EXPECT_TRUE(runs_of_types(type_ptr, 4, 4).empty());
}

TEST(GpuParts, RunsOfProductsCoverEveryPositionOnce) {
  const std::vector<int64_t> type_ptr = {0, 300, 300, 301, 1000};
  std::vector<NodeId> vertex(1000);
  for (size_t i = 0; i < vertex.size(); ++i) vertex[i] = static_cast<NodeId>(i < 300 ? i * 3 : i == 300 ? 5 : i - 301);
  for (const NodeId* of : {static_cast<const NodeId*>(nullptr), static_cast<const NodeId*>(vertex.data())}) {
    std::vector<int> seen(1000, 0);
    NodeId before = 0;
    for (const cuda::MmaRun& run : cut_products(type_ptr, 128, of)) {
      EXPECT_LE(run.end - run.begin, 128u);
      EXPECT_GE(run.begin, type_ptr[run.type]);
      EXPECT_LE(run.end, type_ptr[run.type + 1]);
      for (uint32_t i = run.begin; i < run.end; ++i) ++seen[i];
      if (of == nullptr) continue;
      EXPECT_GE(of[run.begin], before);
      before = of[run.begin];
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 1000);
  }
  EXPECT_TRUE(cut_products({0, 0, 0}, 128, nullptr).empty());
}

TEST(GpuParts, RunsOfGradientsCoverEveryPositionOnce) {
  const std::vector<int64_t> type_ptr = {0, 0, 20000, 20001, 20001, 90000};
  for (const int64_t wanted : {1, 10, 132}) {
    const std::vector<cuda::MmaRun> runs = cut_grads(type_ptr, wanted);
    EXPECT_LE(static_cast<int64_t>(runs.size()), wanted + 3);
    const std::vector<int32_t> first = first_runs(runs, 5);
    ASSERT_EQ(first.size(), 6u);
    EXPECT_EQ(first.back(), static_cast<int32_t>(runs.size()));
    int64_t at = 0;
    for (size_t i = 0; i < runs.size(); ++i) {
      EXPECT_EQ(runs[i].begin, at);
      EXPECT_LT(runs[i].begin, runs[i].end);
      at = runs[i].end;
      EXPECT_GE(runs[i].begin, type_ptr[runs[i].type]);
      EXPECT_LE(runs[i].end, type_ptr[runs[i].type + 1]);
      EXPECT_GE(static_cast<int32_t>(i), first[runs[i].type]);
      EXPECT_LT(static_cast<int32_t>(i), first[runs[i].type + 1]);
    }
    EXPECT_EQ(at, 90000);
  }
  EXPECT_TRUE(cut_grads({0, 0}, 5).empty());
}

TEST(GpuParts, CellsNameTheirPairs) {
  for (const GraphCase& c : random_graphs(3, 20)) {
    SCOPED_TRACE(c.name);
    const PairIndex& pairs = c.graph.pairs(End::src);
    const int types = c.graph.num_edge_types();
    const std::vector<uint32_t> cells = pairs_of_cells(pairs, c.graph.num_src(), types);
    int64_t filled = 0;
    for (size_t s = 0; s < cells.size(); ++s) {
      if (cells[s] == cuda::kNoRow) continue;
      ++filled;
      EXPECT_EQ(static_cast<size_t>(pairs.vertex[cells[s]]) * static_cast<size_t>(types) + pairs.type[cells[s]], s);
    }
    EXPECT_EQ(filled, pairs.num_pairs);
  }
}

TEST(GpuParts, PackedSumsCoverEveryEdgeOnce) {
  // One destination has 1000 edges of alternating types, another has a single edge.
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
  std::vector<std::pair<std::string, Graph>> graphs = {{"two hubs", graph}};
  for (const GraphCase& c : random_graphs(5, 40)) graphs.emplace_back(c.name, c.graph);
  for (const auto& [name, g] : graphs) {
    SCOPED_TRACE(name);
    const PairIndex& pairs = g.pairs(End::dst);
    const int types = g.num_edge_types();
    const std::vector<int64_t> borders = cut_by_pairs(pairs.vertex_ptr, 7);
    for (const bool cells : {false, true}) {
      std::vector<int> seen(static_cast<size_t>(g.num_edges()), 0);
      for (size_t c = 0; c + 1 < borders.size(); ++c) {
        SumRange range{ranges_of(pairs, borders[c], borders[c + 1])};
        if (cells) range = SumRange::of_cells(pairs, types, borders[c], borders[c + 1]);
        const PackedSums packed = pack_sums(pairs, types, range, 96);
        int64_t pairs_seen = static_cast<int64_t>(packed.rows.size());
        for (size_t i = 0; i < packed.items.size(); ++i) {
          const cuda::Segment& item = packed.items[i];
          EXPECT_EQ(item.partial >= 0, static_cast<int64_t>(i) < packed.num_partials);
          EXPECT_LT(item.begin, item.end);
          for (int64_t e = item.begin; e < item.end; ++e) ++seen[static_cast<size_t>(e)];
          if (item.partial >= 0) continue;
          // Items without a partial sum hold whole pairs.
          EXPECT_TRUE(std::binary_search(pairs.edge_ptr.begin(), pairs.edge_ptr.end(), item.begin));
          EXPECT_TRUE(std::binary_search(pairs.edge_ptr.begin(), pairs.edge_ptr.end(), item.end));
          pairs_seen += std::lower_bound(pairs.edge_ptr.begin(), pairs.edge_ptr.end(), item.end) -
                        std::lower_bound(pairs.edge_ptr.begin(), pairs.edge_ptr.end(), item.begin);
        }
        EXPECT_EQ(pairs_seen, pairs.vertex_ptr[borders[c + 1]] - pairs.vertex_ptr[borders[c]]);
        EXPECT_EQ(static_cast<int64_t>(packed.zeros.size()), cells ? range.num_cells - pairs_seen : 0);
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), g.num_edges());
    }
  }
  // The two pairs of the hub come in pieces that add up to their rows.
  const PairIndex& pairs = graph.pairs(End::dst);
  const PackedSums packed = pack_sums(pairs, 2, SumRange::of_cells(pairs, 2, 0, graph.num_dst()), 96);
  ASSERT_EQ(packed.rows.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const cuda::SplitRow& row = packed.rows[i];
    EXPECT_EQ(row.row, i);
    EXPECT_EQ(row.length, 500);
    int64_t at = pairs.edge_ptr[pairs.type_ptr[static_cast<int64_t>(i)]];
    for (int32_t p = row.first; p < row.first + row.count; ++p) {
      EXPECT_EQ(packed.items[static_cast<size_t>(p)].partial, p);
      EXPECT_EQ(packed.items[static_cast<size_t>(p)].begin, at);
      at = packed.items[static_cast<size_t>(p)].end;
    }
    EXPECT_EQ(at, pairs.edge_ptr[pairs.type_ptr[static_cast<int64_t>(i)] + 1]);
  }
}

TEST(GpuParts, RowsAreSplitOverLanesWithoutGaps) {
  for (const int64_t tiles : {1, 4, 9}) {
    for (int64_t width = 1; width < 2000; ++width) {
      const cuda::RowSplit r = cuda::split_row(width, tiles);
      ASSERT_EQ(width % r.vector, 0);
      ASSERT_GE(int64_t{r.tiles} * r.vectors * r.lanes * r.vector, width);
      ASSERT_LT((int64_t{r.tiles} - 1) * r.vectors * r.lanes * r.vector, width);
      ASSERT_LE(r.vectors * r.vector, 16);
      ASSERT_GE(r.lanes, 8);
      ASSERT_LE(r.lanes, 32);
    }
  }
  EXPECT_EQ(cuda::split_row(256, 4).tiles, 4);
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
        // Maps the entry of each step of the run to its source.
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

TEST(GpuParts, SumsOfHubsAreCut) {
  SequenceSums sums;
  sums.run = {0, 2, 3};
  sums.source = {4, 9, 4};
  sums.ptr = {0, 5, 1005, 1500};
  sums.entry.resize(1500);
  std::iota(sums.entry.begin(), sums.entry.end(), 0u);
  const SequenceItems cut = cut_sums(sums, 192);
  ASSERT_EQ(cut.item_run.size(), 3u);
  ASSERT_EQ(cut.pieces.size(), 2u);
  EXPECT_EQ(cut.entry, sums.entry);
  int64_t at = 0;
  for (size_t run = 0; run < 2; ++run) {
    int32_t partials = 0;
    for (int64_t i = cut.item_run[run]; i < cut.item_run[run + 1]; ++i) {
      const cuda::Segment& item = cut.items[static_cast<size_t>(i)];
      EXPECT_EQ(item.begin, at);
      at = item.end;
      if (item.partial >= 0) {
        EXPECT_EQ(item.partial, partials++);
      }
    }
    EXPECT_EQ(cut.piece_run[run + 1] - cut.piece_run[run], 1);
    const cuda::Segment& joined = cut.pieces[run];
    EXPECT_EQ(joined.row, run == 0 ? 9u : 4u);
    EXPECT_EQ(joined.begin, 0);
    EXPECT_EQ(joined.end, partials);
    EXPECT_LE(partials, cut.num_partials);
  }
  EXPECT_EQ(at, 1500);
}

}  // namespace
}  // namespace nacre::test
