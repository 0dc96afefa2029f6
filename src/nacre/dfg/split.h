// A forward DFG cut between its layers, for inference one layer at a time. Each stage computes,
// block by block, the values of all vertices that the next stages read.
#pragma once

#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"

namespace nacre {

// A value that one stage leaves for another: it is output `name` of the first and input
// "value.<name>" of the second.
struct StageValue {
  std::string name;
  Dims dims;
};

struct LayerStage {
  // The block whose edges the stage walks, which is block 0 of `dfg` (v0 → e0 → v1). With -1, the
  // stage does dense work on the vertices of the first layer, in v0 and without edges.
  int layer = -1;
  Dfg dfg;
  std::vector<StageValue> reads;   // inputs of dfg in v0, from earlier stages
  std::vector<StageValue> writes;  // outputs of dfg, for every vertex
};

// Cuts a DFG. Every vertex value belongs to the stage whose block ends at it, so it is computed
// once per vertex. Leaves keep their names (the layer in a name is that of the model). Outputs of
// the DFG are among the writes of their stage, under their names. Throws InternalError for DFGs
// with gradients or updates.
std::vector<LayerStage> split_layers(const Dfg& dfg);

}  // namespace nacre
