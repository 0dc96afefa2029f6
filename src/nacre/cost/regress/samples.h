// SampleTable: a table of samples for regression, with the features of each sample, its target and
// its group.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace nacre {

struct SampleTable {
  int64_t columns = 0;     // number of features
  std::vector<double> x;   // features, sample by sample
  std::vector<double> y;   // target of each sample
  std::vector<int> group;  // group of each sample; samples of one graph form a group

  int64_t rows() const { return static_cast<int64_t>(y.size()); }
  std::span<const double> row(int64_t i) const { return {x.data() + i * columns, static_cast<size_t>(columns)}; }
  // Appends a sample. The first sample sets the number of columns.
  void add(std::span<const double> features, double target, int sample_group = 0);
  // Returns the given samples, in the given order.
  SampleTable select(std::span<const int64_t> samples) const;
};

// Deals the samples to folds 0 … folds - 1 such that a group is never in two folds and the folds
// are of about equal size. Returns the fold of each sample. If there are fewer groups than folds,
// there are as many folds as groups; if there is only one group, samples are dealt one by one.
std::vector<int> deal_folds(const SampleTable& samples, int folds);

// Returns the samples that are in the fold if `inside` is true, and all other samples if it is
// false.
SampleTable fold_samples(const SampleTable& samples, std::span<const int> fold_of, int fold, bool inside);

// Calls trial(training, test) for each fold, and returns the sum of the vectors that trial()
// returns. These hold, for each candidate setting of a regressor, the squared error on the test
// samples.
template <class Trial>
std::vector<double> cross_errors(const SampleTable& samples, int folds, const Trial& trial) {
  const std::vector<int> fold_of = deal_folds(samples, folds);
  std::vector<double> sums;
  for (int fold = 0; fold < folds; ++fold) {
    const SampleTable test = fold_samples(samples, fold_of, fold, true);
    const SampleTable training = fold_samples(samples, fold_of, fold, false);
    if (test.rows() == 0 || training.rows() == 0) continue;
    const std::vector<double> errors = trial(training, test);
    sums.resize(errors.size(), 0.0);
    for (size_t i = 0; i < errors.size(); ++i) sums[i] += errors[i];
  }
  return sums;
}

// Holds the mean and the scale of each column, by which features get mean 0 and deviation 1. A
// column that is constant gets the scale 0, so its standardised features are 0.
struct Standard {
  std::vector<double> mean;
  std::vector<double> scale;

  static Standard of(const SampleTable& samples);
  void apply(std::span<const double> features, std::span<double> out) const;
  // Returns the samples with standardised features and the same targets and groups.
  SampleTable table(const SampleTable& samples) const;
};

double mean_of(std::span<const double> values);  // 0 if there are no values

}  // namespace nacre
