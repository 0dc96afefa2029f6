// Plateau: a learning rate that drops when validation no longer improves.
#pragma once

#include "nacre/train/optimizer.h"

namespace nacre {

// The state of such a schedule; part of a checkpoint.
struct Plateau {
  double factor = 1;  // of the learning rate
  double best = 0;    // the best value met, where `seen`
  bool seen = false;
  int waited = 0;  // values since then, or since the last drop

  // Takes in one evaluation's value, which gets better as it falls, or as it grows. The rate drops once more than
  // ScheduleOptions::patience values in a row were not better than the best.
  void observe(const ScheduleOptions& schedule, double value, bool falls);
};

}  // namespace nacre
