// Locality-aware sampling (contract row DP6; section 4 of the data placement paper): vertices whose
// feature rows are near are drawn more often, and what is drawn counts less in return, so that sums
// over neighbours stay unbiased. A vertex is local if its row lies in the memory of a device.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nacre/sample/sample.h"

namespace nacre {

// Says which vertices every hop prefers, and by how much. Samplers of several threads share one
// object.
//
// The hop that draws input rows prefers the local vertices. The hop before it prefers vertices with
// many local neighbours, and so on: with A the adjacency matrix, v_1 the local vertices as a vector
// of 0 and 1, and v_(l+1) = v_l A, the l-th hop from the input prefers the `most` vertices with the
// largest positive values of v_l (Q'_l in the paper). Of equal values, the lower vertex goes first.
class Locality {
 public:
  Locality(const Graph& graph, std::span<const uint8_t> local, int hops, int64_t most = 8192);

  // Returns for every vertex whether the hop prefers it; hop 0 is next to the seeds.
  std::span<const uint8_t> preferred(int hop) const { return preferred_[static_cast<size_t>(hop)]; }
  int hops() const { return static_cast<int>(preferred_.size()); }

  // Return and set the weight of preferred vertices relative to that of others; the number of draws
  // stays the same. With scale 1, samples are those of the sampler without locality. Batches that
  // begin after set_scale() use the new value.
  double scale() const { return scale_; }
  void set_scale(double scale) { scale_ = scale; }

 private:
  std::vector<std::vector<uint8_t>> preferred_;
  std::atomic<double> scale_{1};
};

// Returns a function that makes batch samplers like those of `sampler`, except that they prefer
// near vertices. `sampler` must outlive these batch samplers. Throws UserError if its method draws
// whole subgraphs.
//
// Node-wise sampling draws each vertex's edges by weight, as draw.h defines it, with the weight of
// edges from preferred vertices multiplied by the scale. Layer-wise sampling multiplies the
// importance of preferred candidates. A hop of fan-out -1 has no choice and stays as it is.
MakeBatchSampler locality_sampler(const Sampler& sampler, std::shared_ptr<const Locality> locality);

// Adapts the scale to the share of the time that loading features takes (Algorithm 2 of the paper).
struct LocalityScale {
  double low = 0.15;   // lt in the paper: if loading takes a smaller share of the time, the scale
                       // may shrink
  double high = 0.2;   // ut in the paper: if loading takes a larger share of the time, the scale
                       // doubles
  double most = 8;     // MAXS in the paper: the largest scale
  double scale = 1;    // s in the paper: the present scale
  double before = 1;   // value of the scale before it was doubled last
  bool fixed = false;  // whether the scale stays as it is from now on
  // Adapts the scale after an epoch, of whose time loading features took the share `loading_share`.
  void after_epoch(double loading_share);
};

}  // namespace nacre
