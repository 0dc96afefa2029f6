// What a kernel's work is made of, and how long this machine takes for it (WG9, GT3). The planner
// describes a kernel by counted features; a cost model predicts its time as a sum of features times
// coefficients, which are fitted by least squares to kernels timed on the machine. Search, estimate
// and coefficients are separate things: this file only knows numbers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nacre {

enum class Feature : uint8_t {
  constant,      // 1: starting the kernel
  flops,         // of matrix products
  vector_flops,  // of elementwise work
  stream_bytes,  // read or written once, in order
  near_bytes,    // gathered rows that fit the last-level cache
  far_bytes,     // gathered rows that do not
  rows,          // rows of the result (loop overhead)
  edges,         // edges walked (loop overhead)
  tasks,         // gTasks started
  steps,         // dependent small products in a row (LSTM time steps)
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

// Non-negative least squares on relative errors: minimises Σ (Σ_i c_i·f_i / t − 1)². Features that
// never occur get 0. Timings that cannot be (no positive time, a negative amount, NaN) are ignored
// with a warning, here and below. Deterministic; with fewer samples than features it still returns
// a solution (some coefficients stay 0).
using Coefficients = std::array<double, kFeatures>;
Coefficients fit(const std::vector<Timing>& samples);

class CostModel {
 public:
  // Fits one set of coefficients per kind, and one over all samples for kinds never seen. Where a
  // kind has few samples (less than twice its features), the pooled coefficients scaled to the
  // kind's median ratio are used instead.
  static CostModel fitted(const std::vector<Timing>& samples);
  // The same coefficients for every kind.
  static CostModel uniform(const Coefficients& coefficients);
  // Coefficients by kind; those of "" are for all kinds not named.
  static CostModel of_kinds(std::map<std::string, Coefficients> kinds);

  double predict(const Work& work) const;  // seconds; the model must not be empty
  // New timings of the running job: scales each kind's coefficients by the median of measured /
  // predicted. A kind not seen before starts from the pooled ones. An empty model stays empty.
  void correct(const std::vector<Timing>& samples);
  // Median of |predicted / measured − 1|; NaN without samples.
  double median_error(const std::vector<Timing>& samples) const;
  bool empty() const { return kinds_.empty(); }

  std::string json() const;
  static CostModel parse(const std::string& json, const std::string& where);  // throws UserError

 private:
  std::map<std::string, Coefficients> kinds_;  // "" = all kinds
};

}  // namespace nacre
