#include "nacre/cluster/in_process.h"

#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "cluster/launcher.h"
#include "cluster/traffic.h"
#include "nacre/cluster/run_ranks.h"

namespace nacre {
namespace {

// A device of the tests: every copy and sum is a thread that takes a while.
class SlowDevice final : public RankMemory {
 public:
  class Work final : public CopyTicket {
   public:
    explicit Work(std::function<void()> work) : thread_(std::move(work)) {}
    ~Work() override { Work::wait(); }
    void wait() override {
      const std::lock_guard lock(mutex_);
      if (thread_.joinable()) thread_.join();
    }

   private:
    std::mutex mutex_;
    std::thread thread_;
  };

  bool queues() const override { return true; }
  std::shared_ptr<CopyTicket> copy(const Copy& copy) override {
    return std::make_shared<Work>([copy] {
      nap(1e-4);
      copy_rows(copy.from, copy.to, copy.begin, copy.end);
    });
  }
  std::shared_ptr<CopyTicket> sum(SumType type, std::span<void* const> parts, int64_t begin, int64_t end) override {
    return std::make_shared<Work>([type, parts = std::vector<void*>(parts.begin(), parts.end()), begin, end] {
      nap(1e-4);
      sum_in_place(type, parts, begin, end);
    });
  }
};

class Threads : public Launcher {
 public:
  explicit Threads(std::shared_ptr<RankMemory> memory = nullptr) : memory_(std::move(memory)) {}
  using Launcher::run;
  std::vector<int> sizes() const override { return {1, 2, 3, 4}; }
  std::vector<Ending> run(int size, double timeout, const RankBody& body) override {
    auto group = make_group(size, {timeout, memory_});
    std::vector<Ending> endings(size);
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r) {
      threads.emplace_back([&, r] {
        endings[r] = run_body(*group[r], body);
        group[r].reset();
      });
    }
    for (std::thread& thread : threads) thread.join();
    return endings;
  }

 private:
  std::shared_ptr<RankMemory> memory_;
};

INSTANTIATE_TEST_SUITE_P(InProcess, CommunicatorSuite,
                         testing::Values([] { return std::shared_ptr<Launcher>(std::make_shared<Threads>()); }));
INSTANTIATE_TEST_SUITE_P(InProcessDevices, CommunicatorSuite, testing::Values([] {
                           return std::shared_ptr<Launcher>(std::make_shared<Threads>(std::make_shared<SlowDevice>()));
                         }));

class BrokenDevice final : public RankMemory {
 public:
  std::shared_ptr<CopyTicket> copy(const Copy& copy) override {
    throw std::runtime_error("a copy to rank " + std::to_string(copy.to_rank) + " failed");
  }
};

TEST(InProcess, a_copy_that_fails_ends_the_run) {
  auto launcher = Threads(std::make_shared<BrokenDevice>());
  const auto endings = launcher.run(3, kCommTimeout, [](Communicator& own) {
    Traffic traffic(2, 3, 100);
    own.exchange(traffic.prepare(own.rank()));
    own.barrier();
  });
  for (const Ending& ending : endings) {
    EXPECT_NE(ending.error.find("a copy to rank"), std::string::npos) << ending.error;
    EXPECT_EQ(ending.error, endings[0].error);
  }
}

TEST(RunRanks, throws_what_the_failed_rank_threw) {
  EXPECT_NO_THROW(run_ranks(3, [](Communicator& own) { own.barrier(); }));
  try {
    run_ranks(3, [](Communicator& own) {
      if (own.rank() == 1) throw UserError("--devices", "no such device");
      own.barrier();
    });
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "--devices: no such device");
  }
}

TEST(RunRanks, tells_of_a_rank_that_does_not_return) {
  RunRanksOptions options;
  options.group.timeout = 0.3;
  options.stuck_seconds = 0.2;
  std::string told;
  options.on_stuck = [&](const RankFailure& failure) { told = failure.what(); };
  EXPECT_THROW(run_ranks(
                   2,
                   [](Communicator& own) {
                     if (own.rank() == 1) nap(2);
                     own.barrier();
                   },
                   options),
               RankFailure);
  EXPECT_EQ(told.find("rank 1: it keeps other ranks waiting"), 0U) << told;
}

}  // namespace
}  // namespace nacre
