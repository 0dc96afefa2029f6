#include "cluster/launcher.h"

#include <chrono>
#include <thread>

#include "nacre/base/log.h"

namespace nacre {

void Launcher::run(int size, const RankBody& body) {
  for (const Ending& ending : run(size, kCommTimeout, body)) {
    EXPECT_EQ(ending.error, "") << "rank " << ending.rank << " of " << size;
  }
}

Ending run_body(Communicator& own, const RankBody& body) {
  Ending ending{own.rank()};
  const double began = now_seconds();
  try {
    body(own);
  } catch (const RankFailure& failure) {
    ending.error = failure.what();
    ending.failed_rank = failure.rank();
  } catch (const std::exception& error) {
    const RankFailure failure = own.abort(error.what());
    ending.error = failure.what();
    ending.failed_rank = failure.rank();
  }
  ending.seconds = now_seconds() - began;
  return ending;
}

// This is the generator splitmix64.
uint64_t Dice::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

void nap(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace nacre
