// What a search for a plan looked at: how many options there were, and how many of them each rule
// left out (WG9). nacre plan --space prints this.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nacre/cost/model.h"

namespace nacre {

// A group of choices that the search makes together.
struct SpaceGroup {
  std::string name;  // as in Candidate::group
  int64_t options = 0;
  int64_t timed = 0;  // options that were told apart by timing
  // The number of options that each rule left out. Every option but the chosen one counts once.
  std::map<std::string, int64_t> left_out;
};

struct SearchSpace {
  std::vector<SpaceGroup> groups;
  int64_t planned = 0;      // plans that were made and predicted
  int64_t whole_steps = 0;  // plans that took turns with whole steps

  // Returns the number of plans: the product of the options of all groups.
  double plans() const;
};

// Returns a table for people, and the same as JSON.
std::string space_text(const SearchSpace& space);
std::string space_json(const SearchSpace& space);

// The work of all kernels of a plan for an epoch, and the largest number of bytes that are alive
// during a step.
struct TotalWork {
  // Sums by kinds of kernels and by the end of the edges that they walk from. Kernels that walk
  // from the other end may run faster or slower although their work is the same.
  std::map<std::pair<std::string, int>, std::array<double, kFeatures>> of_kind;
  int64_t peak = 0;

  void add(const Work& work, int direction, double times);
  // Returns whether this work is not more than `other` in anything. No cost model can then predict
  // more time for it, because the coefficients of cost models are not negative.
  bool covers(const TotalWork& other) const;
};

}  // namespace nacre
