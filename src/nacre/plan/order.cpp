#include "nacre/plan/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/plan/in_place.h"

namespace nacre {
namespace {

// Tracks which values are alive while kernels run one after another.
class LiveValues {
 public:
  LiveValues(const Plan& plan, const Blocks& blocks) : plan_(plan), blocks_(blocks) {
    readers_.assign(plan.dfg, 0);
    in_step_.assign(plan.dfg, 0);
    for (const Kernel& k : plan.kernels) {
      if (k.once) continue;
      for (const NodeRef w : k.writes) in_step_[w] = 1;
      for (const NodeRef r : k.reads) ++readers_[r];
    }
    const auto keep = [&](NodeRef node) { ++readers_[plan.alias[node]]; };
    for (const auto& [name, node] : plan.dfg.outputs()) keep(node);
    for (const auto& [name, node] : plan.dfg.updates()) keep(node);
  }

  // Returns how many more bytes are alive while the kernel runs than before it.
  int64_t extra(const Kernel& k) const {
    int64_t bytes = 0;
    for (const auto& [node, size] : fresh(k)) bytes += size;
    return bytes;
  }

  // Returns what the kernel writes, unless it takes the place of an operand.
  std::vector<std::pair<NodeRef, int64_t>> fresh(const Kernel& k) const {
    std::vector<std::pair<NodeRef, int64_t>> list;
    std::vector<NodeRef> taken;
    for (const NodeRef w : k.writes) {
      const NodeRef r = overwritten_operand(plan_, k, w, [&](NodeRef o) {
        return in_step_[o] && readers_[o] == 1 && size(o) == size(w) &&
               std::find(taken.begin(), taken.end(), o) == taken.end();
      });
      if (r < 0) {
        list.emplace_back(w, size(w));
      } else {
        taken.push_back(r);
      }
    }
    return list;
  }

  // Returns how many more bytes are alive after the kernel than before it; negative if there are
  // fewer.
  int64_t change(const Kernel& k) const {
    int64_t bytes = written(k);
    for (const NodeRef r : k.reads) {
      if (in_step_[r] && readers_[r] == 1) bytes -= size(r);
    }
    return bytes;
  }

  void run(const Kernel& k) {
    peak_ = std::max(peak_, live_ + extra(k));
    live_ += change(k);
    for (const NodeRef r : k.reads) --readers_[r];
  }

  int64_t written(const Kernel& k) const {
    int64_t bytes = 0;
    for (const NodeRef w : k.writes) bytes += size(w);
    return bytes;
  }
  int64_t peak() const { return peak_; }

  // Returns the values in memory while the kernel runs, except those that it writes in the place of
  // an operand.
  std::vector<std::pair<NodeRef, int64_t>> values(const Kernel& k, const NodeVector<char>& written) const {
    std::vector<std::pair<NodeRef, int64_t>> list;
    for (NodeRef i = 0; i < plan_.dfg.size(); ++i) {
      if (written[i] && readers_[i] > 0) list.emplace_back(i, size(i));
    }
    for (const auto& [node, bytes] : fresh(k)) list.emplace_back(node, bytes);
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    return list;
  }

 private:
  int64_t size(NodeRef i) const { return bytes_in_memory(plan_, blocks_, i); }
  const Plan& plan_;
  const Blocks& blocks_;
  NodeVector<int> readers_;
  NodeVector<char> in_step_;
  int64_t live_ = 0;
  int64_t peak_ = 0;
};

// Returns the bytes of the largest value that a kernel writes. Sizes are compared in units of a
// part of it, so that small values (gradients of weights) do not decide.
int64_t largest_value(const Plan& plan, const Blocks& blocks) {
  int64_t most = 1;
  for (const Kernel& k : plan.kernels) {
    for (const NodeRef w : k.writes) most = std::max(most, bytes_in_memory(plan, blocks, w));
  }
  return most;
}

// Tells which kernels can run next. A kernel that computes a dropped value again waits for a reader
// that needs nothing else, because earlier it would only fill memory.
class Ready {
 public:
  explicit Ready(const Plan& plan) : plan_(plan), done_(plan.kernels.size(), 0), readers_(plan.kernels.size()) {
    std::map<NodeRef, size_t> writer;
    for (size_t k = 0; k < plan.kernels.size(); ++k) {
      for (const NodeRef w : plan.kernels[k].writes) writer[w] = k;
    }
    size_t last = plan.kernels.size();  // the last kernel before k that communicates
    for (size_t k = 0; k < plan.kernels.size(); ++k) {
      std::vector<size_t>& needs = needs_.emplace_back();
      for (const NodeRef r : plan.kernels[k].reads) {
        const auto found = writer.find(r);
        if (found == writer.end()) continue;
        needs.push_back(found->second);
        readers_[found->second].push_back(k);
      }
      // All ranks must communicate in the same order, although their memory differs, so a
      // communication kernel runs after the one before it in the plan.
      if (plan.kernels[k].kind != KernelKind::exchange) continue;
      if (last < plan.kernels.size()) needs.push_back(last);
      last = k;
    }
  }

