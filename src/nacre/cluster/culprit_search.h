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

  // Returns the rank that is to be asked now, or nothing if there is none. Returns the rank of a
  // question only once.
  std::optional<int> next_to_ask();
  uint64_t question() const { return question_; }
  // Takes the answer of rank `by`. `waits_for` is the rank that it waits for, or -1 if it waits for
  // nobody.
  void answered(int by, uint64_t question, int waits_for);
  // Returns the last rank of the chain if it is known. Must be called often, because Patience must
  // be asked often.
  std::optional<int> culprit();
  // Returns whether the culprit did not answer.
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
