// Defines the features that the work of a kernel consists of, and the cost model, which says how
// long this machine takes for them (WG9, GT3). The planner describes a kernel by counted features.
// A cost model predicts the time as the sum of features times coefficients, which are fitted by
// least squares to kernels that were timed on the machine. This file knows only numbers; counting
// and search are elsewhere.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nacre {

enum class Feature : uint8_t {
  constant,      // always 1: the cost of starting the kernel
  flops,         // operations of matrix products
  vector_flops,  // operations of elementwise work
  stream_bytes,  // bytes read or written once, in order
  near_bytes,    // bytes of gathered rows that fit the last-level cache
  far_bytes,     // bytes of gathered rows that do not fit the last-level cache
  rows,          // rows of the result (loop overhead)
  edges,         // edges walked (loop overhead)
  tasks,         // number of gTasks started
  steps,         // number of dependent small products in a row (LSTM time steps)
  count_
};
inline constexpr int kFeatures = static_cast<int>(Feature::count_);
std::string_view feature_name(Feature feature);

struct Work {
  std::string kind;  // kernels of one kind share coefficients
  std::array<double, kFeatures> amount{};
  double& operator[](Feature f) { return amount[static_cast<size_t>(f)]; }
  double operator[](Feature f) const { return amount[static_cast<size_t>(f)]; }
};

struct Timing {
  Work work;
  double seconds = 0;
};

// Returns coefficients fitted by non-negative least squares on relative errors: they minimise Σ
// (Σ_i c_i·f_i / t − 1)². Features that never occur get 0. Impossible timings (no positive time, a
// negative amount, NaN) are ignored with a warning; the functions of CostModel do the same. The
// result is deterministic. With fewer samples than features there is still a solution, in which
// some coefficients are 0.
using Coefficients = std::array<double, kFeatures>;
Coefficients fit(const std::vector<Timing>& samples);

class CostModel {
 public:
  // Fits one set of coefficients for each kind of kernels, and one over all samples for kinds that
  // do not occur. If a kind has few samples (less than twice its features), it gets the
  // coefficients over all samples, scaled to the kind's median of measured / predicted.
  static CostModel fitted(const std::vector<Timing>& samples);
  // Makes a model with the same coefficients for every kind.
  static CostModel uniform(const Coefficients& coefficients);
  // Makes a model from coefficients by kind. The coefficients of "" are for all kinds that are not
  // named.
  static CostModel of_kinds(std::map<std::string, Coefficients> kinds);

  double predict(const Work& work) const;  // seconds; the model must not be empty
  // Corrects the model by new timings of the running job: scales the coefficients of each kind by
  // the median of measured / predicted. A kind that was not seen before starts from the
  // coefficients over all samples. An empty model stays empty.
  void correct(const std::vector<Timing>& samples);
  // Multiplies the cost of a feature by `factor`, for all kinds of kernels.
  void scale(Feature feature, double factor);
  // Returns the median of |predicted / measured − 1| over the samples; NaN without samples.
  double median_error(const std::vector<Timing>& samples) const;
  bool empty() const { return kinds_.empty(); }

  std::string json() const;
  static CostModel parse(const std::string& json, const std::string& where);  // throws UserError

 private:
  std::map<std::string, Coefficients> kinds_;  // "" stands for all kinds
};

}  // namespace nacre
