// Rows are walked in windows of kWindow rows, one window by one thread, and the sums of the windows
// are added in order.
//
// One array holds, for every source, the last row that read it. With windows that are aligned to
// powers of two, this array alone tells whether a source is new in the current run of 64, 1,024 or
// 16,384 rows: it is new if the last row that read it lies in an earlier run.
#include "nacre/graph/features.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/graph/degrees.h"

namespace nacre {
namespace {

using F = GraphFeature;

constexpr int64_t kWindow = 16384;
constexpr int kSmallShift = 6;    // runs of 64 rows
constexpr int kMiddleShift = 10;  // runs of 1,024 rows

constexpr GraphFeatureInfo kInfos[] = {
    {"rows", "destinations", true},
    {"columns", "sources, with the halo", true},
    {"nonzeros", "edges", true},
    {"density", "edges over rows times columns"},
    {"edge_types", "number of edge types", true},
    {"row_mean", "mean non-zeros of a row", true},
    {"row_deviation", "standard deviation of the non-zeros of a row", true},
    {"row_variation", "row_deviation over row_mean"},
    {"row_skew", "skewness of the non-zeros of a row"},
    {"row_min", "fewest non-zeros of a row", true},
    {"row_p10", "non-zeros that a tenth of the rows do not exceed", true},
    {"row_median", "median of the non-zeros of a row", true},
    {"row_p90", "non-zeros that 90 % of the rows do not exceed", true},
    {"row_p99", "non-zeros that 99 % of the rows do not exceed", true},
    {"row_max", "most non-zeros of a row", true},
    {"row_gini", "Gini coefficient of the non-zeros of the rows"},
    {"row_empty", "share of rows without a non-zero"},
    {"row_longest", "share of all non-zeros in the longest row"},
    {"row_change", "mean difference in length of consecutive rows, over row_mean"},
    {"column_mean", "mean non-zeros of a column", true},
    {"column_deviation", "standard deviation of the non-zeros of a column", true},
    {"column_variation", "column_deviation over column_mean"},
    {"column_skew", "skewness of the non-zeros of a column"},
    {"column_min", "fewest non-zeros of a column", true},
    {"column_p10", "non-zeros that a tenth of the columns do not exceed", true},
    {"column_median", "median of the non-zeros of a column", true},
    {"column_p90", "non-zeros that 90 % of the columns do not exceed", true},
    {"column_p99", "non-zeros that 99 % of the columns do not exceed", true},
    {"column_max", "most non-zeros of a column", true},
    {"column_gini", "Gini coefficient of the non-zeros of the columns"},
    {"column_empty", "share of columns without a non-zero"},
    {"column_longest", "share of all non-zeros in the longest column"},
    {"distance_mean", "mean |source - destination| of an edge, over the columns"},
    {"distance_log", "mean log2(1 + |source - destination|) of an edge"},
    {"bandwidth", "largest |source - destination|, over the columns"},
    {"gap_log", "mean log2(1 + gap) between consecutive sources of a row"},
    {"repeated", "share of edges whose source is also a source of the row before"},
    {"distinct_64", "distinct sources in runs of 64 rows, over the edges"},
    {"distinct_1024", "distinct sources in runs of 1,024 rows, over the edges"},
    {"distinct_16384", "distinct sources in runs of 16,384 rows, over the edges"},
    {"reuse_log", "mean log2(1 + rows since the source was last read), at most 16,384 rows"},
    {"self_loops", "share of edges that lead from a vertex to itself"},
    {"duplicates", "share of edges beyond the first of each source and destination"},
    {"halo_columns", "share of sources that belong to other parts"},
    {"halo_nonzeros", "share of edges whose source belongs to another part"},
    {"assortativity", "correlation of the destination's row length and the source's column length"},
};
static_assert(std::size(kInfos) == kGraphFeatures);

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

// Sums over the edges of one window of rows.
struct EdgeSums {
  int64_t distance = 0;
  int64_t farthest = 0;
  int64_t gaps = 0;
  int64_t repeated = 0;
  int64_t distinct_small = 0, distinct_middle = 0, distinct_large = 0;
  int64_t self_loops = 0, duplicates = 0, halo = 0;
  int64_t row_changes = 0;
  double distance_log = 0, gap_log = 0, reuse_log = 0;
  // For the correlation of the row length with the column length at the two ends of an edge: sums
  // over the edges of the product of both lengths and of the square of each, after subtraction of
  // the means.
  double both = 0, row_squares = 0, column_squares = 0;
};

void add(EdgeSums& a, const EdgeSums& b) {
  a.distance += b.distance;
  a.farthest = std::max(a.farthest, b.farthest);
  a.gaps += b.gaps;
  a.repeated += b.repeated;
  a.distinct_small += b.distinct_small;
  a.distinct_middle += b.distinct_middle;
  a.distinct_large += b.distinct_large;
  a.self_loops += b.self_loops;
  a.duplicates += b.duplicates;
  a.halo += b.halo;
  a.row_changes += b.row_changes;
  a.distance_log += b.distance_log;
  a.gap_log += b.gap_log;
  a.reuse_log += b.reuse_log;
  a.both += b.both;
  a.row_squares += b.row_squares;
  a.column_squares += b.column_squares;
}

// Visits the edges of all rows, window by window in parallel, and adds up their figures.
class EdgeWalk {
 public:
  EdgeWalk(const Graph& graph, int64_t own, const std::vector<int64_t>& out)
      : graph_(graph), own_(own), out_(out), last_(num_threads()) {
    const auto edges = static_cast<double>(graph.num_edges());
    for (int64_t v = 0; v < graph.num_dst(); ++v) row_mean_ += square(graph.in_degree(v));
    for (const int64_t d : out) column_mean_ += square(d);
    row_mean_ = ratio(row_mean_, edges);
    column_mean_ = ratio(column_mean_, edges);
  }

