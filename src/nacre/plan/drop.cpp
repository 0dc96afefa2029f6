#include "nacre/plan/drop.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "nacre/base/log.h"
#include "nacre/dfg/recompute.h"
#include "nacre/plan/order.h"

namespace nacre {
namespace {

using Names = std::set<std::string>;

struct Price {
  int64_t bytes = 0;
  double seconds = 0;
};

class Dropping {
 public:
  Dropping(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options, const DropOptions& how)
      : dfg_(dfg), blocks_(blocks), options_(options), how_(how), chosen_(choose_dfg(dfg, blocks, options)) {}

  // Drops values as long as the limit is not met, those with the fewest seconds for a byte first.
  // If no single value helps (several moments of a step need equally much), drops the cheapest of
  // all. If nothing is enough, returns the set with the smallest peak.
  Names until_it_fits(Names names) const {
    std::vector<Recomputable> left = candidates();
    std::erase_if(left, [&](const Recomputable& r) { return names.contains(r.name); });
    Names smallest = names;
    for (const bool over_edges : {false, true}) {
      while (price(names).bytes > how_.limit) {
        const auto next = cheapest(names, left, over_edges);
        if (next == left.end()) break;
        names.insert(next->name);
        left.erase(next);
        if (price(names).bytes < price(smallest).bytes) smallest = names;
      }
    }
    return without_the_needless(smallest);
  }

  // Returns the values that are worth dropping: starts with all that are cheap, and takes back
  // those that save little.
  Names worth_it(const Names& kept_dropped) const {
    const Price none = price({});
    const double all = static_cast<double>(none.bytes + resident_bytes());
    const int64_t least = std::max(how_.least_bytes, static_cast<int64_t>(how_.least_saved * all));
    Names names = kept_dropped;
    for (const Recomputable& r : candidates()) {
      // Dropping a value saves at most its own bytes, so smaller values need not be tried.
      if (!r.over_edges && bytes_of(chosen_, r.node) > least) names.insert(r.name);
    }
    while (true) {
      const std::vector<Dropped> each = prices(names);
      // The worst value is taken back first, because that may make others worth dropping.
      const Dropped* worst = nullptr;
      for (const Dropped& d : each) {
        const bool cheap = d.seconds / none.seconds < how_.time_for_memory * static_cast<double>(d.bytes) / all;
        if ((cheap && d.bytes > least) || kept_dropped.contains(d.value)) continue;
        const auto order = [](const Dropped& x) { return std::pair(x.bytes, -x.seconds); };
        if (worst == nullptr || order(d) < order(*worst)) worst = &d;
      }
      if (worst == nullptr) return names;
      names.erase(worst->value);
    }
  }

  std::vector<Dropped> prices(const Names& names) const {
    const Price with = price(names);
    std::vector<Dropped> each;
    for (const std::string& name : names) {
      Names others = names;
      others.erase(name);
      const Price without = price(others);
      each.push_back({name, without.bytes - with.bytes, with.seconds - without.seconds});
    }
    std::stable_sort(each.begin(), each.end(), [](const Dropped& a, const Dropped& b) { return a.bytes > b.bytes; });
    return each;
  }

  const Price& price(const Names& names) const {
    const auto known = prices_.find(names);
    if (known != prices_.end()) return known->second;
    PlanOptions options = options_;
    options.recompute = names;
    const Plan plan = plan_with(options);
    Price p{peak_live_bytes(plan, blocks_), 0};
    for (const Kernel& k : plan.kernels) {
      if (!k.once) p.seconds += how_.model->predict(kernel_work(k, plan, blocks_, how_.cache_bytes));
    }
    return prices_.emplace(names, p).first->second;
  }

