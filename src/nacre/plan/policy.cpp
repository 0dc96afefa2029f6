#include "nacre/plan/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/plan/order.h"

namespace nacre {
namespace {

std::optional<PartitionTable> as_table(const std::string& text) {
  if (text.find('=') == std::string::npos || std::filesystem::exists(text)) return std::nullopt;
  return PartitionTable::parse(text);
}

// Prices are nominal, so that the same values are dropped on every machine that has the memory.
DropOptions drop_options(const PlanningInput& input) {
  const NominalProfile& prices = input.device.gpu ? nominal_gpu() : nominal_cpu();
  DropOptions how;
  how.model = &prices.model;
  how.cache_bytes = prices.cache_bytes;
  how.device = &input.device;
  how.time_for_memory = prices.time_for_memory;
  return how;
}

// Values of batches are small, so they are dropped only if they must be.
void drop_values(PlanAnswer& answer, const PlanningInput& input, const PlanRequest& request) {
  DropOptions how = drop_options(input);
  if (input.changing || request.plan != "auto" || !request.recompute) how.least_saved = 1;
  how.limit = memory_for(input, request);
  PlanOptions options = answer.plan.options;
  answer.dropped = choose_dropped(input.dfg, input.blocks, options, how);
  if (options == answer.plan.options) return;
  answer.plan = make_plan(input.dfg, input.blocks, options, {.device = &input.device});
}

PlanAnswer plan_by_name(const PlanningInput& input, const PlanRequest& request, PlanOptions options) {
  options.hoist = !input.changing;
  options.disabled_passes = request.disabled_passes;
  PlanAnswer answer;
  answer.plan = make_plan(input.dfg, input.blocks, options, {.device = &input.device});
  answer.source = "given";
  return answer;
}

// Returns whether the plan in a file divides the edges of the graph. What is wrong with a file is
// reported when its plan is made.
bool plan_divides_edges(const std::string& file) {
  try {
    const auto options = planned_options(read_file(file), file);
    return options && divides_edges(options->choices);
  } catch (const UserError&) {
    return false;
  }
}

void require_room_to_divide(const PlanningInput& input, const PlanRequest& request, const std::string& file) {
  if (!plan_divides_edges(file) || has_room_to_divide(input, request)) return;
  const auto bytes = static_cast<double>(covering_bytes(input.blocks.rows(Space::edge(0))));
  const std::string limit = input.device.gpu ? "" : ", or raise --memory-limit";
  throw UserError(file,
                  fmt::format("divides the edges of the graph, which takes {} of the host's memory, and there is less",
                              human_bytes(bytes)),
                  "use a machine with more memory" + limit + "; a new run can also use another --plan");
}

PlanAnswer plan_of_file(const PlanningInput& input, const PlanRequest& request, const std::string& file) {
  require_room_to_divide(input, request, file);
  PlanAnswer answer;
  answer.plan = load_plan(read_file(file), file, input.dfg, input.blocks, &input.device);
  answer.source = "file";
  answer.dropped = price_dropped(input.dfg, input.blocks, answer.plan.options, drop_options(input));
  if (input.changing && answer.plan.options.hoist)
    throw UserError(file, "is a plan for training on the whole graph", "make one with nacre plan --mode minibatch");
  return answer;
}

PlanAnswer plan_anew(const PlanningInput& input, const PlanRequest& request) {
  if (request.plan == "auto" || request.plan == "off") {
    PlanAnswer answer = search_or_rule(input, request);
    drop_values(answer, input, request);
    answer.plan.name = request.plan;
    return answer;
  }
  const auto options = named_options(request.plan);
  if (!options) return plan_of_file(input, request, request.plan);
  PlanAnswer answer = plan_by_name(input, request, *options);
  answer.plan.name = request.plan;
  return answer;
}

}  // namespace

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

bool is_plan_name(const std::string& text) {
  return text == "auto" || text == "off" || named_options(text).has_value();
}

// A resumed run continues bit for bit, so it keeps its plan, whatever a new search would find. A
// plan that cannot be read is made anew, but one that only lacks memory is refused.
PlanAnswer answer_request(PlanningInput input, const PlanRequest& request) {
  input.dfg = without_scores(input.dfg);
  if (!request.resumed_plan.empty()) {
    require_room_to_divide(input, request, request.resumed_plan);
    try {
      PlanRequest resumed = request;
      resumed.plan = request.resumed_plan;
      PlanAnswer answer = plan_anew(input, resumed);
      answer.plan.name = request.plan;
      return answer;
    } catch (const UserError& error) {
      log_warning(std::string(error.what()) + "; the plan of the run is ignored, and a new one is made");
    }
  }
  return plan_anew(input, request);
}

bool shrink_plan(PlanAnswer& answer, PlanningInput input, int64_t bytes) {
  input.dfg = without_scores(input.dfg);
  DropOptions how = drop_options(input);
  how.least_saved = 1;
  how.limit = std::max<int64_t>(1, peak_live_bytes(answer.plan, input.blocks) - bytes);
  PlanOptions options = answer.plan.options;
  answer.dropped = choose_dropped(input.dfg, input.blocks, options, how);
  if (options == answer.plan.options) return false;
  const std::string name = answer.plan.name;
  answer.plan = make_plan(input.dfg, input.blocks, options, {.device = &input.device});
  answer.plan.name = name;
  return true;
}

}  // namespace nacre
