// This file lists the passes that make a plan, in their order. Each pass has a name, is timed, says
// why it has its place, and can be left out unless the list says why not.
#include "nacre/plan/passes.h"

#include <algorithm>
#include <string_view>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/base/trace.h"
#include "nacre/dfg/distribute.h"
#include "nacre/dfg/recompute.h"
#include "nacre/plan/early_rows.h"
#include "nacre/plan/factors.h"
#include "nacre/plan/narrow.h"
#include "nacre/plan/order.h"
#include "nacre/plan/overlap.h"
#include "nacre/plan/rewrite.h"
#include "nacre/plan/swap.h"

namespace nacre {
namespace {

void recompute_dropped(Draft& d) {
  if (d.plan.options.recompute.empty()) return;
  Recomputed recomputed = recompute(d.plan.dfg, d.plan.options.recompute);
  d.plan.dfg = std::move(recomputed.dfg);
  d.plan.again = std::move(recomputed.again);
}

const Pass* find_pass(std::string_view name) {
  const auto& all = pass_table();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Pass& pass) { return pass.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : pass_table()) names.emplace_back(pass.name);
  return names;
}

bool enabled(const Pass& pass, const PlanOptions& options) { return !options.disabled_passes.contains(pass.name); }

// Runs the passes before the one of this name.
Dfg run_until(std::string_view name, const Dfg& dfg, const Blocks& blocks, const PlanOptions& options) {
  Draft draft(dfg, blocks, options);
  for (const Pass& pass : pass_table()) {
    if (pass.name == name) break;
    if (enabled(pass, options)) pass.run(draft);
  }
  return std::move(draft.plan.dfg);
}

}  // namespace

