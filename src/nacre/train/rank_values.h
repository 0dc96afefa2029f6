// With these functions, ranks tell each other numbers and weights. All ranks call a function at the
// same time, and wait for each other.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/cluster/communicator.h"
#include "nacre/train/learner.h"

namespace nacre {

// Returns the numbers `own` of all ranks, in the order of the ranks.
template <class T>
std::vector<T> all_numbers(Communicator& ranks, const T& own) {
  std::vector<T> all;
  for (const std::string& text : ranks.all_gather({reinterpret_cast<const char*>(&own), sizeof own})) {
    NACRE_CHECK(text.size() == sizeof(T), "a rank has sent a number of another size");
    std::memcpy(&all.emplace_back(), text.data(), sizeof(T));
  }
  return all;
}

// Replaces the weights of every rank by those of rank 0.
void share_weights(Communicator& control, Learner& learner);
// Replaces the weights and the optimiser state of every rank by those of rank 0.
void share_state(Communicator& control, Learner& learner);

}  // namespace nacre
