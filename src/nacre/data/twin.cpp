#include "nacre/data/twin.h"

#include <algorithm>

#include "nacre/base/machine.h"
#include "nacre/base/trace.h"
#include "nacre/base/warnings.h"
#include "nacre/data/twin_attributes.h"
#include "nacre/data/twin_edges.h"
#include "nacre/data/twin_layout.h"
#include "nacre/data/twin_plan.h"

namespace nacre {
namespace {

// Returns the wanted number of vertices in a block: eight times the mean degree, so that denser
// sets have larger blocks, but between 256 and 65,536.
int64_t block_size(const TwinPlan& plan) {
  return std::clamp<int64_t>(8 * plan.num_edges / plan.num_nodes, 256, 65536);
}

std::vector<KindLayout> lay_out(const TwinPlan& plan) {
  std::vector<KindLayout> layouts;
  for (int kind = 0; kind + 1 < static_cast<int>(plan.kind_begin.size()); ++kind) {
    layouts.push_back(lay_out_kind(plan, kind, block_size(plan)));
  }
  return layouts;
}

}  // namespace

Dataset make_twin(std::string_view name_and_scale, uint64_t seed, bool features) {
  const TraceSpan span("data", "make twin");
  const TwinPlan plan = plan_twin(name_and_scale, seed);
  require_memory(plan, available_memory(), features);
  Dataset set;
  set.name = plan.name;
  set.num_classes = plan.spec->num_classes;
  set.notes = plan.notes;
  if (plan.spec->about.find("the twin's own") != std::string::npos) {
    set.notes.push_back(std::string(kWarningNote) + "the classes of twin:" + plan.spec->name + " are made up (" +
                        plan.spec->about + "): scores say nothing about the original set");
  }
  Communities communities;
  if (plan.spec->road) {
    set.graph = draw_roads(plan);
    communities = road_communities(plan);
  } else {
    const std::vector<KindLayout> layouts = lay_out(plan);
    set.graph = draw_graph(plan, layouts);
    communities = communities_of(plan, layouts);
  }
  if (plan.spec->multilabel) {
    set.targets = draw_targets(plan, communities);
  } else {
    set.labels = draw_labels(plan, communities);
  }
  if (features) set.features = draw_features(plan, communities);
  set.splits = draw_splits(plan, set.labels);
  return set;
}

}  // namespace nacre
