#include "nacre/train/vertex_model.h"

#include "nacre/base/error.h"
#include "nacre/train/batch_session.h"
#include "nacre/train/ranked_batches.h"
#include "nacre/train/ranked_session.h"
#include "nacre/train/session.h"

namespace nacre {

void refuse_embeddings(const RunConfig& config) {
  throw UserError("--model " + config.model.model, "has no hidden layer whose values could be written",
                  "use --layers 2 or more");
}

std::unique_ptr<VertexModel> make_session(Dataset dataset, RunConfig config, const SessionNeeds& needs) {
  if (config.ranks.several() && config.mode == "minibatch") {
    return std::make_unique<RankedBatchSession>(std::move(dataset), std::move(config), needs);
  }
  if (config.ranks.several()) {
    return std::make_unique<RankedSession>(std::move(dataset), std::move(config), needs);
  }
  if (config.mode == "minibatch") {
    return std::make_unique<BatchSession>(std::move(dataset), std::move(config), needs);
  }
  return std::make_unique<Session>(std::move(dataset), std::move(config), needs);
}

}  // namespace nacre
