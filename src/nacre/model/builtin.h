// The models that come with Nacre. Each is named here and in builtin.cpp; without that, the linker
// would leave its file out.
#pragma once

#include <vector>

#include "nacre/model/model.h"

namespace nacre {

struct ModelEntry {
  ModelInfo info;
  BuildModel build;
};

ModelEntry gat_model();
ModelEntry gatv2_model();
ModelEntry gcn_model();
ModelEntry gin_model();
ModelEntry lightgcn_model();
ModelEntry mlp_model();
ModelEntry ngcf_model();
ModelEntry rgcn_model();
ModelEntry sage_model();
ModelEntry sage_lstm_model();

ModelKnob edge_dropout_knob();  // of models that sum neighbours with Napa::edge_dropout

std::vector<ModelEntry> builtin_models();

}  // namespace nacre
