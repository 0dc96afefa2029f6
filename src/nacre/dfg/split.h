// A forward DFG cut between its layers, for inference one layer at a time: each stage computes, block by block, what
// the next one reads of any vertex.
#pragma once

#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"

namespace nacre {

// A value that one stage leaves for another: output `name` of the one, input "value.<name>" of the other.
struct StageValue {
  std::string name;
  Dims dims;
};

struct LayerStage {
  // The block whose edges it runs over, as block 0 of `dfg` (v0 → e0 → v1); -1: dense work on the first layer's
  // vertices, in v0 and without edges.
  int layer = -1;
  Dfg dfg;
  std::vector<StageValue> reads;   // inputs of dfg in v0, from stages before
  std::vector<StageValue> writes;  // outputs of dfg, of every vertex
};

// Every vertex value belongs to the stage whose block ends at it, so it is computed once per vertex. Leaves keep their
// names (the layer in them is the model's); outputs of the DFG are among the writes of their stage, by their names.
// Throws InternalError for DFGs with gradients or updates.
std::vector<LayerStage> split_layers(const Dfg& dfg);

}  // namespace nacre
