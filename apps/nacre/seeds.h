// nacre train --seeds: one run for each seed, and what they have in common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nacre::cli {

// "0-9", "0,3,7" or "0-2,8": every seed once, in the order given. Throws UserError naming --seeds.
std::vector<uint64_t> parse_seeds(const std::string& text);

// Mean and sample standard deviation of the scores that are there (scores below 0 or NaN are not).
// The deviation of fewer than two is NaN, and so is the mean of none.
struct Spread {
  double mean, deviation;
};
Spread spread_of(const std::vector<double>& scores);
// "0.8123 ± 0.0042"; "–" for none.
std::string spread_text(const Spread& spread);

}  // namespace nacre::cli
