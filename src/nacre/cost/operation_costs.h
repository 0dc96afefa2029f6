// OperationCosts says what the operations of a mini-batch cost on each device (DA1), by one
// polynomial for each device, operation and layer. The polynomials are fitted to random batches of
// one graph and model, and are kept in the cache folder beside the profile of the machine. This
// file works with numbers only; train/operation_samples.h draws the batches and times them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "nacre/cost/mfg_cost.h"

namespace nacre {

// Returns the names of the operations of a batch, in their order:
//   sample          chooses the edges of a hop and numbers the new vertices
//   reindex         builds the block of a hop
//   gather          looks up the feature rows of the batch's vertices
//   prepare         plans memory and makes the forms of blocks that kernels walk
//   bind            binds the kernels of the batch to memory
//   transfer        sends bytes to the device (MfgSize::vertices are bytes)
//   aggregate       forward kernels that walk the edges of a block
//   combine         all other forward kernels of a layer: products, activations, loss
//   combine_grad, aggregate_grad   the kernels of the backward pass, divided in the same way
//   update          the optimiser, once for each batch
std::vector<std::string> batch_operations();

// This is the name of the host in an OperationKey.
inline constexpr const char* kHostName = "cpu";

struct OperationKey {
  std::string device;     // kHostName, or the name of a GPU
  std::string operation;  // one of batch_operations()
  int layer = 0;          // number of the layer; 0 for operations of a whole batch
  // "aggregate" or "combine" says what comes first in the layers of the plan that was timed, and
  // "plan" says that the plan of the run was timed. The text is empty if the operation does not
  // depend on the plan.
  std::string order;

  friend bool operator==(const OperationKey&, const OperationKey&) = default;
  friend bool operator<(const OperationKey& a, const OperationKey& b) {
    return std::tie(a.device, a.operation, a.layer, a.order) < std::tie(b.device, b.operation, b.layer, b.order);
  }
};

struct TimedOperation {
  OperationKey key;
  MfgTiming timing;
  int batch = 0;  // number of the batch that was timed
};

class OperationCosts {
 public:
  static OperationCosts fitted(const std::vector<TimedOperation>& timings);

  // Returns the predicted seconds of an operation, or 0 if it was never timed because no batch had
  // it.
  double predict(const OperationKey& key, const MfgSize& size) const;
  // Returns the cost of the operation, or null if the operation was never timed.
  const MfgCost* find(const OperationKey& key) const;
  const std::map<OperationKey, MfgCost>& all() const { return costs_; }
  bool empty() const { return costs_.empty(); }
  // Adds the costs that `other` has and this object lacks; costs that are known already stay as
  // they are.
  void add(const OperationCosts& other);

  // Sets how many seconds longer the first transfer to a device takes than later ones of the same
  // size. first_transfer() returns these seconds, or 0 if they were not set. They are spread over
  // all batches of a run.
  void set_first_transfer(const std::string& device, double seconds) { first_transfer_[device] = seconds; }
  double first_transfer(const std::string& device) const;
  // Returns the mean seconds of a transfer of `bytes` bytes if the run has `batches` such
  // transfers.
  double transfer(const std::string& device, double bytes, double batches) const;

  std::string json() const;
  // Returns the costs that the text holds. Throws a UserError that names `where` if it holds none.
  static OperationCosts parse(const std::string& text, const std::string& where);

 private:
  std::map<OperationKey, MfgCost> costs_;
  std::map<std::string, double> first_transfer_;
};

// Returns the median of |predicted / measured − 1| over batches, where each batch is predicted by
// costs that were fitted to other batches only. The measured time of a batch is the sum over its
// operations on the device, in the plan of the run, without the transfer and the update. Returns
// NaN if there were too few batches.
double held_out_batch_error(const std::vector<TimedOperation>& timings, const std::string& device);

// These functions load and store the costs of a device, graph and model, which `key` names. They
// warn about a file that cannot be used or written.
std::optional<OperationCosts> load_operation_costs(const std::string& key);
void save_operation_costs(const std::string& key, const OperationCosts& costs);

}  // namespace nacre
