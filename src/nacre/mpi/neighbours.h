// Neighbours: tells which ranks run on the machine of this process, and whether their processes
// still exist.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace nacre::mpi {

// Says which process a rank is. Every rank sends its card to all others.
struct ProcessCard {
  std::array<char, 160> machine;  // equal for processes that see each other's numbers
  int64_t process = 0;
  int64_t started = 0;  // when the process was started; numbers of processes are used again
};

ProcessCard own_card();

class Neighbours {
 public:
  Neighbours() = default;
  Neighbours(int rank, std::vector<ProcessCard> cards);

  int count() const { return count_; }
  int before() const { return before_; }
  // Returns whether a rank is on this machine and its process has ended.
  bool gone(int rank) const;
  // Returns whether gone() holds for at least one of the ranks whose numbers are lower than that of
  // the rank of this process.
  bool gone_before() const;
  // Returns a rank on this machine whose process is stopped; -1 if there is none.
  int stopped() const;

 private:
  bool is_near(int rank) const { return cards_[rank].machine == cards_[rank_].machine; }

  int rank_ = 0, count_ = 1, before_ = 0;
  std::vector<ProcessCard> cards_;
};

}  // namespace nacre::mpi
