// Degrees are counted in chunks of fixed size and the counts are integers, so the result has the
// same bits on any number of threads.
#include "nacre/graph/degrees.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <span>

#include "nacre/base/parallel.h"

namespace nacre {
namespace {

// Degrees below kLimit are counted, and the others are listed. At most num_edges / kLimit vertices
// have a larger degree.
class DegreeCounts {
 public:
  void add(int64_t degree) {
    if (degree < kLimit) {
      ++counts_[degree];
    } else {
      large_.push_back(degree);
    }
  }

  void merge(const DegreeCounts& other) {
    for (int64_t d = 0; d < kLimit; ++d) counts_[d] += other.counts_[d];
    large_.insert(large_.end(), other.large_.begin(), other.large_.end());
  }

  DegreeStats stats(int64_t vertices, int64_t edges) {
    std::sort(large_.begin(), large_.end());
    DegreeStats s;
    if (vertices == 0) return s;
    s.zeros = counts_[0];
    const auto n = static_cast<double>(vertices);
    const auto sum = static_cast<double>(edges);
    s.mean = sum / n;
    double weighted = 0;  // sum over vertices, sorted by degree, of (position + 1) * degree
    double squares = 0;
    double cubes = 0;
    int64_t before = 0;
    each([&](int64_t degree, int64_t count) {
      const auto c = static_cast<double>(count);
      const auto d = static_cast<double>(degree);
      weighted += d * c * (static_cast<double>(before) + (c + 1) / 2);
      squares += c * (d - s.mean) * (d - s.mean);
      cubes += c * (d - s.mean) * (d - s.mean) * (d - s.mean);
      before += count;
    });
    s.gini = sum > 0 ? std::max(0.0, 2 * weighted / (n * sum) - (n + 1) / n) : 0;
    s.deviation = std::sqrt(squares / n);
    s.skew = s.deviation > 0 ? cubes / n / (s.deviation * s.deviation * s.deviation) : 0;
    set_ranks(vertices, s);
    return s;
  }

 private:
  static constexpr int64_t kLimit = 1 << 16;

  // Calls visit(degree, number of vertices) for every degree that occurs, in ascending order.
  void each(FunctionRef<void(int64_t, int64_t)> visit) const {
    for (int64_t d = 0; d < kLimit; ++d) {
      if (counts_[d] > 0) visit(d, counts_[d]);
    }
    for (const int64_t d : large_) visit(d, 1);
  }

  // Returns the index, from 0, of the percentile `share` in a sorted list with an entry for each
  // vertex, by the nearest-rank rule.
  static int64_t rank(int64_t vertices, double share) {
    return std::max<int64_t>(0, static_cast<int64_t>(std::ceil(share * static_cast<double>(vertices))) - 1);
  }

  void set_ranks(int64_t vertices, DegreeStats& s) const {
    const int64_t at[] = {
        0, rank(vertices, 0.1), (vertices - 1) / 2, rank(vertices, 0.9), rank(vertices, 0.99), vertices - 1};
    int64_t* const value[] = {&s.min, &s.p10, &s.median, &s.p90, &s.p99, &s.max};
    size_t next = 0;
    int64_t before = 0;
    each([&](int64_t degree, int64_t count) {
      for (; next < std::size(at) && at[next] < before + count; ++next) *value[next] = degree;
      before += count;
    });
  }

  std::vector<int64_t> counts_ = std::vector<int64_t>(kLimit, 0);
  std::vector<int64_t> large_;
};

}  // namespace

std::vector<int64_t> out_degrees(const Graph& graph) {
  std::vector<int64_t> degree(graph.num_src(), 0);
  parallel_for(graph.num_edges(), 1 << 18, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      std::atomic_ref(degree[graph.col_idx()[i]]).fetch_add(1, std::memory_order_relaxed);
    }
  });
  return degree;
}

DegreeStats degree_stats(int64_t vertices, int64_t edges, FunctionRef<int64_t(int64_t)> degree) {
  constexpr int64_t pieces = 16;
  constexpr int64_t rows = 1 << 13;
  const int64_t chunk = std::max<int64_t>(rows, (vertices + pieces - 1) / pieces);
  std::vector<DegreeCounts> parts((vertices + chunk - 1) / chunk);
  parallel_for(vertices, chunk, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) parts[b / chunk].add(degree(v));
  });
  DegreeCounts all;
  for (const DegreeCounts& part : parts) all.merge(part);
  return all.stats(vertices, edges);
}

}  // namespace nacre
