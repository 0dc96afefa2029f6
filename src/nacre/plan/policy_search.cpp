// --plan auto and --plan off: a plan by rules and, if a run is long enough to pay for it, a search.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <new>

#include "nacre/base/error.h"
#include "nacre/base/file_cache.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/plan/order.h"
#include "nacre/plan/policy.h"
#include "nacre/plan/variants.h"

namespace nacre {
namespace {

// The most bytes that plans by rules may keep to save time, the same on every machine that has
// them.
constexpr int64_t kKeepByRules = int64_t{8} << 30;

// Below this predicted time of a whole run, searching and measuring could not pay for themselves.
constexpr double kWorthSearching = 5.0;

// The edges of a graph are divided (sites.h) if that takes at most this share of the predicted time
// of the run.
constexpr double kDividingShare = 0.02;
// Seconds for each edge on an ordinary core. This is not measured, because plans by rules are the
// same on every machine.
constexpr double kSecondsOfDivision = 1e-6;

// Returns whether the run is long enough, and memory large enough, to compare plans that divide the
// edges.
bool worth_dividing(const PlanningInput& input, const PlanRequest& request, const SearchResult& ruled, double epochs) {
  const std::vector<Node>& nodes = input.dfg.nodes();
  const auto typed = [](const Node& node) { return node.op == Op::typed_matmul; };
  if (!input.blocks.cover_layers().exist() || std::none_of(nodes.begin(), nodes.end(), typed)) return false;
  const int64_t edges = input.blocks.rows(Space::edge(0));
  if (static_cast<double>(edges) * kSecondsOfDivision > kDividingShare * ruled.predicted * epochs) return false;
  // The edges are divided on the host, so the memory of a GPU does not matter.
  const int64_t most = input.device.gpu ? kKeepByRules : std::min(memory_for(input, request), kKeepByRules);
  return covering_bytes(edges) <= most && has_room_to_divide(input, request);
}

// Returns the options that the search does not choose, because they follow from the device and the
// graph.
PlanOptions fixed_options(const PlanningInput& input, const PlanRequest& request) {
  PlanOptions base;
  base.hoist = !input.changing;
  base.join_products = joined_products(input.device);
  base.disabled_passes = request.disabled_passes;
  if (!input.device.gpu) return base;
  base.vertex_factors =
      input.blocks.rows(Space::edge(0)) >= nominal_gpu().many_edges * input.blocks.rows(Space::vertex(0));
  base.join_dots = true;
  base.keep_sums = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(input.available_bytes()) / 4));
  return base;
}

// Returns how plans are compared by rules: with nominal prices and without timing.
SearchOptions by_rules(const PlanningInput& input, const PlanRequest& request) {
  const NominalProfile& prices = input.device.gpu ? nominal_gpu() : nominal_cpu();
  SearchOptions how;
  how.epochs = std::max(1, request.epochs);
  how.model = &prices.model;
  how.cache_bytes = prices.cache_bytes;
  how.device = &input.device;
  how.seconds_of_byte = prices.seconds_of_byte;
  // The LSTM of a GPU computes its gates again.
  how.keep_limit = input.device.gpu ? 1 : std::min(memory_for(input, request), kKeepByRules);
  return how;
}

// Returns a plan whose kernels have no variants yet.
Plan plan_values(const PlanningInput& input, const PlanOptions& options) {
  return make_plan(input.dfg, input.blocks, options, {.device = &input.device, .variants = false});
}

bool fits(const PlanningInput& input, const PlanRequest& request, const PlanOptions& options) {
  return peak_live_bytes(plan_values(input, options), input.blocks) <= memory_for(input, request);
}

bool worth_searching(const PlanRequest& request, const SearchResult& ruled, double epochs) {
  return request.plan == "auto" && !request.deterministic && ruled.predicted * epochs >= kWorthSearching;
}

// ---- The plan cache.

// The marks of precisions in the key, in the order of GemmType. The CPU has only the first.
constexpr const char* kPrecisions[] = {"", " tf32", " bf16"};

std::string cache_key(const PlanningInput& input, const PlanRequest& request) {
  const JoinedProducts joined = joined_products(input.device);
  std::string key = fmt::format(
      "plan 2 {} {} {}{}{}{}{} layers {}\n", input.kernels_version, machine_name(num_threads()), input.device_type,
      kPrecisions[static_cast<size_t>(input.device.products)], joined.rows > 0 ? " joined" : "",
      joined.typed ? " by type" : "", input.device.gpu ? " dots" : "", input.blocks.num_layers());
  for (int l = 0; l < input.blocks.num_layers(); ++l)
    key += fmt::format("{:016x} ", input.blocks.layer(l).fingerprint());
  for (const std::string& pass : request.disabled_passes) key += "without " + pass + " ";
  return key + "\n" + print_dfg(input.dfg);
}

