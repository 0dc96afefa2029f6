#include "nacre/partition/metis.h"

#include <metis.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

// METIS adds up weights in numbers of type idx_t, so their sum must stay below this bound.
constexpr double kMostWeight = std::numeric_limits<idx_t>::max() / 2.0;

template <class T>
std::vector<idx_t> scaled(const Buffer<T>& values, T least) {
  const double sum = std::accumulate(values.data(), values.data() + values.size(), 0.0);
  const double factor = sum > kMostWeight ? kMostWeight / sum : 1.0;
  std::vector<idx_t> result(values.size());
  parallel_for(values.size(), 1 << 16, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const double value = std::round(static_cast<double>(values[i]) * factor);
      result[i] = static_cast<idx_t>(std::max<double>(value, static_cast<double>(least)));
    }
  });
  return result;
}

void require_small(const Coarse& graph) {
  constexpr int64_t most = std::numeric_limits<idx_t>::max();
  const int64_t entries = graph.row_ptr[graph.count()];
  if (graph.count() < most && entries < most) return;
  throw UserError("METIS", human_count(entries) + " entries of neighbours are more than its 32-bit numbers can count",
                  "use --method fennel");
}

}  // namespace

std::vector<uint16_t> metis_parts(const Coarse& graph, std::span<const double> shares, const MetisOptions& options) {
  const int64_t count = graph.count();
  if (count == 0 || shares.size() < 2) return std::vector<uint16_t>(count, 0);
  require_small(graph);
  std::vector<idx_t> row_ptr(graph.row_ptr.data(), graph.row_ptr.data() + count + 1);
  std::vector<idx_t> adjacent(graph.adjacent.data(), graph.adjacent.data() + graph.adjacent.size());
  std::vector<idx_t> edge_weight = scaled<uint32_t>(graph.weight, 1);
  std::vector<idx_t> vertex_weight = scaled<int64_t>(graph.work, 0);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<real_t> targets;
  for (const double share : shares) targets.push_back(static_cast<real_t>(share / sum));
  idx_t settings[METIS_NOPTIONS];
  METIS_SetDefaultOptions(settings);
  settings[METIS_OPTION_SEED] = static_cast<idx_t>(options.seed % std::numeric_limits<idx_t>::max());
  settings[METIS_OPTION_NCUTS] = options.tries;
  settings[METIS_OPTION_UFACTOR] = static_cast<idx_t>(std::clamp(options.imbalance * 1000, 1.0, 1e6));
  auto vertices = static_cast<idx_t>(count), constraints = idx_t{1}, parts = static_cast<idx_t>(shares.size());
  idx_t cut = 0;
  std::vector<idx_t> part(count, 0);
  const auto partition = options.recursive ? METIS_PartGraphRecursive : METIS_PartGraphKway;
  const int status = partition(&vertices, &constraints, row_ptr.data(), adjacent.data(), vertex_weight.data(), nullptr,
                               edge_weight.data(), &parts, targets.data(), nullptr, settings, &cut, part.data());
  if (status == METIS_ERROR_MEMORY) throw RuntimeError("METIS", "there is not enough memory; use --method fennel");
  // METIS catches SIGTERM while it works, and returns this status when the signal arrives. The
  // handler of METIS is no longer installed now, so the signal is sent again to the handler that
  // was there before.
  if (status == METIS_ERROR) std::raise(SIGTERM);
  if (status != METIS_OK) throw RuntimeError("METIS", "failed with status " + std::to_string(status));
  std::vector<uint16_t> result(count);
  std::copy(part.begin(), part.end(), result.begin());
  return result;
}

int64_t metis_bytes(int64_t vertices, int64_t entries) {
  // The result counts the four arrays that METIS is given, its own coarser graphs (together as
  // large as the first), and the lists of boundary vertices and of their connections.
  return vertices * 120 + entries * 24;
}

}  // namespace nacre
