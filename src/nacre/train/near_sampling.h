// NearSampling: lets the sampler of a run prefer vertices whose feature rows are in device memory
// (--locality; sample/locality.h).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "nacre/sample/locality.h"

namespace nacre {

// Returns the scale that --locality asks for: 0 for off, -1 for auto. Throws UserError if the value
// is unknown.
double locality_scale(const std::string& text);

class NearSampling {
 public:
  // Makes batch samplers of `sampler` prefer the given vertices by `scale` from now on. If `scale`
  // is -1, LocalityScale adapts it.
  NearSampling(Sampler& sampler, std::span<const NodeId> near, double scale);

  // Tells the object that an epoch begins and how many seconds loading has taken so far. If
  // LocalityScale adapts the scale, the scale changes now. The first batches of the epoch may have
  // been drawn already.
  void begin_epoch(double loading_seconds);
  double scale() const { return locality_->scale(); }

 private:
  std::shared_ptr<Locality> locality_;
  bool adapts_;
  LocalityScale search_;
  double began_ = 0;   // time at which the epoch began; 0 if none has begun
  double loaded_ = 0;  // seconds that loading had taken when the epoch began
};

}  // namespace nacre
