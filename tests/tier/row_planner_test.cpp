#include "nacre/tier/row_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "support/rng.h"

namespace nacre::test {
namespace {

using Batches = std::vector<std::vector<NodeId>>;

// Rows fill whole pages here, so that no row is read along with another one.
RowLayout wide_rows(int64_t rows) { return {0, 4096, rows, 4096}; }

// Returns batches whose rows are drawn by a power law, as those of neighbour sampling are.
Batches draw_batches(uint64_t seed, int64_t rows, int64_t batches, int64_t size) {
  Rng rng(seed);
  Batches list(static_cast<size_t>(batches));
  for (auto& batch : list) {
    std::set<NodeId> drawn;
    while (static_cast<int64_t>(drawn.size()) < size) {
      const double u = rng.uniform();
      drawn.insert(
          static_cast<NodeId>(std::min<double>(static_cast<double>(rows) * u * u * u, static_cast<double>(rows - 1))));
    }
    batch.assign(drawn.begin(), drawn.end());
    for (size_t i = batch.size(); i > 1; --i)
      std::swap(batch[i - 1], batch[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
  }
  return list;
}

// Plans all batches with a look-ahead of `ahead` batches.
std::vector<BatchPlan> plan_all(const RowLayout& layout, const RowPlannerOptions& options, const Batches& batches,
                                size_t ahead) {
  RowPlanner planner(layout, options);
  std::vector<BatchPlan> plans;
  size_t added = 0;
  while (plans.size() < batches.size()) {
    while (added < batches.size() && added < plans.size() + ahead) planner.add(batches[added++]);
    plans.push_back(planner.plan());
  }
  return plans;
}

int64_t rows_read(const std::vector<BatchPlan>& plans) {
  int64_t sum = 0;
  for (const BatchPlan& plan : plans) sum += static_cast<int64_t>(plan.seats.size()) - plan.from_memory;
  return sum;
}

// Returns the fewest rows that any way of using `seats` seats reads, if every row of a batch needs
// a seat. It tries all ways.
int64_t least_reads(const Batches& batches, size_t seats) {
  std::map<std::set<NodeId>, int64_t> states = {{{}, 0}};
  for (const auto& batch : batches) {
    std::map<std::set<NodeId>, int64_t> next;
    for (const auto& [held, cost] : states) {
      std::vector<NodeId> others;
      for (const NodeId row : held) {
        if (std::find(batch.begin(), batch.end(), row) == batch.end()) others.push_back(row);
      }
      const auto missing = static_cast<int64_t>(batch.size() + others.size() - held.size());
      for (size_t kept = 0; kept < (size_t{1} << others.size()); ++kept) {
        std::set<NodeId> after(batch.begin(), batch.end());
        for (size_t i = 0; i < others.size(); ++i) {
          if ((kept >> i & 1) != 0) after.insert(others[i]);
        }
        if (after.size() > seats) continue;
        const auto [at, fresh] = next.try_emplace(after, cost + missing);
        if (!fresh) at->second = std::min(at->second, cost + missing);
      }
    }
    states = std::move(next);
  }
  int64_t least = INT64_MAX;
  for (const auto& [held, cost] : states) least = std::min(least, cost);
  return least;
}

// Returns the number of rows that Belady's rule reads if the whole future is known. Here, a row
// that is not kept needs no seat, so no real planner can read as few.
int64_t belady_reads(const Batches& batches, size_t seats) {
  std::map<NodeId, std::vector<size_t>> uses;
  for (size_t b = batches.size(); b-- > 0;) {
    for (const NodeId row : batches[b]) uses[row].push_back(b);
  }
  std::set<NodeId> held;
  int64_t reads = 0;
  for (const auto& batch : batches) {
    for (const NodeId row : batch) {
      reads += held.contains(row) ? 0 : 1;
      uses[row].pop_back();
    }
    held.insert(batch.begin(), batch.end());
    std::vector<std::pair<size_t, NodeId>> next;
    for (const NodeId row : held) next.emplace_back(uses[row].empty() ? SIZE_MAX : uses[row].back(), row);
    std::sort(next.begin(), next.end());
    held.clear();
    for (size_t i = 0; i < std::min(seats, next.size()); ++i) held.insert(next[i].second);
  }
  return reads;
}

TEST(RowPlanner, ReadsNoMoreThanAnyOtherWay) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed);
    const auto rows = static_cast<int64_t>(4 + rng.below(4));
    const auto size = static_cast<int64_t>(1 + rng.below(3));
    const auto seats = static_cast<int64_t>(size + static_cast<int64_t>(rng.below(3)));
    const Batches batches = draw_batches(seed, rows, 8, size);
    const auto plans = plan_all(wide_rows(rows), {seats, 1}, batches, batches.size());
    ASSERT_EQ(rows_read(plans), least_reads(batches, static_cast<size_t>(seats))) << "seed " << seed;
  }
}

TEST(RowPlanner, ReadsLittleMoreThanBelady) {
  for (const int64_t seats : {600, 1000, 2000}) {
    const Batches batches = draw_batches(7, 10000, 150, 200);
    const int64_t best = belady_reads(batches, static_cast<size_t>(seats));
    for (const size_t ahead : {20, 60, 150}) {
      const int64_t reads = rows_read(plan_all(wide_rows(10000), {seats, 2}, batches, ahead));
      EXPECT_GE(reads, best);
      EXPECT_LE(static_cast<double>(reads), 1.3 * static_cast<double>(best))
          << seats << " seats, " << ahead << " ahead";
    }
  }
}

// Follows the plans and checks that every row is in its seat when it is looked up, that no seat is
// overwritten too early, and that the numbers are right.
void check_plans(const std::vector<BatchPlan>& plans, const Batches& batches, const RowLayout& layout, int64_t seats) {
  std::vector<int64_t> row_in(static_cast<size_t>(seats), -1);
  std::vector<int64_t> used_by(static_cast<size_t>(seats), -1);
  for (size_t b = 0; b < plans.size(); ++b) {
    const BatchPlan& plan = plans[b];
    ASSERT_EQ(plan.number, static_cast<int64_t>(b));
    ASSERT_LT(plan.after, plan.number);
    ASSERT_EQ(plan.seats.size(), batches[b].size());
    std::set<int64_t> read;
    for (size_t i = 0; i < plan.fetches.size(); ++i) {
      const RowFetch& fetch = plan.fetches[i];
      ASSERT_TRUE(i == 0 || plan.fetches[i - 1].row < fetch.row);
      ASSERT_GE(fetch.seat, 0);
      ASSERT_LE(used_by[static_cast<size_t>(fetch.seat)], plan.after);
      row_in[static_cast<size_t>(fetch.seat)] = fetch.row;
      used_by[static_cast<size_t>(fetch.seat)] = plan.number;
      read.insert(fetch.row);
    }
    int64_t known = 0;
    std::set<int64_t> pages;
    for (size_t i = 0; i < plan.seats.size(); ++i) {
      const NodeId row = batches[b][i];
      const int32_t seat = plan.seats[i];
      if (seat != kNoSeat) {
        ASSERT_EQ(row_in[static_cast<size_t>(seat)], row);
        used_by[static_cast<size_t>(seat)] = plan.number;
      }
      if (seat != kNoSeat && !read.contains(row)) {
        ++known;
      } else {
        for (int64_t p = layout.first_page(row); p <= layout.last_page(row); ++p) pages.insert(p);
      }
    }
    ASSERT_EQ(plan.from_memory, known);
    ASSERT_EQ(plan.pages, static_cast<int64_t>(pages.size()));
    for (const RowFetch& fetch : plan.fetches) {
      for (int64_t p = layout.first_page(fetch.row); p <= layout.last_page(fetch.row); ++p)
        ASSERT_TRUE(pages.contains(p));
    }
    std::set<int32_t> distinct(plan.seats.begin(), plan.seats.end());
    distinct.erase(kNoSeat);
    ASSERT_EQ(static_cast<int64_t>(distinct.size()),
              static_cast<int64_t>(plan.seats.size()) - std::count(plan.seats.begin(), plan.seats.end(), kNoSeat));
  }
}

TEST(RowPlanner, EveryRowIsInItsSeat) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    constexpr int64_t widths[] = {4, 100, 400, 1000, 4096, 5000, 9000};
    const RowLayout layout{static_cast<int64_t>(rng.below(3) * 4096 + rng.below(2) * 52), widths[rng.below(7)], 3000,
                           4096};
    const auto size = static_cast<int64_t>(1 + rng.below(120));
    const auto seats = static_cast<int64_t>(rng.below(600));
    const auto lead = static_cast<int>(1 + rng.below(3));
    const Batches batches = draw_batches(seed, layout.rows, 60, size);
    const auto plans = plan_all(layout, {seats, lead}, batches, static_cast<size_t>(1 + rng.below(40)));
    check_plans(plans, batches, layout, seats);
  }
}

