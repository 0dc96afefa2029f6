#include "nacre/train/plateau.h"

#include <algorithm>
#include <cmath>

namespace nacre {

void Plateau::observe(const ScheduleOptions& schedule, double value, bool falls) {
  if (schedule.name != "plateau" || std::isnan(value)) return;
  if (!seen || (falls ? value < best : value > best)) {
    best = value;
    seen = true;
    waited = 0;
    return;
  }
  if (++waited <= schedule.patience) return;
  factor = std::max(factor * schedule.gamma, schedule.final_ratio);
  waited = 0;
}

}  // namespace nacre
