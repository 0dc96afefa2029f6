// FittedPrices predicts the times of an EPG by the fitted costs of operations (DA1).
#pragma once

#include <string>
#include <vector>

#include "nacre/cost/operation_costs.h"
#include "nacre/schedule/epg/graph.h"

namespace nacre {

class FittedPrices : public EpgPrices {
 public:
  // `devices` are names of devices in `costs`, the host first. `costs` must outlive this object.
  // The first transfer of a run takes longer than later ones. No price includes this extra time,
  // because schedules differ in the number of their transfers, but each of them has only one first
  // transfer. If `in_plan` is set, the prices are those of the plan of the run, whatever
  // `combine_first` says.
  FittedPrices(const OperationCosts& costs, std::vector<std::string> devices, bool in_plan = false);

  // Returns the seconds of an operation. Those of looking up the features include preparing the
  // batch and binding its kernels. Only the host looks up features.
  double seconds(int device, EpgKind kind, const BatchShape& batch, int layer, bool combine_first) const override;
  double transfer(double bytes) const override;

 private:
  double sampling(int device, const BatchShape& batch) const;
  double kernels(const std::string& device, EpgKind kind, const BatchShape& batch, int layer, bool combine_first) const;

  const OperationCosts& costs_;
  std::vector<std::string> devices_;
  bool in_plan_;
};

// BatchSeconds holds the seconds that the stages of one batch take in the plan of the run.
struct BatchSeconds {
  double sample = 0;    // seconds on one thread of the host, or on the device if it samples
  double gather = 0;    // seconds on all threads of the host
  double prepare = 0;   // on one thread of the host
  double bind = 0;      // on one thread of the host
  double transfer = 0;  // over the link of the device
  double compute = 0;   // forward and backward pass
  double update = 0;
};
BatchSeconds batch_seconds(const OperationCosts& costs, const std::string& device, const BatchShape& batch,
                           double batches);

// Returns the seconds of an epoch of `batches` batches like this one. If the batches are computed
// on a device, the stages run side by side and the slowest one decides. If they are computed on the
// host, all stages share its threads. If `ahead` is false, nothing runs side by side.
double epoch_seconds(const BatchSeconds& batch, double batches, int threads, bool on_host, bool ahead);

}  // namespace nacre
