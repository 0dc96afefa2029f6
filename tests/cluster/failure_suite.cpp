// Failures of ranks with any communicator: all ranks throw the same message, which names the rank.
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "cluster/launcher.h"
#include "cluster/traffic.h"

namespace nacre {
namespace {

constexpr double kSoon = 10;  // seconds in which all ranks must have ended

void expect_failure(const std::vector<Ending>& endings, int rank, const std::string& text) {
  for (const Ending& ending : endings) {
    EXPECT_EQ(ending.failed_rank, rank) << "rank " << ending.rank << ": " << ending.error;
    EXPECT_NE(ending.error.find(text), std::string::npos) << "rank " << ending.rank << ": " << ending.error;
    EXPECT_EQ(ending.error.find("rank " + std::to_string(rank) + ": "), 0U) << ending.error;
    EXPECT_EQ(ending.error, endings[0].error);
    EXPECT_LT(ending.seconds, kSoon) << "rank " << ending.rank;
  }
}

// Makes calls of every kind, and calls before(i) before call i.
void make_calls(Communicator& own, const std::function<void(int)>& before) {
  for (int i = 0; i < 12; i += 4) {
    before(i);
    Traffic traffic(i, own.size(), 5000);
    PendingCall exchange = own.start_exchange(traffic.prepare(own.rank()));
    before(i + 1);
    std::vector<float> sum(10000, 1.0F);
    PendingCall reduce = own.start_all_reduce(SumType::f32, sum.data(), 10000);
    before(i + 2);
    exchange.wait();
    before(i + 3);
    own.barrier();
    reduce.wait();
  }
}

TEST_P(CommunicatorSuite, a_rank_that_throws_ends_all_others) {
  for (const int size : launcher().sizes()) {
    Dice dice(size);
    for (int repeat = 0; repeat < 4; ++repeat) {
      const int rank = static_cast<int>(dice.below(size)), at = static_cast<int>(dice.below(12));
      const std::string reason = "no memory left at call " + std::to_string(at);
      expect_failure(launcher().run(size, kCommTimeout,
                                    [&](Communicator& own) {
                                      make_calls(own, [&](int i) {
                                        if (own.rank() == rank && i == at) throw std::runtime_error(reason);
                                      });
                                      own.barrier();
                                    }),
                     rank, reason);
    }
  }
}

TEST_P(CommunicatorSuite, later_calls_fail_like_the_first) {
  const int size = launcher().sizes().back();
  launcher().run(size, [&](Communicator& own) {
    const auto failure_of = [&](const std::function<void()>& call) {
      try {
        call();
        return std::string("nothing");
      } catch (const RankFailure& failure) {
        return std::string(failure.what());
      }
    };
    const std::string expected = "rank " + std::to_string(size - 1) + ": a disk is full";
    if (own.rank() == size - 1) {
      EXPECT_EQ(std::string(own.abort("a disk is full").what()), expected);
    }
    float x = 1;
    EXPECT_EQ(failure_of([&] {
                own.barrier();
                own.barrier();
              }),
              expected);
    EXPECT_EQ(failure_of([&] { own.all_reduce(&x, 1); }), expected);
    EXPECT_EQ(failure_of([&] { own.exchange({}); }), expected);
    EXPECT_EQ(failure_of([&] { own.broadcast(0, "x"); }), expected);
    EXPECT_EQ(std::string(own.abort("another reason").what()), expected);
  });
}

TEST_P(CommunicatorSuite, a_rank_that_hangs_is_named) {
  for (const int size : launcher().sizes()) {
    if (size == 1) continue;
    const int rank = size - 1;
    const auto endings = launcher().run(size, 0.6, [&](Communicator& own) {
      own.barrier();
      if (own.rank() == rank) nap(2);
      float x = 1;
      own.all_reduce(&x, 1);
    });
    expect_failure(endings, rank, "keeps other ranks waiting");
  }
}

TEST_P(CommunicatorSuite, the_last_of_a_chain_of_waiting_ranks_is_named) {
  const int size = launcher().sizes().back();
  if (size < 3) GTEST_SKIP() << "needs three ranks";
  // Rank 0 waits for rank 1, which waits for rank 2, …; the last one hangs.
  const auto endings = launcher().run(size, 0.6, [&](Communicator& own) {
    own.barrier();
    const int r = own.rank();
    if (r == size - 1) nap(2.5);
    if (r < size - 2) nap(0.3);
    int sent = r, received = 0;
    const ConstRows out{reinterpret_cast<const std::byte*>(&sent), 1, 4};
    const Rows in{reinterpret_cast<std::byte*>(&received), 1, 4};
    for (int to = size - 2; to >= 0; --to) {  // in call `to`, rank `to` receives from the next
      ExchangeRequest request;
      if (r == to + 1) request.sends.push_back({to, out});
      if (r == to) request.receives.push_back({to + 1, in});
      own.exchange(request);
    }
  });
  expect_failure(endings, size - 1, "keeps other ranks waiting");
}

TEST_P(CommunicatorSuite, a_rank_that_leaves_is_named) {
  for (const int size : launcher().sizes()) {
    if (size == 1) continue;
    auto endings = launcher().run(size, kCommTimeout, [&](Communicator& own) {
      own.barrier();
      if (own.rank() == 0) return;
      own.barrier();
    });
    std::erase_if(endings, [](const Ending& ending) { return ending.rank == 0; });
    expect_failure(endings, 0, "it ended while rank");
  }
}

TEST_P(CommunicatorSuite, a_call_that_is_given_up_leaves_memory_alone) {
  for (const int size : launcher().sizes()) {
    for (int repeat = 0; repeat < (size == 4 ? 2 : 1); ++repeat) {
      const auto endings = launcher().run(size, kCommTimeout, [&](Communicator& own) {
        own.barrier();
        auto traffic = std::make_unique<Traffic>(repeat, size, 30000);
        auto sum = std::make_unique<std::vector<double>>(100000, 1.0);
        {
          const PendingCall exchange = own.start_exchange(traffic->prepare(own.rank()));
          const PendingCall reduce = own.start_all_reduce(SumType::f64, sum->data(), 100000);
          if (own.rank() != 0) own.barrier();
        }
        // The sanitizers notice whoever still uses this memory.
        traffic.reset();
        sum.reset();
        own.barrier();
      });
      expect_failure(endings, 0, "gave up");
    }
  }
}

TEST_P(CommunicatorSuite, pending_calls_may_outlive_their_communicator) {
  for (const int size : launcher().sizes()) {
    std::vector<double> sums(size, 1.0);  // an element for each rank
    std::vector<std::optional<PendingCall>> kept(size);
    launcher().run(size, [&](Communicator& own) {
      own.barrier();
      kept[own.rank()].emplace(own.start_all_reduce(SumType::f64, &sums[own.rank()], 1));
    });
    kept.clear();
  }
}

TEST_P(CommunicatorSuite, ranks_that_disagree_are_told) {
  for (const int size : launcher().sizes()) {
    if (size == 1) continue;
    std::vector<Ending> endings = launcher().run(size, kCommTimeout, [&](Communicator& own) {
      const std::vector<std::byte> sent(64);
      std::vector<std::byte> received(64);
      ExchangeRequest request;
      if (own.rank() == 0) request.sends.push_back({1, {sent.data(), 4, 16}});
      if (own.rank() == 1) request.receives.push_back({0, {received.data(), 3, 16}});
      own.exchange(request);
      own.barrier();
    });
    expect_failure(endings, 0, "it sends 4 rows of 16 bytes where rank 1 expects 3 rows of 16 bytes");

    endings = launcher().run(size, kCommTimeout, [&](Communicator& own) {
      if (own.rank() == 0) nap(0.1);
      std::vector<float> data(5);
      own.all_reduce(data.data(), own.rank() == 0 ? 5 : 4);
    });
    for (const Ending& ending : endings) EXPECT_NE(ending.error.find("add"), std::string::npos) << ending.error;

    endings = launcher().run(size, kCommTimeout, [&](Communicator& own) {
      float x = 1;
      if (own.rank() == 0) {
        own.all_reduce(&x, 1);
      } else {
        own.barrier();
      }
    });
    for (const Ending& ending : endings) EXPECT_NE(ending.error.find("calls"), std::string::npos) << ending.error;
  }
}

TEST_P(CommunicatorSuite, another_thread_may_abort) {
  for (const int size : launcher().sizes()) {
    const auto endings = launcher().run(size, kCommTimeout, [&](Communicator& own) {
      own.barrier();
      std::thread other;
      if (own.rank() == 0) {
        other = std::thread([&] {
          nap(0.05);
          own.abort("stopped by its user");
        });
      }
      try {
        for (int i = 0; i < 1000000; ++i) {
          own.barrier();
          nap(1e-3);
        }
      } catch (...) {
        if (other.joinable()) other.join();
        throw;
      }
    });
    expect_failure(endings, 0, "stopped by its user");
  }
}

}  // namespace
}  // namespace nacre