const std::vector<Pass>& pass_table() {
  static const std::vector<Pass> table = {
      {"merge_equal_nodes", "first: models repeat normalisations and degrees in every layer, and later passes see one",
       nullptr, [](Draft& d) { d.plan.dfg = merge_equal_nodes(d.plan.dfg); }},
      {"fold_dropout_into_relu_grad", "before grouping: it decides which activations are kept for the backward pass",
       nullptr, [](Draft& d) { d.plan.dfg = fold_dropout_into_relu_grad(d.plan.dfg); }},
      {"swap_indexing", "before the choices: it brings the places where there is a choice into one plain form", nullptr,
       [](Draft& d) {
         if (d.plan.options.rewrite) d.plan.dfg = swap_indexing(d.plan.dfg, d.blocks);
       }},
      {"factor_sums", "after swap_indexing, which moves work from edges to nodes, and before the choices", nullptr,
       [](Draft& d) {
         if (d.plan.options.vertex_factors) d.plan.dfg = factor_sums(d.plan.dfg);
       }},
      {"apply_choices", "after swap_indexing, which finds the places where there is a choice",
       "it carries out what --plan chose",
       [](Draft& d) {
         const CoverLayers cover = d.blocks.cover_layers();
         if (!cover.exist()) leave_edges_together(d.plan.options.choices);
         d.plan.dfg = apply_choices(d.plan.dfg, d.plan.options.choices, false, cover);
       }},
      {"delay_row_factors", "after the choices, whose products it moves factors behind", nullptr,
       [](Draft& d) {
         if (d.plan.options.vertex_factors) d.plan.dfg = delay_row_factors(d.plan.dfg);
       }},
      {"distribute",
       "after the choices, which are those of one device, and before recompute, which keeps what ranks sent",
       "ranks cannot compute without the rows of their neighbours",
       [](Draft& d) {
         if (d.blocks.links() == nullptr) return;
         d.plan.dfg = distribute(d.plan.dfg, d.plan.options.halo_rows, d.blocks.views());
       }},
      {"fold_expand",
       "after the passes that look for patterns, and before grouping: a short row is not stored as a long one", nullptr,
       [](Draft& d) {
         if (d.plan.options.rewrite) d.plan.dfg = fold_expand(d.plan.dfg);
       }},
      {"recompute", "after all passes that merge equal nodes: what is computed again is equal to what was dropped",
       "it carries out what --recompute chose", recompute_dropped},
      {"analyse", "after the last pass that changes the DFG", "all passes below ask for its facts",
       [](Draft& d) { d.analyse(); }},
      {"inline_edges", "before grouping: a node that its readers compute themselves belongs to no kernel", nullptr,
       inline_edges},
      {"group", "after inline_edges, which says which nodes need a kernel", "without it there are no kernels", group},
      {"sink_summed_rows", "after group, when all readers of a node are known", nullptr, sink_summed_rows},
      {"sink_tails", "after sink_summed_rows: what column sums read is in memory, so tails that need it can move",
       nullptr, sink_tails},
      {"join_products", "after sink_tails, which moves sums to the products they add up", nullptr, join_products},
      {"build_programs", "after the passes that move nodes between kernels", "kernels cannot run without programs",
       build_programs},
      {"drop_unread", "after build_programs, which finds what each kernel reads", nullptr, drop_unread},
      {"store_values", "after drop_unread: what only a dropped kernel would read needs no memory",
       "kernels would write nothing", store_values},
      {"store_as_bf16", "after store_values, and before the passes that count the bytes of values", nullptr,
       [](Draft& d) {
         if (d.device != nullptr) mark_narrow(d.plan, *d.device, d.narrow);
       }},
      {"estimate_costs", "after store_values: what is stored decides which bytes are moved",
       "predictions and the search need the bytes and operations of every kernel", estimate_costs},
      {"order_for_memory", "after store_values: the order depends on what is stored", nullptr,
       [](Draft& d) { order_for_memory(d.plan, d.blocks); }},
      {"overlap_communication", "after order_for_memory, in whose order it moves the communication of ranks", nullptr,
       [](Draft& d) { overlap_communication(d.plan, d.blocks); }},
      {"choose_variants", "after the passes that change kernels: the variants of a kernel depend on all of it", nullptr,
       choose_variants},
      {"choose_early_rows", "after choose_variants: some variants of a kernel cannot compute their rows in two parts",
       nullptr,
       [](Draft& d) {
         if (d.blocks.links() == nullptr) return;
         const bool gpu = d.device != nullptr && d.device->gpu;
         choose_early_rows(d.plan, d.blocks, gpu ? &nominal_gpu() : &nominal_cpu(), gpu);
       }},
      {"validate", "last: it checks what all passes together have made", "an unsound plan must not run",
       [](Draft& d) { validate(d.plan, d.blocks); }},
  };
  return table;
}

std::string choose_pass(const std::string& given, const std::string& option) {
  return choose_name(option, "pass", given, pass_names());
}

void check_disabled_passes(const std::set<std::string>& names, const std::string& option) {
  for (const std::string& name : names) {
    const Pass* pass = find_pass(name);
    if (pass == nullptr) throw UserError(option, "unknown pass '" + name + "'", suggest(name, pass_names()));
    if (pass->needed != nullptr) throw UserError(option, "the pass " + name + " cannot be left out", pass->needed);
  }
}

Dfg prepare_dfg(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options) {
  return run_until("apply_choices", dfg, blocks, options);
}

Dfg undistributed_dfg(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options) {
  return run_until("distribute", dfg, blocks, options);
}

Dfg choose_dfg(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options) {
  return run_until("recompute", dfg, blocks, options);
}

Plan make_plan(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options, const PassControl& control) {
  Draft draft(dfg, blocks, options);
  draft.device = control.device;
  draft.variants = control.variants;
  draft.narrow = control.narrow;
  for (const Pass& pass : pass_table()) {
    if (enabled(pass, options)) {
      const TraceSpan span("plan", pass.name);
      const double start = now_seconds();
      pass.run(draft);
      draft.plan.passes.push_back({pass.name, now_seconds() - start});
      if (control.validate) validate(draft);
    }
    if (pass.name == control.stop_after) break;
  }
  return std::move(draft.plan);
}

}  // namespace nacre
