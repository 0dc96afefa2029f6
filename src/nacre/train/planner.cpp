#include "nacre/train/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <new>
#include <numeric>
#include <optional>

#include "nacre/base/error.h"
#include "nacre/base/file_cache.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/pending_file.h"
#include "nacre/engine/calibrate.h"
#include "nacre/engine/measure.h"
#include "nacre/plan/order.h"
#include "nacre/train/bill.h"

namespace nacre {
namespace {

// What plans by rules may keep to save time: the same on every machine that has it.
constexpr int64_t kKeepByRules = int64_t{8} << 30;

// Below this predicted time of a whole run, searching and measuring could not pay for themselves.
constexpr double kWorthSearching = 5.0;

std::optional<PartitionTable> as_table(const std::string& text) {
  if (text.find('=') == std::string::npos || std::filesystem::exists(text)) return std::nullopt;
  return PartitionTable::parse(text);
}

std::optional<PlanOptions> named_options(const std::string& plan) {
  PlanOptions options;
  if (plan == "tensor") {
    options.fuse = options.rewrite = false;
    return options;
  }
  if (plan == "vertex" || plan == "edge") {
    options.rewrite = false;
    options.table = PartitionTable::parse(plan == "vertex" ? "dst-id=1" : "edge-id=1");
    return options;
  }
  if (const auto table = as_table(plan)) {
    options.table = *table;
    return options;
  }
  return std::nullopt;
}

std::string cache_key(const Dfg& dfg, const Blocks& blocks, const Backend& backend,
                      const std::set<std::string>& disabled_passes) {
  const JoinedProducts joined = backend.joined_products();
  std::string key =
      fmt::format("plan {} {} {}{}{} layers {}\n", kProfileVersion, machine_name(num_threads()), backend.name(),
                  joined.rows > 0 ? " joined" : "", joined.typed ? " by type" : "", blocks.num_layers());
  for (int l = 0; l < blocks.num_layers(); ++l) key += fmt::format("{:016x} ", blocks.layer(l).fingerprint());
  for (const std::string& pass : disabled_passes) key += "without " + pass + " ";
  return key + "\n" + print_dfg(dfg);
}

// A GPU's memory is dear: a byte less at the peak is worth writing one.
constexpr double kGpuByte = 1 / 4e12;
// Edges of a vertex from which on what is kept for each of them is more than rows scaled once more.
constexpr int64_t kManyEdges = 24;
// A step may become longer by this much of the share of memory that it saves.
constexpr double kGpuTimeForMemory = 0.6;

// What plans are made for and timed on: one graph that stays, or batches of which the plan's will be like.
struct Ground {
  std::vector<TrialBlocks> trials;
  size_t typical = 0;     // whose counts decide
  bool changing = false;  // nothing can be computed once
};

// Times on every trial, so that a plan suits them all; negative when one of them does not fit.
class TrialTimers {
 public:
  // As many trials as fit into `memory` beside each other, the typical one first; `bytes` is what one of them takes.
  TrialTimers(const Ground& ground, const std::shared_ptr<Backend>& backend, int64_t memory, int64_t bytes) {
    const auto fit = static_cast<size_t>(std::max<int64_t>(1, memory / 2 / std::max<int64_t>(1, bytes)));
    const auto add = [&](const TrialBlocks& t) {
      timers_.push_back(
          std::make_unique<KernelTimer>(t.blocks, ground.changing ? backend->scoped() : backend, t.bind, memory));
    };
    add(ground.trials[ground.typical]);
    for (size_t i = 0; i < ground.trials.size() && timers_.size() < fit; ++i) {
      if (i != ground.typical) add(ground.trials[i]);
    }
  }
  double kernel(const Plan& plan, size_t kernel) {
    return mean([&](KernelTimer& timer) { return timer(plan, kernel); });
  }
  double step(const Plan& plan) {
    return mean([&](KernelTimer& timer) { return timer.step(plan); });
  }

