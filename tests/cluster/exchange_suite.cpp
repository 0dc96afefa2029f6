// Exchanges, texts and counters of any communicator.
#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "cluster/launcher.h"
#include "cluster/traffic.h"

namespace nacre {
namespace {

TEST_P(CommunicatorSuite, random_exchanges_arrive_and_are_counted) {
  for (const int size : launcher().sizes()) {
    launcher().run(size, [&](Communicator& own) {
      int64_t sent = 0, received = 0;
      for (uint64_t seed = 0; seed < 30; ++seed) {
        Traffic traffic(seed, size, seed % 5 == 0 ? 20000 : 50);
        PendingCall call = own.start_exchange(traffic.prepare(own.rank()));
        call.wait();
        traffic.check();
        EXPECT_EQ(call.counters().bytes_sent, traffic.bytes_sent(own.rank()));
        EXPECT_EQ(call.counters().bytes_received, traffic.bytes_received(own.rank()));
        EXPECT_GE(call.counters().elapsed, call.counters().waited);
        sent += traffic.bytes_sent(own.rank());
        received += traffic.bytes_received(own.rank());
      }
      const CommCounters total = own.counters();
      EXPECT_EQ(total.exchange.calls, 30);
      EXPECT_EQ(total.exchange.bytes_sent, sent);
      EXPECT_EQ(total.exchange.bytes_received, received);
    });
  }
}

// Every rank sends the rows of a table to every rank, also to itself, and adds what arrives.
TEST_P(CommunicatorSuite, rows_are_added_in_the_order_of_the_ranks) {
  constexpr int64_t kRows = 50, kWidth = 7;
  const auto value = [](int from, int64_t i) { return static_cast<float>(i % 13 + 1) * (from % 2 == 0 ? 1e8F : 1.1F); };
  for (const int size : launcher().sizes()) {
    launcher().run(size, [&](Communicator& own) {
      std::vector<float> sent(kRows * kWidth), sums(kRows * kWidth, 1);
      for (size_t i = 0; i < sent.size(); ++i) sent[i] = value(own.rank(), static_cast<int64_t>(i));
      std::vector<uint32_t> backwards(kRows);
      for (int64_t i = 0; i < kRows; ++i) backwards[static_cast<size_t>(i)] = static_cast<uint32_t>(kRows - 1 - i);
      ExchangeRequest request;
      const auto* from = reinterpret_cast<const std::byte*>(sent.data());
      auto* to = reinterpret_cast<std::byte*>(sums.data());
      for (int peer = size - 1; peer >= 0; --peer) {
        request.sends.push_back({peer, {from, kRows, kWidth * 4, 0, backwards.data()}});
        request.receives.push_back({peer, {to, kRows, kWidth * 4, 0, backwards.data()}, SumType::f32});
      }
      own.exchange(request);
      for (int64_t i = 0; i < kRows * kWidth; ++i) {
        float want = 1;
        for (int peer = 0; peer < size; ++peer) want += value(peer, i);
        EXPECT_EQ(sums[static_cast<size_t>(i)], want) << i;
      }
    });
  }
}

TEST_P(CommunicatorSuite, an_exchange_may_be_empty) {
  for (const int size : launcher().sizes()) {
    launcher().run(size, [](Communicator& own) {
      own.exchange({});
      own.exchange({});
      EXPECT_EQ(own.counters().exchange.calls, 2);
      EXPECT_EQ(own.counters().exchange.bytes_sent, 0);
    });
  }
}

TEST_P(CommunicatorSuite, many_calls_are_pending_and_end_in_any_order) {
  constexpr int kCalls = 40;
  for (const int size : launcher().sizes()) {
    launcher().run(size, [&](Communicator& own) {
      std::vector<std::unique_ptr<Traffic>> traffic;
      std::vector<std::vector<double>> sums(kCalls, std::vector<double>(100, own.rank() + 1));
      std::vector<PendingCall> calls;
      for (int i = 0; i < kCalls; ++i) {
        traffic.push_back(std::make_unique<Traffic>(i, size, 300));
        calls.push_back(own.start_exchange(traffic.back()->prepare(own.rank())));
        calls.push_back(own.start_all_reduce(SumType::f64, sums[i].data(), 100));
      }
      std::vector<int> order(calls.size());
      std::iota(order.begin(), order.end(), 0);
      Dice dice(own.rank() + 100);  // another order on every rank
      for (size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[dice.below(static_cast<int64_t>(i) + 1)]);
      for (const int i : order) calls[i].wait();
      for (const auto& each : traffic) each->check();
      for (const auto& sum : sums) EXPECT_EQ(sum, std::vector<double>(100, size * (size + 1) / 2));
    });
  }
}

TEST_P(CommunicatorSuite, a_message_may_be_large) {
  constexpr int64_t kRows = 10000, kWidth = 4001;
  launcher().run(launcher().sizes().back(), [&](Communicator& own) {
    const int to = (own.rank() + 1) % own.size(), from = (own.rank() + own.size() - 1) % own.size();
    const std::vector<std::byte> sent(kRows * kWidth, static_cast<std::byte>(own.rank() + 1));
    std::vector<std::byte> received(kRows * kWidth);
    own.exchange({{{to, {sent.data(), kRows, kWidth}}}, {{from, {received.data(), kRows, kWidth}}}});
    EXPECT_TRUE(std::all_of(received.begin(), received.end(), [&](std::byte b) { return b == std::byte(from + 1); }));
  });
}

TEST_P(CommunicatorSuite, texts_reach_all_ranks) {
  for (const int size : launcher().sizes()) {
    launcher().run(size, [&](Communicator& own) {
      const auto text_of = [](int rank) { return std::string(rank * rank * 10000, static_cast<char>(rank)); };
      for (int repeat = 0; repeat < 3; ++repeat) {
        const auto texts = own.all_gather(text_of(own.rank()));
        ASSERT_EQ(static_cast<int>(texts.size()), size);
        for (int r = 0; r < size; ++r) EXPECT_EQ(texts[r], text_of(r));
      }
      for (int root = 0; root < size; ++root) {
        EXPECT_EQ(own.broadcast(root, "from " + std::to_string(own.rank())), "from " + std::to_string(root));
      }
      own.barrier();
      EXPECT_EQ(own.counters().gather.calls, 3 + size + 1);
    });
  }
}

TEST_P(CommunicatorSuite, random_delays_change_nothing) {
  for (const int size : launcher().sizes()) {
    launcher().run(size, [&](Communicator& own) {
      Dice delays(own.rank() + 7), shape(5);
      for (int step = 0; step < 60; ++step) {
        const auto rest = [&] {
          if (delays.below(3) == 0) nap(1e-4 * static_cast<double>(delays.below(20)));
        };
        Traffic traffic(step, size, 200);
        rest();
        PendingCall exchange = own.start_exchange(traffic.prepare(own.rank()));
        rest();
        std::vector<float> sum(1 + shape.below(3000), static_cast<float>(own.rank()));
        PendingCall reduce = own.start_all_reduce(SumType::f32, sum.data(), static_cast<int64_t>(sum.size()));
        rest();
        if (shape.below(4) == 0) own.barrier();
        if (delays.below(2) == 0) reduce.wait();
        exchange.wait();
        reduce.wait();
        traffic.check();
        EXPECT_EQ(sum, std::vector<float>(sum.size(), static_cast<float>(size * (size - 1) / 2)));
      }
    });
  }
}

}  // namespace
}  // namespace nacre
