// Measures how much less the disk tier reads than a mapped file of which as many bytes are in
// memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <list>
#include <unordered_map>

#include "nacre/data/twin.h"
#include "nacre/tier/batch_sequence.h"
#include "nacre/tier/disk_rows.h"

namespace nacre::test {
namespace {

// Simulates the page cache of a system that drops the page that was used longest ago.
class PageCache {
 public:
  explicit PageCache(int64_t pages) : pages_(static_cast<size_t>(pages)) {}
  void touch(int64_t page) {
    const auto found = places_.find(page);
    if (found != places_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return;
    }
    ++read_;
    order_.push_front(page);
    places_[page] = order_.begin();
    if (order_.size() <= pages_) return;
    places_.erase(order_.back());
    order_.pop_back();
  }
  int64_t read() const { return read_; }

 private:
  size_t pages_;
  int64_t read_ = 0;
  std::list<int64_t> order_;
  std::unordered_map<int64_t, std::list<int64_t>::iterator> places_;
};

// Returns the rows that Belady's rule reads if everything is known. Rows that are not kept need no
// memory, so nothing can read less.
int64_t belady_rows(const std::vector<std::vector<NodeId>>& batches, int64_t rows, int64_t seats) {
  std::vector<std::vector<int32_t>> uses(static_cast<size_t>(rows));
  for (size_t b = batches.size(); b-- > 0;) {
    for (const NodeId row : batches[b]) uses[row].push_back(static_cast<int32_t>(b));
  }
  std::vector<uint8_t> held(static_cast<size_t>(rows), 0);
  std::vector<NodeId> known;
  int64_t read = 0;
  for (const auto& batch : batches) {
    for (const NodeId row : batch) {
      uses[row].pop_back();
      if (held[row] != 0) continue;
      ++read;
      held[row] = 1;
      known.push_back(row);
    }
    const auto next = [&](NodeId row) { return uses[row].empty() ? INT32_MAX : uses[row].back(); };
    std::erase_if(known, [&](NodeId row) {
      if (next(row) == INT32_MAX) held[row] = 0;
      return held[row] == 0;
    });
    const auto most = static_cast<size_t>(seats);
    if (known.size() <= most) continue;
    std::nth_element(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(most), known.end(),
                     [&](NodeId a, NodeId b) { return next(a) < next(b); });
    for (size_t i = most; i < known.size(); ++i) held[known[i]] = 0;
    known.resize(most);
  }
  return read;
}

struct Savings {
  int64_t looked_up = 0;
  int64_t rows = 0;    // rows that the disk tier reads
  int64_t belady = 0;  // the fewest rows that must be read
  int64_t bytes = 0;   // bytes that the disk tier reads
  int64_t mapped = 0;  // bytes that are read if the file is mapped
  int64_t packed = 0;  // bytes that packing writes

  void print(const char* what) const {
    std::printf(
        "%s: %ld rows looked up, %ld read (Belady %ld), %.1f MB read, %.1f MB written, mapped %.1f MB (%.1f times)\n",
        what, looked_up, rows, belady, static_cast<double>(bytes) / 1e6, static_cast<double>(packed) / 1e6,
        static_cast<double>(mapped) / 1e6, static_cast<double>(mapped) / static_cast<double>(bytes));
  }
};

// The rows of a group are read once, each page once, and are then read from the pack.
class Group {
 public:
  Group(const RowLayout& layout, int64_t most) : layout_(layout), most_(most) {}
  void add(const BatchPlan& plan, Savings& s) {
    for (const RowFetch& fetch : plan.fetches) pages_.push_back(layout_.first_page(fetch.row));
    const auto bytes = static_cast<int64_t>(plan.fetches.size()) * layout_.row_bytes;
    s.bytes += bytes;
    s.packed += bytes;
    if (static_cast<int64_t>(pages_.size()) >= most_) finish(s);
  }
  void finish(Savings& s) {
    std::sort(pages_.begin(), pages_.end());
    s.bytes += (std::unique(pages_.begin(), pages_.end()) - pages_.begin()) * layout_.page;
    pages_.clear();
  }

 private:
  RowLayout layout_;
  int64_t most_;
  std::vector<int64_t> pages_;
};

Savings measure(int64_t row_bytes, int64_t part, bool packs) {
  const Dataset data = make_twin("products@0.02", 1, false);
  const int64_t vertices = data.num_nodes();
  const int64_t budget = vertices * row_bytes / part;
  SampleOptions options;
  options.fanout = {10, 5};
  const Sampler sampler(data.graph, options);
  const auto sequence =
      sampled_batches(sampler, sampler.make_batch_sampler(), BatchOrder(data.splits.train, 24, 1, true));
  sequence->begin({0, 0});
  std::vector<std::vector<NodeId>> lists(120);
  size_t most = 0;
  for (auto& list : lists) {
    sequence->next(list);
    most = std::max(most, list.size());
  }
  const RowLayout layout{4096, row_bytes, vertices, 4096};
  const int64_t for_packs = packs ? budget / 4 : 0;
  const TierSizes sizes = divide_budget(budget - for_packs, row_bytes, static_cast<int64_t>(most));
  EXPECT_GE(sizes.seats, static_cast<int64_t>(most));
  RowPlanner planner(layout, {sizes.seats, sizes.lead});
  planner.take_neighbours(!packs);
  PageCache cache(budget / layout.page);
  Group group(layout, DiskRows::pack_bytes({Packing::on, "", for_packs}, 1) / 3);
  Savings s;
  size_t added = 0;
  for (const auto& list : lists) {
    while (added < lists.size() && planner.rows_ahead() < sizes.rows_ahead) planner.add(lists[added++]);
    const BatchPlan plan = planner.plan();
    if (packs) {
      group.add(plan, s);
    } else {
      s.bytes += plan.pages * layout.page;
    }
    s.rows += static_cast<int64_t>(list.size()) - plan.from_memory;
    s.looked_up += static_cast<int64_t>(list.size());
    for (const NodeId row : list) {
      for (int64_t p = layout.first_page(row); p <= layout.last_page(row); ++p) cache.touch(p);
    }
  }
  if (packs) group.finish(s);
  s.mapped = cache.read() * layout.page;
  s.belady = belady_rows(lists, vertices, sizes.seats);
  return s;
}

// The features take 10 times and 4 times the memory, in rows of 128 numbers.
TEST(Savings, ShortRows) {
  for (const int64_t part : {10, 4}) {
    const Savings packed = measure(512, part, true);
    const Savings in_place = measure(512, part, false);
    packed.print("rows of 512 bytes, packed");
    in_place.print("rows of 512 bytes, in place");
    EXPECT_GE(packed.mapped, 3 * packed.bytes);
    EXPECT_GE(in_place.mapped, 2 * in_place.bytes);
    EXPECT_LE(static_cast<double>(packed.rows), 1.3 * static_cast<double>(packed.belady));
    EXPECT_LE(static_cast<double>(in_place.rows), 1.3 * static_cast<double>(in_place.belady));
  }
}

// If rows fill whole pages, only the choice of the rows in memory makes a difference.
TEST(Savings, RowsOfWholePages) {
  for (const int64_t part : {10, 4}) {
    const Savings s = measure(4096, part, false);
    s.print("rows of 4096 bytes");
    EXPECT_GT(s.mapped, s.bytes * 5 / 4);
    EXPECT_LE(static_cast<double>(s.rows), 1.3 * static_cast<double>(s.belady));
  }
}

}  // namespace
}  // namespace nacre::test
