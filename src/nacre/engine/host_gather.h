// HostGather: gathers texts for communicators that move memory of a GPU. The texts lie in host
// memory, so a communicator of host memory gathers them.
#pragma once

#include <string>
#include <vector>

#include "nacre/cluster/communicator.h"

namespace nacre {

// The caller waits for a gather as soon as it has started it, so all of the work is done in
// finish().
class HostGather final : public CommOperation {
 public:
  HostGather(std::vector<std::string>& texts, Communicator& host) : texts_(texts), host_(host) {}
  void finish() override {
    const double before = host_.counters().gather.idle;
    texts_ = host_.all_gather(texts_[host_.rank()]);
    idle_ = host_.counters().gather.idle - before;
  }
  double idle_seconds() const override { return idle_; }

 private:
  std::vector<std::string>& texts_;
  Communicator& host_;
  double idle_ = 0;
};

}  // namespace nacre