  EdgeSums run() {
    const int64_t rows = graph_.num_dst();
    std::vector<EdgeSums> windows((rows + kWindow - 1) / kWindow);
    parallel_for(rows, kWindow, [&](int64_t b, int64_t e) { windows[b / kWindow] = window(b, e); });
    EdgeSums sums;
    for (const EdgeSums& w : windows) add(sums, w);
    return sums;
  }

 private:
  static double square(int64_t value) { return static_cast<double>(value) * static_cast<double>(value); }

  EdgeSums window(int64_t begin, int64_t end) {
    EdgeSums sums;
    std::vector<uint32_t>& last = last_[thread_index()];
    last.resize(graph_.num_src(), 0);
    for (int64_t row = begin; row < end; ++row) {
      if (row > 0) sums.row_changes += std::abs(graph_.in_degree(row) - graph_.in_degree(row - 1));
      walk_row(row, begin, last, sums);
    }
    // This thread uses `last` again for its next window, so the entries that this window set become
    // 0.
    for (int64_t i = graph_.row_ptr()[begin]; i < graph_.row_ptr()[end]; ++i) last[graph_.col_idx()[i]] = 0;
    return sums;
  }

  // last[source] is 0 if no row of this window has read the source yet, otherwise 1 + r - begin,
  // where r is the last row that read it.
  void walk_row(int64_t row, int64_t begin, std::vector<uint32_t>& last, EdgeSums& sums) const {
    const int64_t first = graph_.row_ptr()[row];
    const auto place = static_cast<uint32_t>(row - begin);
    for (int64_t i = first; i < graph_.row_ptr()[row + 1]; ++i) {
      const NodeId source = graph_.col_idx()[i];
      const int64_t distance = std::abs(static_cast<int64_t>(source) - row);
      sums.distance += distance;
      sums.farthest = std::max(sums.farthest, distance);
      sums.distance_log += std::log2(1.0 + static_cast<double>(distance));
      sums.self_loops += distance == 0 ? 1 : 0;
      sums.halo += source >= own_ ? 1 : 0;
      if (i > first) {
        const NodeId before = graph_.col_idx()[i - 1];
        ++sums.gaps;
        sums.gap_log += std::log2(1.0 + static_cast<double>(source - before));
        sums.duplicates += source == before ? 1 : 0;
      }
      const double row_part = static_cast<double>(graph_.in_degree(row)) - row_mean_;
      const double column_part = static_cast<double>(out_[source]) - column_mean_;
      sums.both += row_part * column_part;
      sums.row_squares += row_part * row_part;
      sums.column_squares += column_part * column_part;
      count_use(place, last[source], sums);
    }
  }