  bool done(size_t k) const { return done_[k] != 0; }
  void run(size_t k) { done_[k] = 1; }
  bool operator()(size_t k) const {
    return !done(k) && std::all_of(needs_[k].begin(), needs_[k].end(), [&](size_t n) { return done(n); }) &&
           (!late(k) || wanted(k));
  }

 private:
  bool late(size_t k) const {
    const std::vector<NodeRef>& writes = plan_.kernels[k].writes;
    return !plan_.again.empty() &&
           std::all_of(writes.begin(), writes.end(), [&](NodeRef w) { return plan_.again[w] != 0; });
  }
  bool wanted(size_t k) const {
    return std::any_of(readers_[k].begin(), readers_[k].end(), [&](size_t r) {
      return std::all_of(needs_[r].begin(), needs_[r].end(), [&](size_t n) { return done(n) || late(n); }) &&
             (!late(r) || wanted(r));
    });
  }

  const Plan& plan_;
  std::vector<char> done_;
  // For each kernel, the kernels that read what it writes, and the kernels that must run before it.
  std::vector<std::vector<size_t>> readers_, needs_;
};

std::vector<size_t> greedy_order(const Plan& plan, const Blocks& blocks) {
  std::vector<size_t> order;
  Ready ready(plan);
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    if (plan.kernels[k].once) {
      order.push_back(k);
      ready.run(k);
    }
  }
  LiveValues live(plan, blocks);
  const int64_t unit = std::max<int64_t>(1, largest_value(plan, blocks) / 64);
  const auto units = [unit](int64_t bytes) { return (bytes >= 0 ? bytes : bytes - unit + 1) / unit; };
  while (order.size() < plan.kernels.size()) {
    size_t best = plan.kernels.size();
    std::tuple<int64_t, int64_t, int64_t> best_change;
    for (size_t k = 0; k < plan.kernels.size(); ++k) {
      if (!ready(k)) continue;
      // Of several kernels after which equally much is alive, the one that needs least memory while
      // it runs comes first, then the one that writes least. So gradients of weights come first,
      // and the kernel after them may reuse the memory of their operands.
      const std::tuple change(units(live.change(plan.kernels[k])), units(live.extra(plan.kernels[k])),
                              units(live.written(plan.kernels[k])));
      if (best == plan.kernels.size() || change < best_change) {
        best = k;
        best_change = change;
      }
    }
    NACRE_CHECK(best < plan.kernels.size(), "kernels wait for each other");
    live.run(plan.kernels[best]);
    order.push_back(best);
    ready.run(best);
  }
  return order;
}

}  // namespace

int64_t peak_live_bytes(const Plan& plan, const Blocks& blocks) {
  LiveValues live(plan, blocks);
  for (const Kernel& k : plan.kernels) {
    if (!k.once) live.run(k);
  }
  return live.peak();
}

LivePeak live_at_peak(const Plan& plan, const Blocks& blocks) {
  LivePeak most;
  LiveValues live(plan, blocks);
  NodeVector<char> written(plan.dfg, 0);
  int64_t peak = -1;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const Kernel& kernel = plan.kernels[k];
    if (kernel.once) continue;
    auto values = live.values(kernel, written);
    live.run(kernel);
    if (live.peak() > peak) most = {k, std::move(values)};
    peak = live.peak();
    for (const NodeRef w : kernel.writes) written[w] = 1;
  }
  return most;
}

std::string peak_text(const Plan& plan, const LivePeak& peak) {
  std::string text = fmt::format("alive at the peak of a step, kernel [{}]:\n", peak.kernel);
  const int64_t largest = peak.values.empty() ? 0 : peak.values.front().second;
  int64_t rest = 0;
  for (const auto& [node, bytes] : peak.values) {
    if (bytes * 64 < largest) {
      rest += bytes;
      continue;
    }
    const Node& n = plan.dfg[node];
    text += fmt::format("  %{} {} {}  {}\n", node, op_info(n.op).name, type_text(n.type),
                        human_bytes(static_cast<double>(bytes)));
  }
  if (rest > 0) text += fmt::format("  smaller values  {}\n", human_bytes(static_cast<double>(rest)));
  return text;
}

void order_for_memory(Plan& plan, const Blocks& blocks) {
  Plan ordered = plan;
  ordered.kernels.clear();
  for (const size_t k : greedy_order(plan, blocks)) ordered.kernels.push_back(plan.kernels[k]);
  if (peak_live_bytes(ordered, blocks) <= peak_live_bytes(plan, blocks)) plan.kernels = std::move(ordered.kernels);
}

}  // namespace nacre