 private:
  template <class Time>
  double mean(const Time& time) {
    double sum = 0;
    for (const auto& timer : timers_) {
      const double seconds = time(*timer);
      if (seconds < 0) return seconds;
      sum += seconds;
    }
    return sum / static_cast<double>(timers_.size());
  }
  std::vector<std::unique_ptr<KernelTimer>> timers_;
};

int64_t memory_for(const PlanRequest& request, Backend& backend) {
  return request.memory_limit > 0 ? request.memory_limit : backend.available_bytes() / 10 * 9;
}

// Prices by rules: the same values are dropped on every machine that has the memory.
DropOptions drop_options(const Backend& backend) {
  DropOptions how;
  if (backend.name() == "cpu") return how;
  how.model = &nominal_gpu_model();
  how.cache_bytes = kNominalGpuCache;
  how.time_for_memory = kGpuTimeForMemory;
  return how;
}

// Values of passing batches are small: theirs are dropped only if they must be.
void drop_values(PlanAnswer& answer, const Dfg& dfg, const Ground& ground, Backend& backend,
                 const PlanRequest& request) {
  const Blocks& blocks = ground.trials[ground.typical].blocks;
  DropOptions how = drop_options(backend);
  if (ground.changing || request.plan != "auto" || !request.recompute) how.least_saved = 1;
  how.limit = memory_for(request, backend);
  PlanOptions options = answer.plan.options;
  answer.dropped = choose_dropped(dfg, blocks, options, how);
  if (options != answer.plan.options) answer.plan = make_plan(dfg, blocks, options);
}

// Empty when there is no place to keep plans.
std::string plan_cache() {
  const std::string folder = cache_folder();
  if (!folder.empty()) return folder + "/plans";
  log_verbose("plans are not kept: none of NACRE_CACHE, XDG_CACHE_HOME and HOME is set");
  return "";
}

// Those of an earlier run. Nothing when there are none, when they make no plan, or when it would not fit: there may
// have been more memory then. What cannot be used is replaced after the search.
std::optional<PlanOptions> cached_options(const std::string& folder, const std::string& key, const Dfg& dfg,
                                          const Blocks& blocks, int64_t memory) {
  const auto cached = read_cached(folder, key);
  if (!cached) return std::nullopt;
  try {
    const PlanOptions options = parse_options(*cached, "plan in " + folder);
    if (peak_live_bytes(make_plan(dfg, blocks, options), blocks) <= memory) return options;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    log_warning(std::string(error.what()) + "; the stored plan is ignored, and a new one is searched for");
  }
  return std::nullopt;
}

PlanAnswer search(const Dfg& dfg, const Ground& ground, const std::shared_ptr<Backend>& backend,
                  const PlanRequest& request) {
  const Blocks& blocks = ground.trials[ground.typical].blocks;
  PlanAnswer answer;
  SearchOptions rules;
  rules.epochs = std::max(1, request.epochs);
  PlanOptions base;
  base.hoist = !ground.changing;
  base.join_products = backend->joined_products();
  base.disabled_passes = request.disabled_passes;
  const bool on_host = backend->name() == "cpu";
  if (!on_host) {
    rules.model = &nominal_gpu_model();
    rules.cache_bytes = kNominalGpuCache;
    rules.seconds_of_byte = kGpuByte;
    base.vertex_factors = blocks.rows(Space::edge(0)) >= kManyEdges * blocks.rows(Space::vertex(0));
    base.keep_sums = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(backend->available_bytes()) / 4));
  }
  const int64_t memory = memory_for(request, *backend);
  // A GPU's LSTM computes its gates again.
  rules.keep_limit = on_host ? std::min(memory, kKeepByRules) : 1;
  answer.search = search_plan(dfg, blocks, base, rules);
  answer.source = "rules";
  const bool measure = request.plan == "auto" && !request.deterministic;
  if (measure && answer.search.predicted * rules.epochs >= kWorthSearching) {
    const std::string key = cache_key(dfg, blocks, *backend, request.disabled_passes);
    const std::string folder = request.use_cache ? plan_cache() : "";
    if (!folder.empty()) {
      if (const auto options = cached_options(folder, key, dfg, blocks, memory)) {
        answer.search = {};
        answer.search.options = *options;
        answer.source = "cached";
      }
    }
    if (answer.source != "cached") {
      DeviceProfile profile;
      const Plan ruled = make_plan(dfg, blocks, answer.search.options);
      TrialTimers timers(ground, backend, memory, peak_live_bytes(ruled, blocks));
      SearchOptions how = rules;
      if (on_host) {
        profile = machine_profile();
        how.model = &profile.model;
        how.cache_bytes = profile.cache_bytes;
      }
      const double epoch = predict_plan(ruled, blocks, how);
      how.memory_limit = memory;
      how.keep_limit = on_host ? 0 : 1;
      how.budget_seconds = request.budget_share * epoch * rules.epochs;
      how.measure = [&](const Plan& plan, size_t kernel) { return timers.kernel(plan, kernel); };
      const PlanOptions by_rules = answer.search.options;
      how.rules = &by_rules;
      how.others = {{"vertex", *named_options("vertex")}};
      how.others[0].options.hoist = base.hoist;
      how.others[0].options.join_products = base.join_products;
      how.others[0].options.disabled_passes = base.disabled_passes;
      how.measure_step = [&](const Plan& plan) { return timers.step(plan); };
      answer.search = search_plan(dfg, blocks, base, how);
      answer.source = "searched";
      if (!folder.empty()) write_cached(folder, key, options_json(answer.search.options));
    }
  }
  answer.plan = make_plan(dfg, blocks, answer.search.options);
  return answer;
}

}  // namespace

bool is_plan_name(const std::string& text) {
  return text == "auto" || text == "off" || named_options(text).has_value();
}