  static void count_use(uint32_t place, uint32_t& last, EdgeSums& sums) {
    const bool fresh = last == 0;
    const uint32_t then = fresh ? 0 : last - 1;
    const int64_t age = fresh ? kWindow : place - then;
    if (age == 1) ++sums.repeated;
    if (fresh) ++sums.distinct_large;
    if (fresh || then >> kMiddleShift != place >> kMiddleShift) ++sums.distinct_middle;
    if (fresh || then >> kSmallShift != place >> kSmallShift) ++sums.distinct_small;
    sums.reuse_log += std::log2(1.0 + static_cast<double>(age));
    last = place + 1;
  }

  const Graph& graph_;
  const int64_t own_;
  const std::vector<int64_t>& out_;
  std::vector<std::vector<uint32_t>> last_;  // one for each thread
  double row_mean_ = 0, column_mean_ = 0;    // means over the edges
};

// Writes the figures of the row or column lengths into the features from `first` on, in the order
// of GraphFeature.
void write_lengths(const DegreeStats& s, double edges, int64_t count, F first, GraphFeatures& out) {
  const double values[] = {s.mean,
                           s.deviation,
                           ratio(s.deviation, s.mean),
                           s.skew,
                           static_cast<double>(s.min),
                           static_cast<double>(s.p10),
                           static_cast<double>(s.median),
                           static_cast<double>(s.p90),
                           static_cast<double>(s.p99),
                           static_cast<double>(s.max),
                           s.gini,
                           ratio(static_cast<double>(s.zeros), static_cast<double>(count)),
                           ratio(static_cast<double>(s.max), edges)};
  std::copy(std::begin(values), std::end(values), out.value.begin() + static_cast<int>(first));
}

void write_edges(const EdgeSums& s, const Graph& graph, GraphFeatures& f) {
  const auto edges = static_cast<double>(graph.num_edges());
  const auto columns = static_cast<double>(graph.num_src());
  const auto share = [&](int64_t count) { return ratio(static_cast<double>(count), edges); };
  f[F::row_change] =
      ratio(ratio(static_cast<double>(s.row_changes), static_cast<double>(graph.num_dst() - 1)), f[F::row_mean]);
  f[F::distance_mean] = ratio(share(s.distance), columns);
  f[F::distance_log] = ratio(s.distance_log, edges);
  f[F::bandwidth] = ratio(static_cast<double>(s.farthest), columns);
  f[F::gap_log] = ratio(s.gap_log, static_cast<double>(s.gaps));
  f[F::repeated] = share(s.repeated);
  f[F::distinct_64] = share(s.distinct_small);
  f[F::distinct_1024] = share(s.distinct_middle);
  f[F::distinct_16384] = share(s.distinct_large);
  f[F::reuse_log] = ratio(s.reuse_log, edges);
  f[F::self_loops] = share(s.self_loops);
  f[F::duplicates] = share(s.duplicates);
  f[F::halo_nonzeros] = share(s.halo);
  f[F::assortativity] = ratio(s.both, std::sqrt(s.row_squares) * std::sqrt(s.column_squares));
}

}  // namespace

const GraphFeatureInfo& graph_feature_info(GraphFeature feature) { return kInfos[static_cast<size_t>(feature)]; }

GraphFeatures graph_features(const Graph& graph, int64_t own) {
  NACRE_CHECK(own >= 0 && own <= graph.num_src(), "a part owns some of its sources");
  GraphFeatures f;
  const auto edges = static_cast<double>(graph.num_edges());
  const auto rows = static_cast<double>(graph.num_dst());
  const auto columns = static_cast<double>(graph.num_src());
  f[F::rows] = rows;
  f[F::columns] = columns;
  f[F::nonzeros] = edges;
  f[F::density] = ratio(edges, rows * columns);
  f[F::edge_types] = graph.num_edge_types();
  f[F::halo_columns] = ratio(columns - static_cast<double>(own), columns);
  const std::vector<int64_t> out = out_degrees(graph);
  write_lengths(degree_stats(graph.num_dst(), graph.num_edges(), [&](int64_t v) { return graph.in_degree(v); }), edges,
                graph.num_dst(), F::row_mean, f);
  write_lengths(degree_stats(graph.num_src(), graph.num_edges(), [&](int64_t v) { return out[v]; }), edges,
                graph.num_src(), F::column_mean, f);
  write_edges(EdgeWalk(graph, own, out).run(), graph, f);
  return f;
}

}  // namespace nacre
