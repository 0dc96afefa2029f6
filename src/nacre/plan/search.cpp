#include "nacre/plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "nacre/base/log.h"
#include "nacre/base/trace.h"
#include "nacre/plan/cost.h"
#include "nacre/plan/narrow.h"
#include "nacre/plan/operands.h"
#include "nacre/plan/order.h"

namespace nacre {
namespace {

constexpr size_t kMaxCombinations = 64;
constexpr size_t kTimed = 4;  // candidates of a group that are told apart by timing
// A candidate is timed if it is predicted to take at most this many times as long as the best one.
// Predictions that are further apart are believed.
constexpr double kWorthTiming = 1.4;
constexpr double kDoesNotFit = 1e6;  // seconds that are added to plans that do not fit
constexpr int kTurns = 2;            // turns that two plans take with whole steps
constexpr double kPays = 2;          // least gain of a run, as a multiple of the cost of the turns
constexpr double kClearly = 0.98;    // most that a better step takes, as share of the step by rules
constexpr int kRounds = 3;           // rounds over all groups, until nothing changes
constexpr int64_t kBatchRows[] = {32, 64, 128, 256};

// The rules by which options are left out.
constexpr const char* kMoreWork = "at least as much of every kind of work as another option, and as much memory";
constexpr const char* kNotAmongTheBest = "predicted to be slower than the options that were looked at";
constexpr const char* kNoRoom = "does not fit into memory";
constexpr const char* kMuchSlower = "predicted to take more than 1.4 times as long as the best";
constexpr const char* kNoTime = "not told apart, because the time for timing was spent";
constexpr const char* kTimedSlower = "slower when its kernels were timed";

// Returns a text that is equal for kernels that take equally long: those of equal kind, direction
// and work. The direction counts because the hubs of one end of the edges, whose rows stay in
// cache, need not be hubs of the other end.
std::string signature(const Kernel& kernel, const Work& work) {
  std::string text = fmt::format("{} {}", work.kind, static_cast<int>(kernel.direction));
  for (const double a : work.amount) text += fmt::format(" {}", a);
  return text;
}

struct Estimate {
  size_t option = 0;  // number of the option in its group
  Plan plan;
  std::vector<Work> work;  // work of each kernel
  std::vector<std::string> signatures;
  double seconds = 0;    // timings where there are any, predictions otherwise
  double predicted = 0;  // seconds by predictions alone
  TotalWork total;
};

class Search {
 public:
  Search(const Dfg& dfg, const Blocks& blocks, const SearchOptions& how)
      : dfg_(dfg), blocks_(blocks), how_(how), model_(*how.model) {}

  SearchResult run(const PlanOptions& base) {
    const double start = now_seconds();
    result_.options = base;
    for (const auto& [name, sites] : site_groups()) choose_sites(name, sites);
    choose_batches();
    // The peak of memory, and the orders that are walked anyway, depend on all groups, so the
    // choices of all groups are revised.
    for (int round = 0; round < kRounds && how_.seconds_of_byte > 0 && choose_again(); ++round) {
    }
    deadline_ = now_seconds() + how_.budget_seconds;
    if (how_.measure && how_.budget_seconds > 0) tell_apart();
    if (how_.rules != nullptr && how_.measure_step) settle();
    for (const Group& group : groups_) report(group);
    result_.predicted = estimate(result_.options).seconds;
    result_.seconds = now_seconds() - start;
    return std::move(result_);
  }

 private:
  struct Option {
    PlanOptions options;
    std::string what;
    double predicted = 0;
    double measured = -1;
    TotalWork total = {};
  };
  struct Group {
    std::string name;
    std::vector<Option> options;                                 // options, the best first
    std::function<void(PlanOptions&, const PlanOptions&)> take;  // copies the choice of this group
    SpaceGroup space = {};
  };

  bool stores_otherwise() const { return how_.device != nullptr && stores_bf16(*how_.device); }
  // Returns the plan as the device runs it. Its kernels are those of the candidate, perhaps in
  // another order.
  Plan plan_to_time(const Plan& candidate) const {
    return make_plan(dfg_, blocks_, candidate.options, {.device = how_.device, .variants = false});
  }
  double measure(const Plan& candidate, size_t kernel) const {
    if (!stores_otherwise()) return how_.measure(candidate, kernel);
    const Plan plan = plan_to_time(candidate);
    const auto same = std::find_if(plan.kernels.begin(), plan.kernels.end(),
                                   [&](const Kernel& k) { return k.root == candidate.kernels[kernel].root; });
    return how_.measure(plan, static_cast<size_t>(same - plan.kernels.begin()));
  }
  double measure_step(const Plan& candidate) const {
    return how_.measure_step(stores_otherwise() ? plan_to_time(candidate) : candidate);
  }

