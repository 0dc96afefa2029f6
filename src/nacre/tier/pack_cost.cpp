#include "nacre/tier/pack_cost.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "nacre/base/philox.h"
#include "nacre/tier/pack_file.h"
#include "nacre/tier/row_reader.h"

namespace nacre {
namespace {

constexpr int kDepth = 32;
constexpr int64_t kRandomPages = 256;
constexpr int64_t kRunBytes = 8 << 20;
// If a group reads at least this share of all pages of the table, most of these pages are
// neighbours, so they are read in long runs.
constexpr double kDense = 0.25;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Returns the bytes per second at which these rows of `layout` are read.
double read_rate(const RowFile& file, const RowLayout& layout, std::vector<RowFetch> fetches) {
  if (fetches.empty()) return 0;
  const Seats nowhere{page_memory(static_cast<int64_t>(fetches.size()) * layout.row_bytes), layout.row_bytes};
  RowReader reader(make_read_queue(kDepth), nowhere);
  const double start = now();
  reader.add(0, file, layout, std::move(fetches));
  std::vector<int64_t> done;
  while (reader.busy()) reader.work(done);
  return static_cast<double>(reader.counts().bytes) / std::max(1e-9, now() - start);
}

// Returns fetches of at most `count` pages of the file, as if each page were a row: consecutive
// pages or, with `random`, pages at random places all over the file.
std::vector<RowFetch> some_pages(int64_t pages, int64_t count, bool random) {
  std::vector<RowFetch> fetches;
  const int64_t step = random ? std::max<int64_t>(1, pages / count) : 1;
  for (int64_t page = 0; page < pages && static_cast<int64_t>(fetches.size()) < count; page += step) {
    const auto within =
        static_cast<int64_t>(philox(7, 0, static_cast<uint64_t>(page))[0]) % std::max<int64_t>(1, step / 2);
    fetches.push_back({static_cast<NodeId>(page + (random ? within : 0)), static_cast<int32_t>(fetches.size())});
  }
  return fetches;
}

}  // namespace

DiskRates measure_rates(const RowFile& file, const std::string& folder) {
  DiskRates rates;
  const RowLayout& rows = file.layout();
  const int64_t pages = rows.rows * rows.row_bytes / rows.page;
  const RowLayout by_page{rows.offset / rows.page * rows.page, rows.page, pages, rows.page};
  rates.pages = read_rate(file, by_page, some_pages(pages, kRandomPages, true));
  rates.runs = read_rate(file, by_page, some_pages(pages, kRunBytes / rows.page, false));
  try {
    PackFile written(folder);
    const std::vector<char> bytes(1 << 20, 'x');
    const double start = now();
    written.reserve(kRunBytes);
    for (int64_t at = 0; at < kRunBytes; at += static_cast<int64_t>(bytes.size())) written.write(at, bytes);
    written.sync();
    rates.writes = static_cast<double>(kRunBytes) / std::max(1e-9, now() - start);
  } catch (const RuntimeError&) {
    rates.writes = 0;
  }
  return rates;
}

double seconds_in_place(const GroupReads& reads, const RowLayout& layout, const DiskRates& rates) {
  return static_cast<double>(reads.pages * layout.page) / std::max(1.0, rates.pages);
}

double seconds_packed(const GroupReads& reads, const RowLayout& layout, const DiskRates& rates) {
  if (rates.writes <= 0) return std::numeric_limits<double>::infinity();
  const auto all_pages = static_cast<double>(layout.rows * layout.row_bytes) / static_cast<double>(layout.page);
  // Pages that lie close to each other are read in long runs, others one by one.
  const bool dense = static_cast<double>(reads.distinct_pages) >= kDense * all_pages;
  const double gathered =
      static_cast<double>(reads.distinct_pages * layout.page) / std::max(1.0, dense ? rates.runs : rates.pages);
  const auto bytes = static_cast<double>(reads.rows * layout.row_bytes);
  return gathered + bytes / rates.writes + bytes / std::max(1.0, rates.runs);
}

}  // namespace nacre
