// Finds the last rank of a chain of ranks that wait for each other, by asking them one by one. All
// ranks answer, even while they compute; a rank that does not answer is the last one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nacre/cluster/failure.h"

namespace nacre {

class CulpritSearch {
 public:
  CulpritSearch(int rank, int size) : rank_(rank), asked_(size) {}

  // Begins the search with `blocker`, the rank that this one waits for.
  void begin(int blocker);
  bool begun() const { return at_ >= 0; }
  void stop();

  // Returns the rank that is to be asked now, or nothing if there is none. Returns each rank only
  // once in a search.
  std::optional<int> next_to_ask();
  uint64_t question() const { return question_; }
  // Takes the answer of rank `by`. `waits_for` is the rank that rank `by` waits for, or -1 if it
  // waits for nobody.
  void answered(int by, uint64_t question, int waits_for);
  // Returns the last rank of the chain, or nothing while that rank is unknown. Must be called often
  // while the search goes on, because Patience::tick(), which measures how long an answer takes,
  // must be called often.
  std::optional<int> culprit();
  // Returns whether the search ended because the rank that culprit() returns did not answer.
  bool silent() const { return silent_; }

 private:
  void ask(int rank);

  int rank_;
  std::vector<bool> asked_;
  int at_ = -1;
  uint64_t question_ = 0;
  bool to_ask_ = false, found_ = false, silent_ = false;
  Patience patience_{0};
};

}  // namespace nacre
