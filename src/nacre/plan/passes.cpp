// Planning is this list. Each pass is named and timed; the plan is validated at the end.
#include <functional>

#include "nacre/base/log.h"
#include "nacre/base/trace.h"
#include "nacre/dfg/recompute.h"
#include "nacre/plan/factors.h"
#include "nacre/plan/lower.h"
#include "nacre/plan/order.h"
#include "nacre/plan/plan.h"
#include "nacre/plan/rewrite.h"
#include "nacre/plan/swap.h"

namespace nacre {

Dfg prepare_dfg(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options) {
  const Dfg merged = fold_dropout_into_relu_grad(merge_equal_nodes(dfg));
  const Dfg swapped = options.rewrite ? swap_indexing(merged, blocks) : merged;
  return options.vertex_factors ? factor_sums(swapped) : swapped;
}

Dfg choose_dfg(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options) {
  const Dfg chosen = apply_choices(prepare_dfg(dfg, blocks, options), options.choices, false);
  return options.vertex_factors ? delay_row_factors(chosen) : chosen;
}

Plan make_plan(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options) {
  Plan plan;
  plan.name = options.fuse ? "auto" : "tensor";
  plan.options = options;
  plan.dfg = dfg;
  struct Pass {
    const char* name;
    std::function<void()> run;
  };
  const Pass passes[] = {
      // Models repeat normalisations and degrees in every layer; one copy of each is enough.
      {"merge_equal_nodes", [&] { plan.dfg = merge_equal_nodes(plan.dfg); }},
      // Before fusing, because it decides which activations must be kept for the backward pass.
      {"fold_dropout_into_relu_grad", [&] { plan.dfg = fold_dropout_into_relu_grad(plan.dfg); }},
      // Work on edges that a vertex's edges share is done at the vertex.
      {"swap_indexing",
       [&] {
         if (options.rewrite) plan.dfg = swap_indexing(plan.dfg, blocks);
       }},
      {"factor_sums",
       [&] {
         if (options.vertex_factors) plan.dfg = factor_sums(plan.dfg);
       }},
      // The options chosen where there is more than one order: after swapping, which brings sites into their plain
      // form.
      {"apply_choices", [&] { plan.dfg = apply_choices(plan.dfg, options.choices, false); }},
      {"delay_row_factors",
       [&] {
         if (options.vertex_factors) plan.dfg = delay_row_factors(plan.dfg);
       }},
      // After everything that merges equal nodes: clones are just that.
      {"recompute",
       [&] {
         if (options.recompute.empty()) return;
         Recomputed recomputed = recompute(plan.dfg, options.recompute);
         plan.dfg = std::move(recomputed.dfg);
         plan.again = std::move(recomputed.again);
       }},
      // Groups nodes into kernels.
      {"lower", [&] { lower(plan, blocks); }},
      // What is stored is known now; which order keeps least of it alive?
      {"order_for_memory", [&] { order_for_memory(plan, blocks); }},
      {"validate", [&] { validate(plan, blocks); }},
  };
  for (const Pass& pass : passes) {
    const TraceSpan span("plan", pass.name);
    const double start = now_seconds();
    pass.run();
    plan.passes.push_back({pass.name, now_seconds() - start});
  }
  return plan;
}

}  // namespace nacre
