#include "nacre/cost/share_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "nacre/base/error.h"

namespace nacre {
namespace {

constexpr int64_t kRoomy = int64_t{1} << 40;

// A machine of devices with known speeds, and a graph that can be cut anywhere.
struct Machine {
  std::vector<ShareDevice> devices;
  std::vector<double> seconds;    // seconds of the whole graph on each device alone
  std::vector<double> start;      // seconds that a part takes even if it is empty
  double bytes = 1e9;             // memory of the whole graph
  double boundary = 0;            // bytes that each part exchanges if there are several parts
  double bend = 1;                // the time of a part grows with this power of its share
  double rounding = 0;            // if not 0, parts have shares that are multiples of this
  std::vector<double> cut_parts;  // shares of the last cut

  void add(double whole, int64_t memory = kRoomy, double rate = 0, double latency = 0) {
    devices.push_back({"device " + std::to_string(devices.size()), memory, rate, latency});
    seconds.push_back(whole);
    start.push_back(0);
  }

  ShareResult search(const ShareOptions& options = {}) {
    const CutByShares cut = [this](std::span<const double> shares) {
      EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-9);
      const auto parts = std::count_if(shares.begin(), shares.end(), [](double s) { return s > 0; });
      std::vector<PartLoad> loads;
      for (double s : shares) {
        if (rounding > 0 && s < 1) s = std::round(s / rounding) * rounding;
        const bool talks = parts > 1 && s > 0;
        loads.push_back(
            {{s}, static_cast<int64_t>(s * bytes), talks ? boundary : 0, talks ? static_cast<int>(parts) - 1 : 0});
      }
      return loads;
    };
    const PredictPart predict = [this](size_t d, const PartLoad& part) {
      return start[d] + seconds[d] * std::pow(part.features[0], bend);
    };
    return search_shares(devices, cut, predict, options);
  }
};

TEST(Shares, FollowTheSpeeds) {
  Machine m;
  for (const double whole : {1.0, 2.0, 4.0}) m.add(whole);
  const ShareResult r = m.search();
  EXPECT_NEAR(r.shares[0], 4.0 / 7, 0.01);
  EXPECT_NEAR(r.shares[1], 2.0 / 7, 0.01);
  EXPECT_NEAR(r.shares[2], 1.0 / 7, 0.01);
  EXPECT_NEAR(r.step_seconds, 4.0 / 7, 0.01);
  EXPECT_TRUE(r.notes.empty());
  EXPECT_LE(r.cuts, 20);
}

TEST(Shares, OneDeviceHasAll) {
  Machine m;
  m.add(3);
  const ShareResult r = m.search();
  EXPECT_EQ(r.shares, std::vector<double>{1});
  EXPECT_DOUBLE_EQ(r.step_seconds, 3);
  EXPECT_EQ(r.cuts, 1);
}

TEST(Shares, FirstSharesOfAnyKindLeadToTheSameEnd) {
  for (const std::vector<double>& first :
       {std::vector<double>{1, 1, 1}, {100, 1, 1}, {0, 0, 5}, {0.1, 0.2, 0.7}, {1e-9, 1, 1e9}}) {
    Machine m;
    for (const double whole : {1.0, 3.0, 6.0}) m.add(whole);
    m.start = {0.01, 0.02, 0.005};
    const ShareResult r = m.search({.first = first});
    EXPECT_NEAR(r.times[0].total(), r.times[1].total(), 0.03 * r.step_seconds);
    EXPECT_NEAR(r.times[0].total(), r.times[2].total(), 0.03 * r.step_seconds);
  }
}

// The time of a part may grow faster or more slowly than its share, for example because of caches.
TEST(Shares, BalanceTimesThatAreNoLines) {
  for (const double bend : {0.6, 0.8, 1.3, 1.7}) {
    Machine m;
    for (const double whole : {1.0, 2.0, 5.0}) m.add(whole);
    m.bend = bend;
    const ShareResult r = m.search({.cuts = 15});
    if (r.notes.empty()) {
      for (const PartTime& t : r.times) EXPECT_NEAR(t.total(), r.step_seconds, 0.05 * r.step_seconds) << bend;
    }
    EXPECT_LE(r.step_seconds, 1);
  }
}

TEST(Shares, APartitionerThatMissesItsTargets) {
  Machine m;
  for (const double whole : {1.0, 2.0}) m.add(whole);
  m.rounding = 0.05;
  EXPECT_LE(m.search().step_seconds, 0.71);
}

TEST(Shares, MemoryIsAHardLimit) {
  Machine m;
  m.add(1, int64_t{300'000'000});  // fast, with room for 30 % of the graph
  m.add(4);
  m.add(8);
  const ShareResult r = m.search();
  for (size_t d = 0; d < 3; ++d) EXPECT_LE(r.memory_bytes[d], m.devices[d].memory_bytes);
  EXPECT_GT(r.shares[0], 0.27);
  // The rest is shared by the speeds of the others.
  EXPECT_NEAR(r.shares[1] / r.shares[2], 2, 0.1);
}

TEST(Shares, AGraphThatFitsNowhere) {
  Machine m;
  m.add(1, int64_t{300'000'000});
  m.add(1, int64_t{300'000'000});
  EXPECT_THROW(m.search(), UserError);
}

TEST(Shares, MemoryThatSufficesOnlyTogether) {
  Machine m;
  m.add(1, int64_t{550'000'000});
  m.add(9, int64_t{550'000'000});
  const ShareResult r = m.search();
  EXPECT_LE(r.memory_bytes[0], 550'000'000);
  EXPECT_LE(r.memory_bytes[1], 550'000'000);
  EXPECT_GT(r.shares[0], 0.5);
}

TEST(Shares, ADeviceThatOnlySlowsTheOthersDownIsLeftOut) {
  Machine m;
  m.add(1);
  m.add(1);
  m.add(2, kRoomy, 1e9);  // a slow link: a second for the boundary
  m.boundary = 1e9;
  const ShareResult r = m.search();
  EXPECT_EQ(r.shares[2], 0);
  EXPECT_EQ(r.times[2].total(), 0);
  EXPECT_NEAR(r.step_seconds, 0.5, 0.02);
  ASSERT_EQ(r.notes.size(), 1);
  EXPECT_NE(r.notes[0].find("device 2 is left out"), std::string::npos);
}

TEST(Shares, CommunicationIsPartOfTheObjective) {
  Machine m;
  m.add(1, kRoomy, 1e10);
  m.add(1, kRoomy, 2e9);
  m.boundary = 4e8;  // 0.04 s and 0.2 s
  const ShareResult r = m.search();
  EXPECT_NEAR(r.times[0].total(), r.times[1].total(), 0.03);
  EXPECT_GT(r.shares[0], r.shares[1] + 0.1);
  EXPECT_NEAR(r.step_seconds, 0.62, 0.02);
}

// A host beside a GPU never makes the GPU slower.
TEST(Shares, NeverSlowerThanTheBestDeviceAlone) {
  for (const double link : {1e7, 1e8, 1e9, 1e10}) {
    for (const double slow : {2.0, 20.0, 200.0}) {
      Machine m;
      m.add(1, kRoomy, link, 0.001);
      m.add(slow, kRoomy, link, 0.001);
      m.boundary = 1e8;
      EXPECT_LE(m.search().step_seconds, 1) << link << " " << slow;
    }
  }
}

TEST(Shares, ManyDevices) {
  Machine m;
  double rate = 0;
  for (int d = 0; d < 64; ++d) {
    m.add(1 + d % 5);
    rate += 1.0 / (1 + d % 5);
  }
  EXPECT_NEAR(m.search().step_seconds, 1 / rate, 0.03 / rate);
}

}  // namespace
}  // namespace nacre
