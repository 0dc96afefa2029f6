// Tests the communicator of processes that drive several ranks each. Processes are emulated: a
// transport connects threads.
#include <thread>
#include <utility>

#include "cluster/launcher.h"
#include "cluster/mail.h"
#include "nacre/base/log.h"
#include "nacre/cluster/packet_hub.h"
#include "nacre/cluster/rank_router.h"
#include "nacre/cluster/two_levels.h"

namespace nacre {
namespace {

// One emulated process.
struct House {
  House(int number, const std::shared_ptr<Mailboxes>& mail, const std::vector<int>& process_of)
      : hub(std::make_shared<PacketHub>(std::make_unique<Mail>(number, mail))),
        router(std::make_shared<RankRouter>(hub, process_of)) {
    ranks.process_of = process_of;
    for (int r = 0; r < static_cast<int>(process_of.size()); ++r) {
      if (process_of[r] != number) continue;
      ranks.own.push_back(r);
      ranks.hubs.push_back(std::make_shared<PacketHub>(router->connect(r)));
    }
  }

  std::shared_ptr<PacketHub> hub;
  std::shared_ptr<RankRouter> router;
  ProcessRanks ranks;
};

// Runs two ranks in each process.
class Houses : public Launcher {
 public:
  using Launcher::run;
  std::vector<int> sizes() const override { return {3, 4}; }
  std::vector<Ending> run(int size, double timeout, const RankBody& body) override {
    std::vector<int> process_of;
    for (int r = 0; r < size; ++r) process_of.push_back(r / 2);
    const int count = process_of.back() + 1;
    mail_ = std::make_shared<Mailboxes>(count);
    std::vector<std::unique_ptr<House>> houses;
    for (int h = 0; h < count; ++h) houses.push_back(std::make_unique<House>(h, mail_, process_of));
    std::vector<Ending> endings(size);
    std::vector<std::thread> threads;
    for (const auto& house : houses) {
      auto all = connect_two_levels(
          house->ranks, nullptr, [](int, std::unique_ptr<Communicator> host) { return host; }, timeout);
      for (auto& each : all) {
        threads.emplace_back([&, own = std::move(each)] { endings[own->rank()] = run_body(*own, body); });
      }
    }
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    return endings;
  }
  // Marks a process as dead.
  void kill(int house) {
    const std::lock_guard lock(mail_->mutex);
    mail_->dead[house] = true;
  }

 private:
  std::shared_ptr<Mailboxes> mail_;
};

INSTANTIATE_TEST_SUITE_P(TwoLevels, CommunicatorSuite,
                         testing::Values([] { return std::shared_ptr<Launcher>(std::make_shared<Houses>()); }));

// Rank 0 waits for rank 1 of its process, which waits for rank 2 of the other process, which hangs.
TEST(TwoLevels, the_last_rank_of_a_chain_is_named_across_processes) {
  for (const int hanging : {2, 1}) {
    Houses houses;
    std::vector<Ending> endings = houses.run(4, 1, [&](Communicator& own) {
      std::byte bytes[8] = {};
      const auto exchange = [&](int peer) { own.exchange({{{peer, {bytes, 1, 4}}}, {{peer, {bytes + 4, 1, 4}}}}); };
      if (own.rank() == hanging) nap(6);
      if (hanging == 2) {
        if (own.rank() == 1) exchange(2);
        if (own.rank() == 2) exchange(1);
        if (own.rank() == 0 || own.rank() == 3) own.exchange({});
        if (own.rank() < 2) exchange(1 - own.rank());
        if (own.rank() >= 2) own.exchange({});
      } else {
        // Rank 3 waits for rank 0, which waits for rank 1.
        if (own.rank() < 2) exchange(1 - own.rank());
        if (own.rank() >= 2) own.exchange({});
        if (own.rank() % 3 == 0) exchange(3 - own.rank());
        if (own.rank() % 3 != 0) own.exchange({});
      }
      own.barrier();
    });
    for (const Ending& ending : endings) {
      EXPECT_EQ(ending.failed_rank, hanging) << ending.error;
      EXPECT_EQ(ending.error, endings[0].error);
    }
  }
}

TEST(TwoLevels, a_dead_process_is_noticed_long_before_the_timeout) {
  Houses houses;
  const std::vector<Ending> endings = houses.run(4, kCommTimeout, [&](Communicator& own) {
    own.barrier();
    if (own.rank() >= 2) {
      houses.kill(1);
    } else {
      own.barrier();
    }
  });
  for (int r = 0; r < 2; ++r) {
    EXPECT_GE(endings[r].failed_rank, 2) << endings[r].error;
    EXPECT_EQ(endings[r].error, endings[0].error);
    EXPECT_LT(endings[r].seconds, 8);
  }
}

}  // namespace
}  // namespace nacre
