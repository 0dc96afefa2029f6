// VertexModel: a model of the vertices of a data set that trains or predicts, on the whole graph or
// in batches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/engine/memory.h"
#include "nacre/train/bill.h"
#include "nacre/train/device.h"
#include "nacre/train/planner.h"
#include "nacre/train/trainee.h"

namespace nacre {

class MpiRanks;

struct SessionNeeds {
  bool training = true;      // false: only the forward pass (eval, predict)
  bool evaluation = true;    // false: only training steps (benchmarks)
  bool embeddings = false;   // whether embeddings() will be called
  bool predicts = false;     // whether predict() will be called during training
  std::string resumed_plan;  // plan file of the run that is continued
  // The other processes, if MPI has started several and each of them is a rank of this run; the
  // session is rank 0. Must outlive the session.
  MpiRanks* mpi = nullptr;
  // To simulate a GPU (nacre bench placement), mini-batches on the host prefer some vertices by
  // this factor, as --locality makes a GPU prefer rows in its memory. 0: no vertices are preferred.
  double near_scale = 0;
  std::vector<NodeId> near;
};

class VertexModel : public Trainee {
 public:
  virtual const Dataset& dataset() const = 0;
  virtual const std::vector<std::string>& notes() const = 0;
  virtual const RunDevice& device() const = 0;
  virtual double plan_seconds() const = 0;
  // Returns how the training plan was found; empty if there is none (evaluation only).
  virtual const PlanAnswer& planning() const = 0;

  virtual std::vector<MemoryItem> memory() const = 0;
  // Returns the memory on the host; memory() is that of the GPU if the session computes on one.
  virtual HostMemory host() const = 0;
  // Throws UserError if memory() does not fit; otherwise allocates it and computes the constants.
  virtual void start() = 0;

  // Returns the scores of all vertices with the current weights: [num_nodes, num_classes], valid
  // until the next call.
  virtual const float* predict() = 0;
  // Returns the input of the last layer in the last predict(), vertex by vertex. Throws UserError
  // if the model has no hidden layer.
  virtual const float* embeddings() = 0;
  virtual int64_t embedding_width() const = 0;
};

// Throws the UserError of embeddings(): the model has no hidden layer.
[[noreturn]] void refuse_embeddings(const RunConfig& config);

// Makes a Session or a BatchSession, as RunConfig::mode says, or a RankedSession or a
// RankedBatchSession if the run has several devices.
std::unique_ptr<VertexModel> make_session(Dataset dataset, RunConfig config, const SessionNeeds& needs);

}  // namespace nacre
