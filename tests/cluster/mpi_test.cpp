// Runs the tests of communicators (CommunicatorSuite) over MPI. Every process is one rank, and all
// processes run all tests:
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
