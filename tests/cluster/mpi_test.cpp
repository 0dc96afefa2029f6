// The suite of communicators over MPI. Every process is one rank and runs all tests:
//   mpirun -n 4 --oversubscribe build/release/test_cluster_mpi
#include <cstdio>
#include <sstream>

#include "cluster/launcher.h"
#include "cluster/traffic.h"
#include "nacre/cluster/mpi.h"

namespace nacre {
namespace {

MpiRanks* all_ranks = nullptr;

class Processes : public Launcher {
 public:
  std::vector<int> sizes() const override { return {all_ranks->size()}; }
  // Returns the endings of all ranks, so that every process sees whether they agree.
  std::vector<Ending> run(int size, double timeout, const RankBody& body) override {
    const Ending own = run_body(*all_ranks->connect(timeout), body);
    std::ostringstream text;
    text << own.failed_rank << " " << own.seconds << " " << own.error;
    std::vector<Ending> endings(size);
    const auto texts = all_ranks->connect()->all_gather(text.str());
    for (int r = 0; r < size; ++r) {
      std::istringstream in(texts[r]);
      endings[r].rank = r;
      in >> endings[r].failed_rank >> endings[r].seconds;
      in.ignore();
      std::getline(in, endings[r].error);
    }
    return endings;
  }
};

INSTANTIATE_TEST_SUITE_P(Mpi, CommunicatorSuite,
                         testing::Values([] { return std::shared_ptr<Launcher>(std::make_shared<Processes>()); }));

TEST(Mpi, ranks_of_one_machine_are_numbered) {
  EXPECT_EQ(all_ranks->local_rank(), all_ranks->rank());
  EXPECT_EQ(all_ranks->local_size(), all_ranks->size());
}

TEST(Mpi, a_call_goes_on_while_its_ranks_compute) {
  constexpr int64_t kBytes = 16 << 20;
  const auto own = all_ranks->connect();
  std::vector<float> sum(kBytes / 4, 1.0F);
  own->barrier();
  PendingCall call = own->start_all_reduce(SumType::f32, sum.data(), kBytes / 4);
  nap(2);
  call.wait();
  EXPECT_LT(call.counters().waited, 1);
  EXPECT_EQ(sum, std::vector<float>(kBytes / 4, static_cast<float>(own->size())));
}

// How long small and large calls take, for people: --gtest_filter=*speed --gtest_also_run_disabled_tests
TEST(Mpi, DISABLED_speed) {
  const auto own = all_ranks->connect();
  const auto seconds = [&](int times, const std::function<void()>& call) {
    own->barrier();
    const CommCounters before = own->counters();
    for (int i = 0; i < times; ++i) call();
    const CommCounters after = own->counters();
    return (after.exchange.elapsed - before.exchange.elapsed + after.all_reduce.elapsed - before.all_reduce.elapsed +
            after.gather.elapsed - before.gather.elapsed) /
           times;
  };
  const double barrier = seconds(300, [&] { own->barrier(); });
  double x = 1;
  const double small = seconds(300, [&] { own->all_reduce(&x, 1); });
  const int to = (own->rank() + 1) % own->size(), from = (own->rank() + own->size() - 1) % own->size();
  constexpr int64_t kBytes = 64 << 20;
  std::vector<std::byte> sent(kBytes), received(kBytes);
  const double large = seconds(5, [&] {
    own->exchange({{{to, {sent.data(), 1, kBytes}}}, {{from, {received.data(), 1, kBytes}}}});
  });
  if (own->rank() == 0) {
    std::printf("barrier %.0f us, sum of one element %.0f us, 64 MiB to the next rank %.3f s\n", barrier * 1e6,
                small * 1e6, large);
  }
}

}  // namespace
}  // namespace nacre

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!nacre::launched_by_mpi()) {
    std::fprintf(stderr, "start this test with mpirun\n");
    return 2;
  }
  nacre::MpiRanks ranks;
  nacre::all_ranks = &ranks;
  const int code = RUN_ALL_TESTS();
  ranks.close();
  return code;
}
