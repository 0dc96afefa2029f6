// The expected number of candidates with keys below τ is Σ over v of
//   1 − Π over u (1 − known(u) (1 − e^(−τ s(u, v)))),
// where s(u, v) is what u adds to the importance of v. It is a concave function of τ, so Newton's
// method from the left approaches the threshold without passing it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "nacre/base/parallel.h"
#include "nacre/place/chances.h"

namespace nacre {
namespace {

constexpr int64_t kThresholdRows = 1 << 12;
constexpr int kMostSteps = 40;

struct Drawn {
  double count = 0;
  double slope = 0;
};

class ExpectedDraws {
 public:
  ExpectedDraws(const Graph& graph, const DrawerLists& lists, std::span<const float> known,
                std::span<const float> edge_share2)
      : graph_(graph),
        lists_(lists),
        known_(known),
        edge_share2_(edge_share2),
        parts_(static_cast<size_t>((graph.num_nodes() + kThresholdRows - 1) / kThresholdRows)) {}

  Drawn at(double threshold) {
    parallel_for(graph_.num_nodes(), kThresholdRows, [&](int64_t begin, int64_t end) {
      Drawn sum;
      for (int64_t v = begin; v < end; ++v) add(v, threshold, sum);
      parts_[static_cast<size_t>(begin / kThresholdRows)] = sum;
    });
    Drawn total;
    for (const Drawn& part : parts_) {
      total.count += part.count;
      total.slope += part.slope;
    }
    return total;
  }

 private:
  double rate(const DrawPair& pair) const {
    if (edge_share2_.empty()) {
      const auto degree = static_cast<double>(graph_.in_degree(pair.u));
      return static_cast<double>(pair.edges) / (degree * degree);
    }
    double sum = 0;
    for (int64_t i = 0; i < pair.edges; ++i) sum += edge_share2_[pair.ids[i]];
    return sum;
  }
  void add_pair(double known, double rate, double threshold, double& none, double& slope) const {
    if (!(rate > 0) || !(known > 0)) return;
    const double above = std::exp(-threshold * rate);
    const double factor = 1 - known * (1 - above);
    none *= factor;
    if (factor > 0) slope += known * rate * above / factor;
  }
  void add(int64_t v, double threshold, Drawn& sum) const {
    double none = 1, slope = 0;
    lists_.each(v, [&](const DrawPair& pair) { add_pair(known_[pair.u], rate(pair), threshold, none, slope); });
    // A self loop makes a vertex its own candidate.
    const double loop = loop_rate(v);
    add_pair(known_[static_cast<size_t>(v)], loop, threshold, none, slope);
    sum.count += 1 - none;
    sum.slope += none * slope;
  }
  double loop_rate(int64_t v) const {
    const auto degree = static_cast<double>(graph_.in_degree(v));
    const auto row = graph_.col_idx().span().subspan(static_cast<size_t>(graph_.row_ptr()[v]),
                                                     static_cast<size_t>(graph_.in_degree(v)));
    const auto [first, last] = std::equal_range(row.begin(), row.end(), static_cast<NodeId>(v));
    double sum = 0;
    for (auto e = first; e != last; ++e) {
      const auto position = static_cast<size_t>(graph_.row_ptr()[v] + (e - row.begin()));
      sum += edge_share2_.empty() ? 1 / (degree * degree) : edge_share2_[position];
    }
    return sum;
  }

  const Graph& graph_;
  const DrawerLists& lists_;
  std::span<const float> known_;
  std::span<const float> edge_share2_;
  std::vector<Drawn> parts_;
};

}  // namespace

double layer_threshold(const Graph& graph, const DrawerLists& lists, std::span<const float> known,
                       std::span<const float> edge_share2, int fanout) {
  ExpectedDraws draws(graph, lists, known, edge_share2);
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (draws.at(infinite).count <= fanout) return infinite;
  double threshold = 0;
  for (int step = 0; step < kMostSteps; ++step) {
    const Drawn drawn = draws.at(threshold);
    const double missing = fanout - drawn.count;
    if (missing <= 1e-6 * fanout || !(drawn.slope > 0)) break;
    threshold += missing / drawn.slope;
  }
  return threshold;
}

}  // namespace nacre
