// Plans of built-in models, and questions about them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "model/cases.h"
#include "nacre/plan/plan.h"

namespace nacre::test {

struct PlannedModel {
  Blocks blocks;
  Dfg dfg;
  Plan plan;
};

inline PlannedModel plan_on(const Blocks& blocks, const ModelOptions& options, const PlanOptions& how = {}) {
  Dfg dfg = build_model(options_for(options, blocks));
  if (options.training) differentiate(dfg);
  Plan plan = make_plan(dfg, blocks, how, {.validate = true});
  return {blocks, std::move(dfg), std::move(plan)};
}

// Plans a model on a full graph with weights and four types.
inline PlannedModel plan_model(const ModelOptions& options, const PlanOptions& how = {}) {
  const Graph graph = random_graphs(3, 20)[3].graph;
  return plan_on(Blocks::full(graph, options.layers), options, how);
}

// The model has 48 features, 64 hidden values and 16 classes.
inline ModelOptions usual(const std::string& model, int layers = 2) {
  ModelOptions o;
  o.model = model;
  o.layers = layers;
  o.in_dim = 48;
  o.hidden = 64;
  o.out_dim = 16;
  return o;
}

inline std::vector<const Kernel*> kernels_of(const Plan& plan, KernelKind kind) {
  std::vector<const Kernel*> found;
  for (const Kernel& k : plan.kernels) {
    if (k.kind == kind) found.push_back(&k);
  }
  return found;
}

inline int count_kernels(const Plan& plan, KernelKind kind, bool once) {
  return static_cast<int>(std::count_if(plan.kernels.begin(), plan.kernels.end(),
                                        [&](const Kernel& k) { return k.kind == kind && k.once == once; }));
}

inline int count_ops(const Dfg& dfg, Op op) {
  return static_cast<int>(
      std::count_if(dfg.nodes().begin(), dfg.nodes().end(), [&](const Node& n) { return n.op == op; }));
}

// Returns the number of operations of a kind whose values are in spaces of a kind.
inline int count_ops(const Dfg& dfg, Op op, SpaceKind space) {
  return static_cast<int>(std::count_if(dfg.nodes().begin(), dfg.nodes().end(),
                                        [&](const Node& n) { return n.op == op && n.type.space.kind == space; }));
}

inline std::vector<Site> sites_of(const PlannedModel& m, const PlanOptions& how = {}) {
  return find_sites(prepare_dfg(m.dfg, m.blocks, how), m.blocks.cover_layers());
}

// Chooses `option` at every site that has it and whose operation is `op` (empty means any).
inline PlanOptions choosing(const PlannedModel& m, const std::string& option, const std::string& op = "") {
  PlanOptions how;
  for (const Site& site : sites_of(m)) {
    const bool has = std::find(site.options.begin(), site.options.end(), option) != site.options.end();
    if (has && (op.empty() || site.key.starts_with(op + "@"))) how.choices[site.key] = option;
  }
  return how;
}

// Returns the elements per edge of the widest edge value in memory, without leaves.
inline int64_t widest_stored_edge_value(const Plan& plan) {
  int64_t widest = 0;
  for (NodeRef i = 0; i < plan.dfg.size(); ++i) {
    const Node& node = plan.dfg[i];
    if (node.type.space.kind != SpaceKind::edge || node.op == Op::input || node.op == Op::param) continue;
    if (plan.stored[plan.alias[i]]) widest = std::max(widest, node.type.row_size());
  }
  return widest;
}

}  // namespace nacre::test
