// Serves nacre train --seeds, which trains one run for each seed: reads the seeds, and computes the
// mean and deviation of the scores.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nacre::cli {

// Returns the seeds in a text such as "0-9", "0,3,7" or "0-2,8", in the given order. Throws
// UserError, which names --seeds, if the text is no such list or names a seed twice.
std::vector<uint64_t> parse_seeds(const std::string& text);
// Returns the run folder of one seed, for example runs/seed-3, where `parent` is runs.
std::string folder_of_seed(const std::string& parent, uint64_t seed);

// Holds the mean and the sample standard deviation of the scores that exist (a score below 0 or NaN
// does not). The deviation of fewer than two scores is NaN, and so is the mean of none.
struct Spread {
  double mean, deviation;
};
Spread spread_of(const std::vector<double>& scores);
// Returns a text such as "0.8123 ± 0.0042"; "–" if there is no score.
std::string spread_text(const Spread& spread);

}  // namespace nacre::cli
