// A rank of mpi_faults_test.py: makes calls until it is told to stop or fails.
//   mpirun -n 4 mpi_worker TIMEOUT STEPS [WHAT RANK]
// WHAT is what a rank does in the middle: `throw`, `compute` (for long, and goes on), `hang`,
// `leave` (ends its process without a word).
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "nacre/cluster/mpi.h"

namespace {

void nap(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

void misbehave(const std::string& what) {
  if (what == "throw") throw std::runtime_error("no memory is left");
  if (what == "compute") nap(1.5);
  if (what == "hang") nap(1000);
  if (what == "leave") _exit(0);
}

void make_calls(nacre::Communicator& own, int steps, const std::string& what, int rank) {
  const int to = (own.rank() + 1) % own.size(), from = (own.rank() + own.size() - 1) % own.size();
  constexpr int64_t kRows = 5000, kWidth = 64;
  std::vector<std::byte> sent(kRows * kWidth), received(kRows * kWidth);
  std::vector<float> sum(20000);
  for (int step = 0; step < steps; ++step) {
    if (step == steps / 2 && own.rank() == rank) misbehave(what);
    nacre::PendingCall exchange =
        own.start_exchange({{{to, {sent.data(), kRows, kWidth}}}, {{from, {received.data(), kRows, kWidth}}}});
    sum.assign(sum.size(), 1.0F);
    own.all_reduce(sum.data(), static_cast<int64_t>(sum.size()));
    exchange.wait();
    if (sum[step % sum.size()] != static_cast<float>(own.size())) throw std::logic_error("a sum is wrong");
    nap(0.002);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || !nacre::launched_by_mpi()) return 2;
  const std::string what = argc > 4 ? argv[3] : "";
  nacre::MpiRanks ranks;
  try {
    ranks.run(
        [&](nacre::Communicator& own) {
          own.barrier();
          std::printf("rank %d is process %d\n", own.rank(), static_cast<int>(getpid()));
          std::fflush(stdout);
          make_calls(own, std::atoi(argv[2]), what, argc > 4 ? std::atoi(argv[4]) : -1);
        },
        std::atof(argv[1]));
  } catch (const std::exception& error) {
    if (ranks.tells(error)) std::fprintf(stderr, "error of rank %d: %s\n", ranks.rank(), error.what());
    ranks.end_all(1);
  }
  if (ranks.rank() == 0) std::printf("all ranks have ended\n");
  return 0;
}
