// Tests the communicator of processes over a transport that connects threads.
#include <thread>
#include <utility>

#include "cluster/launcher.h"
#include "cluster/mail.h"
#include "cluster/traffic.h"
#include "nacre/cluster/culprit_search.h"
#include "nacre/cluster/packet_hub.h"

namespace nacre {
namespace {

class Post : public Launcher {
 public:
  using Launcher::run;
  std::vector<int> sizes() const override { return {1, 2, 4}; }
  std::vector<Ending> run(int size, double timeout, const RankBody& body) override {
    mail_ = std::make_shared<Mailboxes>(size);
    // Like processes, hubs live until all ranks have ended.
    std::vector<std::shared_ptr<PacketHub>> hubs;
    for (int r = 0; r < size; ++r) hubs.push_back(std::make_shared<PacketHub>(std::make_unique<Mail>(r, mail_)));
    std::vector<Ending> endings(size);
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r) {
      threads.emplace_back([&, r] { endings[r] = run_body(*hubs[r]->connect(timeout), body); });
    }
    for (std::thread& thread : threads) thread.join();
    return endings;
  }
  // Marks a rank as dead, as if its process had ended.
  void kill(int rank) {
    const std::lock_guard lock(mail_->mutex);
    mail_->dead[rank] = true;
  }

 private:
  std::shared_ptr<Mailboxes> mail_;
};

INSTANTIATE_TEST_SUITE_P(Packets, CommunicatorSuite,
                         testing::Values([] { return std::shared_ptr<Launcher>(std::make_shared<Post>()); }));

TEST(Packets, a_dead_rank_is_noticed_long_before_the_timeout) {
  for (const int dead : {0, 2}) {
    Post post;
    auto endings = post.run(3, kCommTimeout, [&](Communicator& own) {
      own.barrier();
      if (own.rank() == dead) {
        post.kill(dead);
      } else {
        own.barrier();
      }
    });
    endings.erase(endings.begin() + dead);
    for (const Ending& ending : endings) {
      EXPECT_EQ(ending.failed_rank, dead) << ending.error;
      EXPECT_EQ(ending.error, endings[0].error);
      EXPECT_LT(ending.seconds, 8);
    }
  }
}

TEST(Packets, a_call_goes_on_while_its_ranks_compute) {
  Post post;
  static_cast<Launcher&>(post).run(2, [](Communicator& own) {
    constexpr int64_t kBytes = 8 << 20;
    std::vector<std::byte> sent(kBytes, std::byte{7}), received(kBytes);
    const int peer = 1 - own.rank();
    PendingCall call = own.start_exchange({{{peer, {sent.data(), 1, kBytes}}}, {{peer, {received.data(), 1, kBytes}}}});
    nap(1);
    call.wait();
    EXPECT_LT(call.counters().waited, 0.5);
    EXPECT_EQ(received, sent);
  });
}

TEST(CulpritSearch, follows_answers_to_the_last_rank) {
  CulpritSearch search(0, 4);
  EXPECT_FALSE(search.culprit().has_value());
  search.begin(1);
  EXPECT_EQ(search.next_to_ask(), 1);
  EXPECT_FALSE(search.next_to_ask().has_value());
  search.answered(1, search.question(), 3);
  EXPECT_EQ(search.next_to_ask(), 3);
  search.answered(1, search.question(), 2);  // nobody asked this rank
  EXPECT_FALSE(search.culprit().has_value());
  search.answered(3, search.question(), 1);  // the answers now form a circle
  EXPECT_EQ(search.culprit(), 3);
  EXPECT_FALSE(search.silent());
}

}  // namespace
}  // namespace nacre
