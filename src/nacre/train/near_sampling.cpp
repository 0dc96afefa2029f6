#include "nacre/train/near_sampling.h"

#include <cstdlib>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"

namespace nacre {

double locality_scale(const std::string& text) {
  if (text == "off") return 0;
  if (text == "auto") return -1;
  char* end = nullptr;
  const double scale = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(scale >= 1 && scale <= 1000))
    throw UserError("--locality", "'" + text + "' is neither off nor auto nor a number from 1 to 1000",
                    "write for example --locality 4");
  return scale;
}

NearSampling::NearSampling(Sampler& sampler, std::span<const NodeId> near, double scale) : adapts_(scale < 0) {
  std::vector<uint8_t> local(static_cast<size_t>(sampler.graph().num_nodes()), 0);
  for (const NodeId v : near) local[v] = 1;
  locality_ = std::make_shared<Locality>(sampler.graph(), local, sampler.layers());
  locality_->set_scale(adapts_ ? 1 : scale);
  sampler.draw_with(locality_sampler(sampler, locality_));
}

void NearSampling::begin_epoch(double loading_seconds) {
  const double now = now_seconds();
  if (adapts_ && began_ > 0 && now > began_) {
    search_.after_epoch((loading_seconds - loaded_) / (now - began_));
    locality_->set_scale(search_.scale);
  }
  began_ = now;
  loaded_ = loading_seconds;
}

}  // namespace nacre