// What the plan cache holds for a run.
struct CachedOptions {
  std::optional<PlanOptions> options;  // options of an earlier run; empty if none can be used
  // Whether the options stay in the cache although they are not used now, because the host has no
  // room to divide the edges at the moment.
  bool wait_for_room = false;
};

// Returns the options that an earlier run found, if a plan can be made with them and memory has
// room for the plan and for making it. The earlier run may have had more memory. Options whose plan
// does not fit are replaced in the cache after the search.
CachedOptions cached_options(const PlanningInput& input, const PlanRequest& request, const std::string& folder,
                             const std::string& key) {
  const auto cached = folder.empty() ? std::nullopt : read_cached(folder, key);
  if (!cached) return {};
  try {
    const PlanOptions options = parse_options(*cached, "plan in " + folder);
    if (divides_edges(options.choices) && !has_room_to_divide(input, request)) return {std::nullopt, true};
    if (fits(input, request, options)) return {options, false};
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    log_warning(std::string(error.what()) + "; the stored plan is ignored, and a new one is searched for");
  }
  return {};
}

// ---- The search.

// Searches with the prices of the device and with timing. The plan by rules, `ruled`, is kept
// unless another one is faster.
SearchResult search_timed(const PlanningInput& input, const PlanRequest& request, const PlanOptions& base,
                          const SearchOptions& rules, const PlanOptions& ruled) {
  const int64_t memory = memory_for(input, request);
  const Plan plan = plan_values(input, ruled);
  const std::unique_ptr<PlanTimer> timer = input.timer(memory, peak_live_bytes(plan, input.blocks));
  SearchOptions how = rules;
  DeviceProfile profile;
  if (input.profile) {
    profile = input.profile();
    how.model = &profile.model;
    how.cache_bytes = profile.cache_bytes;
  }
  how.memory_limit = memory;
  how.keep_limit = input.device.gpu ? 1 : 0;
  how.budget_seconds = request.budget_share * predict_plan(plan, input.blocks, how) * rules.epochs;
  how.measure = [&](const Plan& candidate, size_t kernel) { return timer->kernel(candidate, kernel); };
  how.measure_step = [&](const Plan& candidate) { return timer->step(candidate); };
  how.rules = &ruled;
  how.others = {{"vertex", *named_options("vertex")}};
  how.others[0].options.hoist = base.hoist;
  how.others[0].options.join_products = base.join_products;
  how.others[0].options.disabled_passes = base.disabled_passes;
  return search_plan(input.dfg, input.blocks, base, how);
}

}  // namespace

std::string plan_cache() {
  const std::string folder = cache_folder();
  if (!folder.empty()) return folder + "/plans";
  log_verbose("plans are not kept: none of NACRE_CACHE, XDG_CACHE_HOME and HOME is set");
  return "";
}

int64_t memory_for(const PlanningInput& input, const PlanRequest& request) {
  return request.memory_limit > 0 ? request.memory_limit : input.available_bytes() / 10 * 9;
}

bool has_room_to_divide(const PlanningInput& input, const PlanRequest& request) {
  if (!input.blocks.cover_layers().exist() || input.blocks.cover_bytes() > 0 || !request.host_has_room) return true;
  return request.host_has_room(covering_bytes(input.blocks.rows(Space::edge(0))));
}

PlanAnswer search_or_rule(const PlanningInput& input, const PlanRequest& request) {
  SearchOptions rules = by_rules(input, request);
  PlanOptions base = fixed_options(input, request);
  PlanAnswer answer;
  answer.search = search_plan(input.dfg, input.blocks, base, rules);
  if (worth_dividing(input, request, answer.search, rules.epochs)) {
    rules.divide_edges = true;
    answer.search = search_plan(input.dfg, input.blocks, base, rules);
  }
  // Dot products that a sum computes are stored for every edge. If the plan does not fit into
  // memory with them, the search is repeated without them.
  if (base.join_dots && !fits(input, request, answer.search.options)) {
    base.join_dots = false;
    answer.search = search_plan(input.dfg, input.blocks, base, rules);
  }
  answer.source = "rules";
  if (worth_searching(request, answer.search, rules.epochs)) {
    const std::string folder = request.use_cache ? plan_cache() : "", key = cache_key(input, request);
    if (const CachedOptions cached = cached_options(input, request, folder, key); cached.options) {
      answer.search = {};
      answer.search.options = *cached.options;
      answer.source = "cached";
    } else {
      const PlanOptions ruled = answer.search.options;
      answer.search = search_timed(input, request, base, rules, ruled);
      answer.source = "searched";
      if (!folder.empty() && !cached.wait_for_room) write_cached(folder, key, options_json(answer.search.options));
    }
  }
  answer.plan = make_plan(input.dfg, input.blocks, answer.search.options, {.device = &input.device});
  return answer;
}

}  // namespace nacre
