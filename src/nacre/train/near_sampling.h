// NearSampling: lets the sampler of a run prefer vertices whose feature rows are in device memory
// (--locality; sample/locality.h).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "nacre/sample/locality.h"

namespace nacre {

// Returns the scale that --locality asks for: 0 for off, -1 for auto. Throws UserError.
double locality_scale(const std::string& text);

class NearSampling {
 public:
  // From now on, batch samplers of `sampler` prefer the given vertices by `scale`; -1: the scale
  // follows Algorithm 2.
  NearSampling(Sampler& sampler, std::span<const NodeId> near, double scale);

  // Takes the seconds that loading has taken so far, and adapts the scale if it follows Algorithm
  // 2. The first batches of the epoch may have been drawn already.
  void begin_epoch(double loading_seconds);
  double scale() const { return locality_->scale(); }

 private:
  std::shared_ptr<Locality> locality_;
  bool adapts_;
  LocalityScale search_;
  double began_ = 0;   // when the epoch began; 0: none has begun
  double loaded_ = 0;  // seconds of loading before the epoch
};

}  // namespace nacre
