// AccuracyElbow finds the point at which the accuracy curve of a run bends, after which accuracy
// hardly grows (DA3). --shuffle adaptive begins to shuffle there.
#pragma once

#include <vector>

namespace nacre {

// AccuracyElbow holds all that has been observed, so it can be stored in a checkpoint.
struct AccuracyElbow {
  struct Point {
    int epoch = 0;     // number of epochs done
    double score = 0;  // the best score up to this epoch
  };
  // The curve begins at (0, 0), before the first epoch. No points are added after the elbow was
  // found.
  std::vector<Point> curve;
  int epoch = -1;  // epoch of the elbow, or -1 if none was found yet
  int known = -1;  // number of epochs done when the elbow was found, or -1

  // Takes the score after `epochs` epochs. Scores of fewer epochs must be taken first.
  void observe(int epochs, double score);
  bool found() const { return known >= 0; }
};

}  // namespace nacre
