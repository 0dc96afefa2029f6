#include "nacre/train/vertex_model.h"

#include "nacre/train/batch_session.h"
#include "nacre/train/ranked_session.h"
#include "nacre/train/session.h"

namespace nacre {

std::unique_ptr<VertexModel> make_session(Dataset dataset, RunConfig config, const SessionNeeds& needs) {
  if (config.ranks.several()) {
    return std::make_unique<RankedSession>(std::move(dataset), std::move(config), needs);
  }
  if (config.mode == "minibatch") {
    return std::make_unique<BatchSession>(std::move(dataset), std::move(config), needs);
  }
  return std::make_unique<Session>(std::move(dataset), std::move(config), needs);
}

}  // namespace nacre