  double seconds_of(const std::string& signature, const Work& work) const {
    const auto timed = timed_.find(signature);
    return timed != timed_.end() ? timed->second : model_.predict(work);
  }

  Estimate estimate(const PlanOptions& options) {
    Estimate e;
    e.plan = make_plan(dfg_, blocks_, options);
    ++result_.space.planned;
    for (const Kernel& k : e.plan.kernels) {
      e.work.push_back(kernel_work(k, e.plan, blocks_, how_.cache_bytes));
      e.signatures.push_back(signature(k, e.work.back()));
      const double epochs = k.once ? how_.epochs : 1;
      e.seconds += seconds_of(e.signatures.back(), e.work.back()) / epochs;
      e.predicted += how_.model->predict(e.work.back()) / epochs;
      e.total.add(e.work.back(), static_cast<int>(k.direction), 1 / epochs);
    }
    const int64_t limit = memory_limit(e.plan);
    const int64_t peak = peak_live_bytes(e.plan, blocks_);
    e.total.peak = peak;
    if (how_.seconds_of_byte > 0) {
      e.seconds += how_.seconds_of_byte * static_cast<double>(peak + order_bytes(e.plan, blocks_));
    }
    // A plan that does not fit loses to every plan that does.
    if (limit > 0 && peak > limit) e.seconds += kDoesNotFit + static_cast<double>(peak - limit);
    return e;
  }

  int64_t memory_limit(const Plan& plan) const {
    const auto keeps = [](const Node& node) { return node.op == Op::lstm_gates; };
    if (how_.keep_limit == 0 || std::none_of(plan.dfg.nodes().begin(), plan.dfg.nodes().end(), keeps)) {
      return how_.memory_limit;
    }
    return how_.memory_limit == 0 ? how_.keep_limit : std::min(how_.memory_limit, how_.keep_limit);
  }

  // Sites of one parameter share values (A·x, Aᵀ·g), so they are chosen together.
  std::vector<std::pair<std::string, std::vector<Site>>> site_groups() const {
    std::vector<std::pair<std::string, std::vector<Site>>> groups;
    const CoverLayers cover = how_.divide_edges ? blocks_.cover_layers() : CoverLayers{};
    for (Site& site : find_sites(prepare_dfg(dfg_, blocks_, result_.options), cover)) {
      const std::string name = site.key.substr(site.key.find('@') + 1);
      const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == name; });
      if (same == groups.end()) {
        groups.emplace_back(name, std::vector<Site>{std::move(site)});
      } else {
        same->second.push_back(std::move(site));
      }
    }
    return groups;
  }

  void choose_sites(const std::string& name, const std::vector<Site>& sites) {
    size_t combinations = 1;
    for (const Site& site : sites) combinations *= site.options.size();
    if (combinations > kMaxCombinations) {
      for (const Site& site : sites) choose_sites(site.key, {site});
      return;
    }
    Group group;
    group.name = name;
    for (size_t c = 0; c < combinations; ++c) {
      Option option{result_.options, "", 0, -1};
      size_t rest = c;
      for (const Site& site : sites) {
        const std::string& choice = site.options[rest % site.options.size()];
        rest /= site.options.size();
        option.options.choices[site.key] = choice;
        option.what +=
            fmt::format("{}{}={}", option.what.empty() ? "" : " ", site.key.substr(0, site.key.find('@')), choice);
      }
      group.options.push_back(std::move(option));
    }
    group.take = [sites](PlanOptions& to, const PlanOptions& from) {
      for (const Site& site : sites) to.choices[site.key] = from.choices.at(site.key);
    };
    add_group(std::move(group));
  }

