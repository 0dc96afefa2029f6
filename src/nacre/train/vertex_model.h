// VertexModel: a model of a data set's vertices that trains or predicts, on the whole graph or in batches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/engine/gpu/context.h"
#include "nacre/engine/memory.h"
#include "nacre/train/bill.h"
#include "nacre/train/planner.h"
#include "nacre/train/trainee.h"

namespace nacre {

struct SessionNeeds {
  bool training = true;      // false: forward pass only (eval, predict)
  bool evaluation = true;    // false: training step only (benchmarks)
  bool embeddings = false;   // embeddings() will be asked for
  std::string resumed_plan;  // plan file of the run that is continued
};

class VertexModel : public Trainee {
 public:
  virtual const Dataset& dataset() const = 0;
  virtual const std::vector<std::string>& notes() const = 0;
  virtual const std::string& device_name() const = 0;
  virtual GpuContext* gpu() const = 0;  // null on the host
  virtual double plan_seconds() const = 0;
  // How the training plan was found; without one (evaluation only) empty.
  virtual const PlanAnswer& planning() const = 0;

  virtual std::vector<MemoryItem> memory() const = 0;
  // Of the host; memory() is a GPU's where the session computes on one.
  virtual HostMemory host() const = 0;
  // Refuses (UserError) when memory() does not fit; otherwise allocates and computes the constants.
  virtual void start() = 0;

  // Scores of all vertices with the current weights: [num_nodes, num_classes], valid until the next call.
  virtual const float* predict() = 0;
  // What the last layer was given in the last predict(), vertex by vertex. Throws UserError when the model has no
  // hidden layer.
  virtual const float* embeddings() = 0;
  virtual int64_t embedding_width() const = 0;
};

// As RunConfig::mode says: a Session or a BatchSession.
std::unique_ptr<VertexModel> make_session(Dataset dataset, RunConfig config, const SessionNeeds& needs);

}  // namespace nacre