void check_plan(const RunConfig& c) {
  if (c.recompute != "auto" && c.recompute != "fit")
    throw UserError("--recompute", "unknown choice '" + c.recompute + "'", "choose auto or fit");
  if (is_plan_name(c.plan) || std::filesystem::is_regular_file(c.plan)) return;
  throw UserError("--plan", "'" + c.plan + "' is neither the name of a plan nor a partition table nor a file",
                  "choose auto, off, vertex, edge, tensor, a table such as dst-id=1,edge-id=32, or a plan file");
}

PlanRequest plan_request(const RunConfig& c, int64_t epochs, const std::string& resumed_plan) {
  PlanRequest request;
  request.plan = c.plan;
  request.deterministic = c.deterministic;
  request.epochs = static_cast<int>(std::min<int64_t>(epochs, 1 << 30));
  request.memory_limit = room_for_plans(c);
  request.use_cache = c.plan_cache;
  request.recompute = c.recompute == "auto";
  request.disabled_passes = c.disabled_passes;
  request.resumed_plan = resumed_plan;
  return request;
}

Dfg without_scores(const Dfg& dfg) {
  const auto gradient = [](const auto& output) { return output.first.starts_with("grad:"); };
  if (std::none_of(dfg.outputs().begin(), dfg.outputs().end(), gradient)) return dfg;
  Dfg out(dfg.name());
  for (const Node& node : dfg.nodes()) out.add(node);
  for (const auto& [name, node] : dfg.outputs()) {
    if (name != "logits") out.set_output(name, node);
  }
  for (const auto& [name, node] : dfg.updates()) out.set_update(name, node);
  return prune(out);
}

namespace {

PlanAnswer plan_on(const Dfg& whole, const Ground& ground, const std::shared_ptr<Backend>& backend,
                   const PlanRequest& request) {
  const Dfg dfg = without_scores(whole);
  const Blocks& blocks = ground.trials[ground.typical].blocks;
  PlanAnswer answer;
  if (request.plan == "auto" || request.plan == "off") {
    answer = search(dfg, ground, backend, request);
    drop_values(answer, dfg, ground, *backend, request);
    answer.plan.name = request.plan;
  } else if (auto options = named_options(request.plan)) {
    options->hoist = !ground.changing;
    options->disabled_passes = request.disabled_passes;
    answer.plan = make_plan(dfg, blocks, *options);
    answer.plan.name = request.plan;
    answer.source = "given";
  } else {
    answer.plan = load_plan(read_file(request.plan), request.plan, dfg, blocks);
    answer.source = "file";
    answer.dropped = price_dropped(dfg, blocks, answer.plan.options, drop_options(*backend));
    if (ground.changing && answer.plan.options.hoist)
      throw UserError(request.plan, "is a plan for training on the whole graph",
                      "make one with nacre plan --mode minibatch");
  }
  return answer;
}

// A resumed run continues bit for bit, so it keeps its plan, whatever a new search would find.
PlanAnswer plan_or_resume(const Dfg& dfg, const Ground& ground, const std::shared_ptr<Backend>& backend,
                          const PlanRequest& request) {
  if (!request.resumed_plan.empty()) {
    try {
      PlanRequest resumed = request;
      resumed.plan = request.resumed_plan;
      PlanAnswer answer = plan_on(dfg, ground, backend, resumed);
      answer.plan.name = request.plan;
      return answer;
    } catch (const UserError& error) {
      log_warning(std::string(error.what()) + "; the plan of the run is ignored, and a new one is made");
    }
  }
  return plan_on(dfg, ground, backend, request);
}

}  // namespace

PlanAnswer plan_training(const Dfg& dfg, const Blocks& blocks, const std::shared_ptr<Backend>& backend,
                         const PlanRequest& request, const std::function<void(Executor&)>& bind) {
  return plan_or_resume(dfg, {.trials = {{blocks, bind}}}, backend, request);
}

bool shrink_plan(PlanAnswer& answer, const Dfg& dfg, const Blocks& blocks, const Backend& backend, int64_t bytes) {
  DropOptions how = drop_options(backend);
  how.least_saved = 1;
  how.limit = std::max<int64_t>(1, peak_live_bytes(answer.plan, blocks) - bytes);
  PlanOptions options = answer.plan.options;
  const Dfg trained = without_scores(dfg);
  answer.dropped = choose_dropped(trained, blocks, options, how);
  if (options == answer.plan.options) return false;
  const std::string name = answer.plan.name;
  answer.plan = make_plan(trained, blocks, options);
  answer.plan.name = name;
  return true;
}

PlanAnswer plan_batches(const Dfg& dfg, const std::vector<TrialBlocks>& trials, const std::shared_ptr<Backend>& backend,
                        const PlanRequest& request) {
  NACRE_CHECK(!trials.empty(), "a plan needs a batch to be made on");
  std::vector<size_t> by_size(trials.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::sort(by_size.begin(), by_size.end(), [&](size_t a, size_t b) {
    const auto edges = [&](size_t i) { return trials[i].blocks.rows(Space::edge(0)); };
    return edges(a) < edges(b);
  });
  return plan_or_resume(dfg, {trials, by_size[by_size.size() / 2], true}, backend, request);
}

}  // namespace nacre
