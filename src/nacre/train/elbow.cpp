#include "nacre/train/elbow.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace nacre {
namespace {

// At least this many scores must follow the elbow. With fewer, a single bad epoch would look like
// an elbow.
constexpr size_t kFollowing = 3;
// The mean slope of the curve after the elbow may be at most this part of its mean slope before the
// elbow.
constexpr double kFlatter = 0.1;

}  // namespace

// The elbow is the point farthest above the line from the first point of the curve to the last one
// (the measure of "Finding a Kneedle in a Haystack", Satopää et al. 2011). On a curve that has not
// bent yet, some point is farthest as well, but the curve is still steep after it.
void AccuracyElbow::observe(int epochs, double score) {
  if (found()) return;
  if (curve.empty()) curve.push_back({});
  if (std::isnan(score) || epochs <= curve.back().epoch) return;
  curve.push_back({epochs, std::max(score, curve.back().score)});
  const Point& last = curve.back();
  if (last.score <= 0) return;
  size_t at = 0;
  double farthest = 0;
  for (size_t i = 1; i + 1 < curve.size(); ++i) {
    const double above = curve[i].score / last.score - static_cast<double>(curve[i].epoch) / last.epoch;
    if (above <= farthest) continue;
    farthest = above;
    at = i;
  }
  if (at == 0 || curve.size() - 1 - at < kFollowing) return;
  const Point& bend = curve[at];
  const double before = bend.score / bend.epoch;
  const double after = (last.score - bend.score) / (last.epoch - bend.epoch);
  if (after > kFlatter * before) return;
  epoch = bend.epoch;
  known = epochs;
}

}  // namespace nacre
