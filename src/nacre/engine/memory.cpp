#include "nacre/engine/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/log.h"

namespace nacre {
namespace {

constexpr int64_t kAlignment = 256;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

ArenaPlan plan_arena(const std::vector<BufferRequest>& requests) {
  ArenaPlan plan;
  plan.offsets.assign(requests.size(), 0);
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return requests[a].bytes > requests[b].bytes; });
  std::vector<size_t> placed;
  for (const size_t i : order) {
    const BufferRequest& want = requests[i];
    if (want.bytes == 0) continue;
    std::map<int64_t, int64_t> busy;  // begin → end of the bytes in use while `want` lives
    for (const size_t j : placed) {
      const BufferRequest& other = requests[j];
      if (other.first <= want.last && want.first <= other.last) {
        int64_t& end = busy[plan.offsets[j]];
        end = std::max(end, plan.offsets[j] + aligned(other.bytes));
      }
    }
    int64_t offset = 0;
    for (const auto& [begin, end] : busy) {
      if (begin - offset >= aligned(want.bytes)) break;
      offset = std::max(offset, end);
    }
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + aligned(want.bytes));
    placed.push_back(i);
  }
  std::map<int, int64_t> change;
  for (const BufferRequest& r : requests) {
    change[r.first] += r.bytes;
    change[r.last + 1] -= r.bytes;
  }
  int64_t live = 0;
  for (const auto& [step, delta] : change) plan.floor_bytes = std::max(plan.floor_bytes, live += delta);
  return plan;
}

int64_t total_bytes(const std::vector<MemoryItem>& items) {
  int64_t sum = 0;
  for (const MemoryItem& item : items) sum += item.bytes;
  return sum;
}

std::string memory_text(const std::vector<MemoryItem>& items) {
  size_t longest = 0;
  for (const MemoryItem& item : items) longest = std::max(longest, item.bytes > 0 ? item.what.size() : 0);
  const auto row = [&](const std::string& what, int64_t bytes) {
    return fmt::format("  {:<{}}  {:>10}  {:>15} B\n", what, longest, human_bytes(static_cast<double>(bytes)),
                       human_count(bytes));
  };
  std::string text;
  for (const MemoryItem& item : items) {
    if (item.bytes > 0) text += row(item.what, item.bytes);
  }
  return text + row("total", total_bytes(items));
}

void require_fit(const std::vector<MemoryItem>& items, int64_t limit, const std::string& remedy) {
  const int64_t need = total_bytes(items);
  if (need <= limit) return;
  const auto largest =
      std::max_element(items.begin(), items.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  throw UserError("memory",
                  fmt::format("the run needs {} but only {} may be used; the largest part is {} ({})",
                              human_bytes(static_cast<double>(need)), human_bytes(static_cast<double>(limit)),
                              largest->what, human_bytes(static_cast<double>(largest->bytes))),
                  !remedy.empty()
                      ? remedy
                      : "use a smaller --hidden, fewer --layers or --heads, a smaller graph, or raise --memory-limit");
}

}  // namespace nacre
