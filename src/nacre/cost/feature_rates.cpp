#include "nacre/cost/feature_rates.h"

#include <algorithm>

namespace nacre {
namespace {

// Profiles have rates of rows of 64 and of 256 floats. Rows of more than kShortRow bytes count as
// rows of 256 floats.
constexpr int64_t kShortRow = 512;

}  // namespace

double FeatureRates::seconds_by_copy(int64_t row_bytes) const {
  return static_cast<double>(row_bytes) / std::min(copy, threads) + static_cast<double>(row_bytes) / device;
}

FeatureRates feature_rates(const std::optional<GpuProfile>& gpu, double host_gather, int64_t row_bytes) {
  FeatureRates rates;
  if (host_gather > 0) rates.threads = host_gather;
  if (!gpu) return rates;
  const bool wide = row_bytes > kShortRow;
  rates.device = wide ? gpu->far_256 : gpu->far_64;
  rates.link = wide ? gpu->link_256 : gpu->link_64;
  rates.copy = gpu->up_pinned;
  rates.measured = true;
  return rates;
}

}  // namespace nacre
