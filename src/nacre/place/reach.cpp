// At first only the seeds of a batch are known. In every hop, all known vertices draw, and what
// they draw is known from then on. The probabilities follow from messages between the ends of edges
// (dynamic message passing). They are exact if seeds are independent and the graph of the pairs has
// no circles; docs/dev/placement.md says what circles change.
//
// Let a_j(u) be the probability that u is known first after j hops, and S_j(u) = 1 − a_0(u) − … −
// a_j(u). The probability that v is not known after t hops is the product of (1 − a_0(v)) and of
// θ_t(u → v) over all u that may draw v: the probability that u does not draw v in hops 0 … t − 1
// in a graph where v draws nobody. There, u is not known after j hops with probability S_j(u) /
// θ_j(v → u). Both directions of a pair are computed together, hop by hop, from the a_j of its two
// ends. So nothing is stored for edges, and the time is proportional to edges × hops².
#include "nacre/place/reach.h"

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/place/chances.h"
#include "nacre/place/drawers.h"

namespace nacre {
namespace {

constexpr int64_t kReachRows = 1 << 10;

// Holds the state of one direction of a pair: the first end may draw the second.
struct Direction {
  double silent = 1;   // θ: the probability that the first end has not drawn the second yet
  double waiting = 0;  // the probability that the first end is known and has not drawn the second
                       // yet
  double unknown = 1;  // the probability that the first end is not known, if the second draws
                       // nobody

  // Advances the state to the next hop. `not_known` is the probability that the first end is not
  // known after this hop, whether or not the second end draws it; `other_silent` is the θ of the
  // other direction.
  void learn(double not_known, double other_silent) {
    const double now = other_silent > 1e-12 ? std::min(unknown, not_known / other_silent) : 0;
    waiting += unknown - now;
    unknown = now;
  }
  void draw(double chance) {
    silent = std::max(0.0, silent - chance * waiting);
    waiting *= 1 - chance;
  }
};

// Returns θ_hops(u → v), which the beginning of this file defines.
double not_drawn(const float* first_u, const float* first_v, const PairChances& chances, int hops) {
  if (hops == 1) return 1 - double{first_u[0]} * chances.forth[0];
  Direction forth, back;  // forth: u draws v; back: v draws u
  double not_known_u = 1, not_known_v = 1;
  for (int j = 0; j < hops; ++j) {
    not_known_u -= first_u[j];
    not_known_v -= first_v[j];
    const double silent = forth.silent;
    forth.learn(not_known_u, back.silent);
    back.learn(not_known_v, silent);
    forth.draw(chances.forth[j]);
    back.draw(chances.back[j]);
  }
  return forth.silent;
}

class Reach {
 public:
  Reach(const Graph& graph, const SampleOptions& options, int hops, std::span<const float> seed)
      : vertices_(graph.num_nodes()),
        chances_(graph, options, hops),
        lists_(graph, chances_.by_edge()),
        known_(seed.begin(), seed.end()) {
    parallel_for(vertices_, kReachRows, [&](int64_t begin, int64_t end) {
      for (int64_t v = begin; v < end; ++v) of(v)[0] = known_[static_cast<size_t>(v)];
    });
  }

  std::vector<float> run() {
    for (int hop = 0; hop < chances_.hops(); ++hop) {
      chances_.set_hop(hop, known_, lists_);
      parallel_for(vertices_, kReachRows, [&](int64_t begin, int64_t end) {
        for (int64_t v = begin; v < end; ++v) step(v, hop + 1);
      });
      parallel_for(vertices_, kReachRows, [&](int64_t begin, int64_t end) {
        for (int64_t v = begin; v < end; ++v) {
          float& known = known_[static_cast<size_t>(v)];
          known = std::min(1.0f, known + of(v)[hop + 1]);
        }
      });
    }
    return std::move(known_);
  }

 private:
  float* of(int64_t v) { return chances_.record(v); }  // returns a_0(v), a_1(v), …

  // Computes a_hops(v) from the earlier a of v and of the vertices that may draw it.
  void step(int64_t v, int hops) {
    float* first_v = of(v);
    double not_known = 1;
    for (int j = 0; j < hops; ++j) not_known -= first_v[j];
    double stays = 1 - static_cast<double>(first_v[0]);
    if (stays > 0) {
      PairChances pair_chances;
      const auto fetch = [&](NodeId u) { __builtin_prefetch(of(u)); };
      const auto add = [&](const DrawPair& pair) {
        const float* first_u = of(pair.u);
        if (std::all_of(first_u, first_u + hops, [](float a) { return a == 0; })) return;
        chances_.fill(v, pair, hops, pair_chances);
        stays *= not_drawn(first_u, first_v, pair_chances, hops);
      };
      lists_.each(v, add, fetch);
    }
    first_v[hops] = static_cast<float>(std::max(0.0, not_known - stays));
  }

  int64_t vertices_;
  DrawChances chances_;
  DrawerLists lists_;
  std::vector<float> known_;
};

}  // namespace

std::vector<float> reach_probabilities(const Graph& graph, const SampleOptions& options, int hops,
                                       std::span<const float> seed) {
  NACRE_CHECK(static_cast<int64_t>(seed.size()) == graph.num_nodes(),
              "there must be one probability of being a seed for each vertex");
  return Reach(graph, options, hops, seed).run();
}

}  // namespace nacre