  // Chooses how many sequences an LSTM runs together; layers of equal width get the same number.
  void choose_batches() {
    const Plan plan = make_plan(dfg_, blocks_, result_.options);
    std::map<std::string, std::vector<std::string>> by_width;
    for (const Kernel& k : plan.kernels) {
      if (!is_sequence(k.kind)) continue;
      auto& keys = by_width[type_text(plan.dfg[sequence_weight(k)].type)];
      const std::string key = kernel_key(plan.dfg, k);
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
    for (const auto& [width, keys] : by_width) {
      Group group;
      group.name = "lstm " + width;
      for (const int64_t rows : kBatchRows) {
        Option option{result_.options, fmt::format("dst-id={},dst-degree=min", rows), 0, -1};
        for (const std::string& key : keys) option.options.tables[key] = option.what;
        group.options.push_back(std::move(option));
      }
      group.take = [list = keys](PlanOptions& to, const PlanOptions& from) {
        for (const std::string& key : list) to.tables[key] = from.tables.at(key);
      };
      add_group(std::move(group));
    }
  }

  void add_group(Group group) {
    for (Option& option : group.options) predict(option, option.options);
    best_first(group);
    group.take(result_.options, group.options.front().options);
    groups_.push_back(std::move(group));
  }

  void predict(Option& option, const PlanOptions& options) {
    const Estimate e = estimate(options);
    option.predicted = e.seconds;
    option.total = e.total;
  }

  // If predictions are equal, the order of the options decides, so that the choice does not depend
  // on rounding.
  static void best_first(Group& group) {
    std::stable_sort(group.options.begin(), group.options.end(),
                     [](const Option& a, const Option& b) { return a.predicted < b.predicted; });
  }

  // Predicts every option again with the present choices of the other groups, and takes the best
  // one of each group. Returns whether any choice changed.
  bool choose_again() {
    const PlanOptions before = result_.options;
    for (Group& group : groups_) {
      for (Option& option : group.options) {
        PlanOptions options = result_.options;
        group.take(options, option.options);
        predict(option, options);
      }
      best_first(group);
      group.take(result_.options, group.options.front().options);
    }
    return result_.options != before;
  }

  // Returns the best options that no other option makes superfluous, the best first.
  static std::vector<size_t> worth_a_look(Group& group) {
    std::vector<size_t> chosen;
    for (size_t o = 0; o < group.options.size(); ++o) {
      const TotalWork& total = group.options[o].total;
      // If an option has not more work than another one in anything (covers()), it is predicted to
      // be at least as fast, so it comes before the other one.
      const bool superfluous = std::any_of(group.options.begin(), group.options.begin() + static_cast<int64_t>(o),
                                           [&](const Option& better) { return better.total.covers(total); });
      if (superfluous || chosen.size() == kTimed) {
        ++group.space.left_out[superfluous ? kMoreWork : kNotAmongTheBest];
      } else {
        chosen.push_back(o);
      }
    }
    return chosen;
  }

  void tell_apart() {
    bool time_left = true;
    for (Group& group : groups_) {
      std::vector<Estimate> rivals;
      for (const size_t o : worth_a_look(group)) {
        PlanOptions options = result_.options;
        group.take(options, group.options[o].options);
        rivals.push_back(estimate(options));
        rivals.back().option = o;
      }
      drop_hopeless(rivals, group.space);
      if (rivals.size() < 2) continue;
      time_left = time_left && time_rivals(rivals);
      group.space.left_out[time_left ? kTimedSlower : kNoTime] += static_cast<int64_t>(rivals.size()) - 1;
      if (!time_left) continue;
      group.space.timed = static_cast<int64_t>(rivals.size());
      // The kernels that were timed also correct the predictions of the others (GT3).
      model_.correct(result_.samples);
      const Option* best = nullptr;
      for (const Estimate& rival : rivals) {
        Option& option = group.options[rival.option];
        option.measured = estimate(rival.plan.options).seconds;
        if (best == nullptr || option.measured < best->measured) best = &option;
      }
      group.take(result_.options, best->options);
    }
  }

  // Drops plans that do not fit if another one does, and plans that are predicted to be much slower
  // than the best. This does not use timings: a plan of which some kernels were timed for another
  // group must not look slower, or faster, than one that is still all prediction.
  static void drop_hopeless(std::vector<Estimate>& rivals, SpaceGroup& space) {
    const auto drop = [&](const char* rule, const auto& hopeless) {
      const auto count = static_cast<int64_t>(std::erase_if(rivals, hopeless));
      if (count > 0) space.left_out[rule] += count;
    };
    const auto fits = [](const Estimate& e) { return e.seconds < kDoesNotFit; };
    if (std::any_of(rivals.begin(), rivals.end(), fits)) drop(kNoRoom, std::not_fn(fits));
    const auto best = std::min_element(rivals.begin(), rivals.end(),
                                       [](const Estimate& a, const Estimate& b) { return a.predicted < b.predicted; });
    const double slowest = best->predicted * kWorthTiming;
    drop(kMuchSlower, [&](const Estimate& e) { return e.predicted > slowest; });
  }

  // Times the kernels in which the rivals differ. Returns false if the budget is spent.
  bool time_rivals(const std::vector<Estimate>& rivals) {
    std::set<std::string> common(rivals[0].signatures.begin(), rivals[0].signatures.end());
    for (const Estimate& e : rivals) {
      const std::set<std::string> own(e.signatures.begin(), e.signatures.end());
      std::erase_if(common, [&](const std::string& s) { return !own.contains(s); });
    }
    return time_kernels(rivals, common);
  }

  // Times the kernels of the rivals that are neither common to all nor timed already. Returns false
  // if the budget is spent.
  bool time_kernels(const std::vector<Estimate>& rivals, const std::set<std::string>& common) {
    for (const Estimate& e : rivals) {
      for (size_t k = 0; k < e.work.size(); ++k) {
        if (e.plan.kernels[k].once || common.contains(e.signatures[k]) || timed_.contains(e.signatures[k])) continue;
        // Timing a kernel also runs the kernel before it in the step, which takes about as long.
        if (now_seconds() + 2 * model_.predict(e.work[k]) > deadline_) return false;
        const double seconds = measure(e.plan, k);
        if (seconds <= 0) return false;
        timed_[e.signatures[k]] = seconds;
        result_.samples.push_back({e.work[k], seconds});
      }
    }
    return true;
  }

  struct Contender {
    std::string name;
    PlanOptions options;
    Estimate estimate;
    double step = -1;  // measured seconds; negative if there are none
    bool fits() const { return estimate.seconds < kDoesNotFit; }
  };

  // Timings of single kernels, some of them predicted, have led to plans that were a fifth slower
  // than the plan by rules, so what they promise must show in whole steps.
  void settle() {
    std::vector<Contender> all{{"rules", *how_.rules, estimate(*how_.rules)}};
    if (result_.options != *how_.rules) all.push_back({"searched", result_.options, estimate(result_.options)});
    for (const NamedOptions& other : how_.others) all.push_back({other.name, other.options, estimate(other.options)});
    if (all.size() == 1) return;
    Contender& rules = all.front();
    Contender& rival = *std::min_element(all.begin() + 1, all.end(), [](const Contender& a, const Contender& b) {
      return a.estimate.seconds < b.estimate.seconds;
    });
    const bool better = rules.fits() ? rival_wins(rules, rival) : rival.fits();
    result_.options = better ? rival.options : rules.options;
    for (const Contender& c : all) {
      const bool chosen = &c == (better ? &rival : &rules);
      result_.candidates.push_back({"step", c.name, c.estimate.seconds, c.step, chosen});
    }
  }

  bool rival_wins(Contender& rules, Contender& rival) {
    const double gain = rules.estimate.seconds - rival.estimate.seconds;
    const double cost = kTurns * (rules.estimate.seconds + rival.estimate.seconds);
    if (gain * how_.epochs < kPays * cost) return false;
    for (int turn = 0; turn < kTurns; ++turn) {
      for (Contender* c : {&rules, &rival}) {
        if (turn == 0) ++result_.space.whole_steps;
        const double seconds = measure_step(c->estimate.plan);
        if (seconds < 0) return false;
        c->step = turn == 0 ? seconds : std::min(c->step, seconds);
      }
      if (rival.step > kClearly * rules.step) return false;
    }
    return true;
  }

  void report(const Group& group) {
    SpaceGroup space = group.space;
    space.name = group.name;
    space.options = static_cast<int64_t>(group.options.size());
    int64_t named = 1;  // the option that was chosen
    for (const auto& [rule, count] : space.left_out) named += count;
    if (named < space.options) space.left_out[kNotAmongTheBest] += space.options - named;
    result_.space.groups.push_back(std::move(space));
    const PlanOptions chosen = result_.options;
    for (const Option& option : group.options) {
      PlanOptions with = result_.options;
      group.take(with, option.options);
      const bool is_chosen = with.choices == chosen.choices && with.tables == chosen.tables;
      result_.candidates.push_back({group.name, option.what, option.predicted, option.measured, is_chosen});
    }
  }

  const Dfg& dfg_;
  const Blocks& blocks_;
  const SearchOptions& how_;
  SearchResult result_;
  std::vector<Group> groups_;
  std::map<std::string, double> timed_;
  CostModel model_;
  double deadline_ = 0;
};

}  // namespace

SearchResult search_plan(const Dfg& dfg, const Blocks& blocks, const PlanOptions& base, const SearchOptions& how) {
  const TraceSpan span("plan", "search");
  return Search(dfg, blocks, how).run(base);
}

double predict_plan(const Plan& plan, const Blocks& blocks, const SearchOptions& how) {
  double sum = 0;
  for (const Kernel& k : plan.kernels) {
    Work work = kernel_work(k, plan, blocks, how.cache_bytes);
    double seconds = 0;
    if (k.kind == KernelKind::exchange && how.link_bytes_per_second > 0)
      seconds = std::exchange(work[Feature::far_bytes], 0.0) / how.link_bytes_per_second;
    sum += (seconds + how.model->predict(work)) / (k.once ? how.epochs : 1);
  }
  return sum;
}

}  // namespace nacre
