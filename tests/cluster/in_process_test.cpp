#include "nacre/cluster/in_process.h"

#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "cluster/launcher.h"
#include "cluster/traffic.h"
#include "nacre/cluster/run_ranks.h"

namespace nacre {
namespace {

// Devices of the tests, one for each rank: what a rank takes is copied by a thread, which takes a
// while. Even ranks offer their rows where they lie, odd ranks offer copies.
class SlowDevices final : public RankMemory {
 public:
  class Offer final : public RankOffer {
   public:
    explicit Offer(std::vector<std::byte> copy) : copy(std::move(copy)) {}
    bool is_copy() const override { return !copy.empty(); }
    std::vector<std::byte> copy;
  };
  class Work final : public RankTicket {
   public:
    explicit Work(std::function<void()> work) : thread_(std::move(work)) {}
    ~Work() override { wait(); }
    void wait() {
      const std::lock_guard lock(mutex_);
      if (thread_.joinable()) thread_.join();
    }

   private:
    std::mutex mutex_;
    std::thread thread_;
  };

  bool shared(int, int) const override { return false; }
  bool shares_sums() const override { return false; }
  std::shared_ptr<RankOffer> offer(int from, int, const ConstRows& rows) override {
    std::vector<std::byte> copy(from % 2 == 0 ? 0 : static_cast<size_t>(rows.bytes()));
    if (!copy.empty()) copy_rows(rows, {copy.data(), rows.count, rows.row_bytes, 0, nullptr}, 0, rows.count);
    return std::make_shared<Offer>(std::move(copy));
  }
  std::shared_ptr<RankOffer> offer_array(int, SumType type, const void* array, int64_t count) override {
    const auto* first = static_cast<const std::byte*>(array);
    return std::make_shared<Offer>(std::vector<std::byte>(first, first + count * bytes_of(type)));
  }
  std::shared_ptr<RankTicket> take(int, const Copy& copy, RankOffer& offered) override {
    const auto& offer = static_cast<const Offer&>(offered);
    ConstRows from = copy.from;
    if (offer.is_copy()) from = {offer.copy.data(), from.count, from.row_bytes, 0, nullptr};
    auto work = std::make_shared<Work>([copy, from] {
      nap(1e-4);
      if (copy.add) {
        add_rows(*copy.add, from, copy.to, copy.begin, copy.end);
      } else {
        copy_rows(from, copy.to, copy.begin, copy.end);
      }
    });
    if (copy.add) work->wait();  // rows are added in the order of their senders
    return work;
  }
  std::shared_ptr<RankTicket> take_sum(int, SumType type, std::span<const std::shared_ptr<RankOffer>> offers, void* out,
                                       int64_t count) override {
    std::vector<std::vector<std::byte>> copies;
    for (const auto& offer : offers) copies.push_back(static_cast<const Offer&>(*offer).copy);
    return std::make_shared<Work>([type, copies = std::move(copies), out, count]() mutable {
      nap(1e-4);
      std::vector<void*> memory;
      for (auto& copy : copies) memory.push_back(copy.data());
      sum_in_place(type, memory, 0, count);
      if (count > 0) std::memcpy(out, copies[0].data(), static_cast<size_t>(count * bytes_of(type)));
    });
  }
  void wait(int, RankTicket& ticket) override { static_cast<Work&>(ticket).wait(); }
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
                           return std::shared_ptr<Launcher>(std::make_shared<Threads>(std::make_shared<SlowDevices>()));
                         }));

class BrokenDevice final : public RankMemory {
 public:
  void copy(const Copy& copy) override {
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
