// This file times the operations of mini-batches of one graph and model (DA1). It draws, prepares
// and computes batches of random sizes and random seeds one after another, stage by stage and
// kernel by kernel. The cost of operations (cost/operation_costs.h) is learned from these times.
#pragma once

#include <string>
#include <vector>

#include "nacre/cost/operation_costs.h"
#include "nacre/schedule/epg/graph.h"
#include "nacre/train/batch_session.h"

namespace nacre {

struct OperationSampling {
  double seconds = 20;  // sampling ends after about this time, but not before a few batches
  // The sizes of batches lie between these multiples of --batch-size.
  double smallest = 0.125, largest = 2;
  uint64_t seed = 0;
};

// Returns the sizes of the blocks of a batch, beginning with the first layer.
std::vector<MfgSize> block_sizes(const Sample& sample);

// Returns batches that are drawn from the session's graph. The logarithms of their sizes are
// uniform. The batches belong to epochs that no run reaches, so none of them is a batch of the run.
std::vector<Sample> random_batches(const BatchSession& session, int count, const OperationSampling& how);

struct OperationTimes {
  std::vector<TimedOperation> all;
  // The first transfer to the device took this many seconds longer than later ones of the same
  // size.
  double first_transfer = 0;
};

// Times the operations of random batches on the device of the session, which must have been
// started, and returns the times. The weights of the session change.
OperationTimes time_operations(BatchSession& session, const OperationSampling& how);

// Returns the times that a GPU with nominal rates (cost/nominal.h) would need for these batches.
// Nothing is run, so plans for a GPU can be made on machines without one. Has no times of sampling
// if a GPU cannot draw the session's samples.
std::vector<TimedOperation> count_operations(const BatchSession& session, const std::vector<Sample>& batches,
                                             const std::string& device);

// KernelPart says which operation and which layer a kernel of a plan belongs to. The operation is
// empty for kernels that run only once.
struct KernelPart {
  std::string operation;
  int layer = 0;
};
std::vector<KernelPart> kernel_parts(const Plan& plan, int layers);

// Returns the sizes and widths of a batch, from which its EPG is built.
BatchShape batch_shape(const BatchSession& session, const Sample& sample);

// Returns a key that names what the costs are valid for: the device, the kernels, the model, the
// graph and the way to sample.
std::string operation_costs_key(const BatchSession& session);

}  // namespace nacre
