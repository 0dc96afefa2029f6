#include "nacre/partition/work.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nacre/base/parallel.h"

namespace nacre {
namespace {

constexpr int64_t kWorkChunk = 1 << 16;
// The sum of all work in units stays below 2^53, so that doubles hold it exactly.
constexpr double kMostUnits = 0x1p52;
constexpr double kFinest = 1024;  // most units of the larger one of row_work and edge_work

}  // namespace

double work_units(const Graph& graph, const PartitionOptions& options) {
  const double total = options.row_work * static_cast<double>(graph.num_dst()) +
                       options.edge_work * static_cast<double>(graph.num_edges());
  return total > 0 ? std::min(kFinest / std::max(options.row_work, options.edge_work), kMostUnits / total) : 1;
}

Buffer<int64_t> vertex_work(const Graph& graph, const PartitionOptions& options) {
  const double units = work_units(graph, options);
  Buffer<int64_t> work(graph.num_dst());
  parallel_for(graph.num_dst(), kWorkChunk, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) {
      const auto edges = static_cast<double>(graph.in_degree(v));
      work[v] = std::llround((options.row_work + options.edge_work * edges) * units);
    }
  });
  return work;
}

int64_t sum_of(const Buffer<int64_t>& values) {
  return std::accumulate(values.data(), values.data() + values.size(), int64_t{0});
}

Balance balance_of(int64_t total, std::span<const double> shares, double imbalance) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  Balance balance;
  for (const double share : shares) {
    const double target = static_cast<double>(total) * share / sum;
    balance.target.push_back(std::llround(target));
    balance.low.push_back(static_cast<int64_t>(std::ceil(target * (1 - imbalance))));
    balance.high.push_back(static_cast<int64_t>(std::floor(target * (1 + imbalance))));
  }
  return balance;
}

std::vector<int64_t> loads_of(const uint16_t* part, const int64_t* work, int64_t count, int parts) {
  std::vector<int64_t> load(parts, 0);
  for (int64_t v = 0; v < count; ++v) load[part[v]] += work[v];
  return load;
}

}  // namespace nacre
