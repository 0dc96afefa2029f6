// MfgCost: the cost of an operation on a message-flow graph (DA1), as a polynomial of at most the
// third degree in the vertices and the edges of the graph. The model's widths and the device are in
// its coefficients, so there is one polynomial for each device, operation and layer.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace nacre {

// The size of a message-flow graph (a block) is the number of its distinct vertices, which are its
// sources, and of its edges. For a transfer, `vertices` is the number of bytes, and `edges` is 0.
struct MfgSize {
  double vertices = 0;
  double edges = 0;
};

struct MfgTiming {
  MfgSize size;
  double seconds = 0;
};

// MfgCost is a polynomial that predicts the seconds of an operation. Its coefficients are not
// negative, so its value is never negative and grows with the graph, also beyond the sizes that it
// was fitted to.
class MfgCost {
 public:
  static constexpr int kTerms = 10;  // the terms are 1, n, m, n², nm, m², n³, n²m, nm², m³

  // Fits the polynomial to timings by least squares on relative errors. The degree is the one with
  // the least error on timings that the polynomial was not fitted to; a lower degree is taken if
  // its error is hardly larger. Timings without a positive time are left out. If no timings remain,
  // the cost is 0.
  static MfgCost fitted(std::span<const MfgTiming> timings);

  double predict(const MfgSize& size) const;  // returns seconds
  // Returns the median of the times that the polynomial was fitted to.
  double typical_seconds() const { return typical_seconds_; }
  int degree() const { return degree_; }
  int64_t samples() const { return samples_; }
  // Returns the median of |predicted / measured − 1| over all timings, where each timing is
  // predicted by a polynomial that was not fitted to it. Returns NaN if there were too few timings.
  double held_out_error() const { return held_out_error_; }

  std::string json() const;
  // Returns the cost that the text holds. Throws a UserError that names `where` if the text is not
  // a cost.
  static MfgCost parse(const std::string& json, const std::string& where);

 private:
  std::array<double, kTerms> terms_{};  // coefficients for sizes that are divided by scale_
  MfgSize scale_ = {1, 1};
  int degree_ = 0;
  int64_t samples_ = 0;
  double held_out_error_ = 0;
  double typical_seconds_ = 0;
};

}  // namespace nacre
