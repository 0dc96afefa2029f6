#include "nacre/model/builtin.h"

namespace nacre {

ModelKnob edge_dropout_knob() {
  return {"edge-dropout", 0.0, "share of the edges dropped, drawn anew each step (NGCF's node dropout)", true};
}

std::vector<ModelEntry> builtin_models() {
  return {gat_model(), gatv2_model(), gcn_model(),  gin_model(),  lightgcn_model(),
          mlp_model(), ngcf_model(),  rgcn_model(), sage_model(), sage_lstm_model()};
}

}  // namespace nacre