TEST(RowPlanner, RowsOfAPageThatIsReadComeAlong) {
  const RowLayout layout{0, 1024, 8, 4096};  // two pages of four rows
  RowPlanner planner(layout, {8, 1});
  planner.add(std::vector<NodeId>{1, 6});
  planner.add(std::vector<NodeId>{2, 7});
  const BatchPlan first = planner.plan();
  EXPECT_EQ(first.fetches.size(), 4U);
  EXPECT_EQ(first.pages, 2);
  const BatchPlan second = planner.plan();
  EXPECT_EQ(second.from_memory, 2);
  EXPECT_TRUE(second.fetches.empty());
}

TEST(RowPlanner, ABatchLargerThanAllSeatsIsPartlySeated) {
  RowPlanner planner(wide_rows(10), {3, 2});
  planner.add(std::vector<NodeId>{0, 1, 2, 3, 4});
  const BatchPlan plan = planner.plan();
  EXPECT_EQ(std::count(plan.seats.begin(), plan.seats.end(), kNoSeat), 2);
  EXPECT_EQ(plan.fetches.size(), 3U);
}

TEST(RowPlanner, EmptyBatches) {
  RowPlanner planner(wide_rows(10), {3, 2});
  planner.add({});
  planner.add(std::vector<NodeId>{5});
  EXPECT_TRUE(planner.plan().seats.empty());
  EXPECT_EQ(planner.plan().fetches.size(), 1U);
}

}  // namespace
}  // namespace nacre::test
