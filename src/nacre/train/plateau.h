// Plateau: lowers the learning rate when validation no longer improves.
#pragma once

#include "nacre/train/optimizer.h"

namespace nacre {

// Holds the state of the schedule, which is part of a checkpoint.
struct Plateau {
  double factor = 1;  // factor of the learning rate
  double best = 0;    // the best value so far, if `seen`
  bool seen = false;  // whether there was a value
  int waited = 0;     // number of values since the best one, or since the last drop

  // Takes the value of one evaluation. If `falls`, smaller values are better; otherwise larger
  // ones. The rate drops when more than ScheduleOptions::patience values in a row were not better
  // than the best one.
  void observe(const ScheduleOptions& schedule, double value, bool falls);
};

}  // namespace nacre
