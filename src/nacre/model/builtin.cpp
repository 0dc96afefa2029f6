#include "nacre/model/builtin.h"

namespace nacre {

std::vector<ModelEntry> builtin_models() {
  return {gat_model(), gatv2_model(), gcn_model(),  gin_model(),  lightgcn_model(),
          mlp_model(), ngcf_model(),  rgcn_model(), sage_model(), sage_lstm_model()};
}

}  // namespace nacre
