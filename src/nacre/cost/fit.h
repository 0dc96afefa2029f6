// This file fits cost models by least squares on relative errors, and selects the timings that a
// cost model can learn from.
#pragma once

#include <vector>

#include "nacre/cost/model.h"

namespace nacre {

// Returns the samples with a positive, finite time and finite amounts that are not negative. Warns
// about the others, counted by reason.
std::vector<Timing> usable_samples(const std::vector<Timing>& samples);

// Returns the coefficients x ≥ 0 that minimise |Σ_j x_j · columns[j] − 1|. A column holds one
// amount of every sample, divided by the time of the sample, so that residuals are relative errors.
// Amounts must not be negative. Columns of zeros, and columns that are combinations of others, get
// the coefficient 0.
std::vector<double> fit_relative(const std::vector<std::vector<double>>& columns);

}  // namespace nacre
