// What the vertices of a twin carry. Communities decide labels and features, so that both the graph
// and the features tell something about the label.
#pragma once

#include "nacre/data/dataset.h"
#include "nacre/data/twin_layout.h"
#include "nacre/data/twin_plan.h"

namespace nacre {

using Communities = Array<uint16_t>;  // community of each vertex

Communities communities_of(const TwinPlan& plan, const std::vector<KindLayout>& layouts);
// Returns the communities of a road network: the map is cut into square regions.
Communities road_communities(const TwinPlan& plan);

Array<int32_t> draw_labels(const TwinPlan& plan, const Communities& communities);
Tensor draw_targets(const TwinPlan& plan, const Communities& communities);
Tensor draw_features(const TwinPlan& plan, const Communities& communities);
Splits draw_splits(const TwinPlan& plan, const Array<int32_t>& labels);

}  // namespace nacre