 private:
  std::vector<Recomputable> candidates() const { return find_recomputable(chosen_); }
  // Returns the bytes that stay in memory whatever a step does: the graph both ways, values
  // computed once, and leaves that steps read.
  int64_t resident_bytes() const {
    const Plan plan = plan_with(options_);
    std::set<NodeRef> values;
    for (const Kernel& k : plan.kernels) {
      if (k.once) {
        values.insert(k.writes.begin(), k.writes.end());
      } else {
        std::copy_if(k.reads.begin(), k.reads.end(), std::inserter(values, values.end()),
                     [&](NodeRef r) { return plan.dfg[r].op == Op::input; });
      }
    }
    int64_t bytes = blocks_.num_layers() > 0 ? 2 * 4 * blocks_.rows(Space::edge(0)) : 0;
    for (const NodeRef v : values) bytes += bytes_in_memory(plan, blocks_, v);
    return bytes;
  }
  // Returns the bytes of a value that is not stored as bf16.
  int64_t bytes_of(const Dfg& dfg, NodeRef i) const {
    const ValueType& type = dfg[i].type;
    return blocks_.rows(type.space) * type.row_size() * dtype_size(type.dtype);
  }
  Plan plan_with(const PlanOptions& options) const {
    return make_plan(dfg_, blocks_, options, {.device = how_.device, .variants = false});
  }

  std::vector<Recomputable>::iterator cheapest(const Names& names, std::vector<Recomputable>& left,
                                               bool over_edges) const {
    const Price now = price(names);
    auto best = left.end();
    std::pair<bool, double> best_rate;
    for (auto it = left.begin(); it != left.end(); ++it) {
      if (it->over_edges && !over_edges) continue;
      Names with = names;
      with.insert(it->name);
      const Price then = price(with);
      const double seconds = std::max(1e-9, then.seconds - now.seconds);
      const bool helps = then.bytes < now.bytes;
      const std::pair rate(!helps, helps ? seconds / static_cast<double>(now.bytes - then.bytes) : seconds);
      if (best == left.end() || rate < best_rate) {
        best = it;
        best_rate = rate;
      }
    }
    return best;
  }

  // Takes back values that need not be dropped after all, the costliest first.
  Names without_the_needless(Names names) const {
    const int64_t limit = std::max(how_.limit, price(names).bytes);
    std::vector<Dropped> each = prices(names);
    std::stable_sort(each.begin(), each.end(),
                     [](const Dropped& a, const Dropped& b) { return a.seconds > b.seconds; });
    for (const Dropped& d : each) {
      if (options_.recompute.contains(d.value)) continue;
      Names others = names;
      others.erase(d.value);
      if (price(others).bytes <= limit) names = others;
    }
    return names;
  }

  const Dfg& dfg_;
  const Blocks& blocks_;
  const PlanOptions& options_;
  const DropOptions& how_;
  Dfg chosen_;  // the DFG before anything is dropped
  mutable std::map<Names, Price> prices_;
};

}  // namespace

std::vector<Dropped> choose_dropped(const Dfg& dfg, const Blocks& blocks, PlanOptions& options,
                                    const DropOptions& how) {
  const Dropping dropping(dfg, blocks, options, how);
  Names names = options.recompute;
  if (how.least_saved < 1) names = dropping.worth_it(names);
  if (how.limit > 0 && dropping.price(names).bytes > how.limit) names = dropping.until_it_fits(names);
  std::vector<Dropped> dropped = dropping.prices(names);
  options.recompute = std::move(names);
  return dropped;
}

std::vector<Dropped> price_dropped(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options,
                                   const DropOptions& how) {
  return Dropping(dfg, blocks, options, how).prices(options.recompute);
}

std::string dropped_text(const std::vector<Dropped>& dropped) {
  std::string text = dropped.empty() ? "" : "computed again in the backward pass instead of kept:\n";
  for (const Dropped& d : dropped) {
    text += fmt::format("  {}: saves {}, takes {} a step\n", d.value, human_bytes(static_cast<double>(d.bytes)),
                        human_seconds(d.seconds));
  }
  return text;
}

}  // namespace nacre
