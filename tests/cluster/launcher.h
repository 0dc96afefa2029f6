// What the tests of communicators share: a launcher runs the ranks of a test, so that the same
// tests run for every implementation.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/cluster/communicator.h"

namespace nacre {

// How one rank of a test ended.
struct Ending {
  int rank = 0;
  std::string error;     // empty: the rank returned
  int failed_rank = -1;  // the rank that a RankFailure names
  double seconds = 0;
};

using RankBody = std::function<void(Communicator&)>;

class Launcher {
 public:
  virtual ~Launcher() = default;
  // Returns the numbers of ranks that this launcher can run.
  virtual std::vector<int> sizes() const = 0;
  // Runs `body` for every rank that belongs to this process and returns how each ended.
  virtual std::vector<Ending> run(int size, double timeout, const RankBody& body) = 0;

  // Runs ranks that must all return.
  void run(int size, const RankBody& body);
};

// Runs a rank's body; if it throws, the others learn of it.
Ending run_body(Communicator& own, const RankBody& body);

using LauncherFactory = std::shared_ptr<Launcher> (*)();

class CommunicatorSuite : public testing::TestWithParam<LauncherFactory> {
 protected:
  void SetUp() override { launcher_ = GetParam()(); }
  Launcher& launcher() { return *launcher_; }

 private:
  std::shared_ptr<Launcher> launcher_;
};

// Random numbers that are the same on all ranks and machines.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 2 + 1) {}
  uint64_t next();
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }

 private:
  uint64_t state_;
};

void nap(double seconds);

}  // namespace nacre
