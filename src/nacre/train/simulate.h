// Simulates training on hardware that is described and need not exist. The planner makes the plan
// of a run on that hardware; its counted work and the bytes that it sends are priced with the rates
// of the description. Nothing is trained.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/cost/hardware.h"
#include "nacre/engine/step_forecast.h"
#include "nacre/partition/stats.h"
#include "nacre/train/planner.h"
#include "nacre/train/run_data.h"

namespace nacre {

// Holds the prediction for one rank. An epoch is one step over the whole graph.
struct SimulatedRank {
  std::string device;
  double share = 0;  // share of the work that the rank has
  RankRows rows;
  StepSplit split;                // predicted times of an epoch
  double sent = 0, received = 0;  // bytes that the rank moves in an epoch
  double received_rows = 0;       // the bytes of `received` that are rows, without sums over all
                                  // ranks
  // Bytes of memory; negative if they were not counted for this rank.
  double memory = -1;
  int64_t limit = 0;  // bytes of memory that the device has; 0 if no limit is known

  bool fits() const { return limit == 0 || memory <= static_cast<double>(limit); }
};

struct SimulatedRun {
  int machines = 1;
  std::vector<SimulatedRank> ranks;
  double epoch = 0;  // seconds of an epoch
  // The speed of all devices together, divided by the sum of the speeds that the devices have by
  // themselves.
  double efficiency = 1;
  double cut = 0;        // share of the edges that lead from one rank to another
  double imbalance = 0;  // largest difference between a rank's work and its share of the work
  size_t dropped = 0;    // number of values that the backward pass computes again to save memory
  std::string travels;   // a text that says which rows travel between ranks, and why

  // Returns the rank that takes the largest part of its device's memory, of those whose memory was
  // counted.
  const SimulatedRank& fullest() const;
  // Returns the longest time of any rank, separately for each kind of time.
  StepSplit longest() const;
};

class Simulator {
 public:
  // Prepares simulated runs of a model on a data set. Every node and edge of the data set stands
  // for `scale` nodes and edges of the graph that is simulated. Throws UserError if data and model
  // do not fit together.
  Simulator(Dataset dataset, RunConfig config, Hardware hardware, double scale = 1);

  const RunData& data() const { return run_; }
  // Simulates a run on the first `ranks` devices of the hardware. If `shares` is empty, every
  // device gets work in proportion to its speed. Throws UserError if the hardware has fewer
  // devices.
  SimulatedRun run(int ranks, std::vector<double> shares = {});

 private:
  struct Part;
  struct Planned;

  // Returns the settings that a plan for this device is made with.
  RunConfig config_for(const DescribedDevice& device) const;
  std::shared_ptr<Backend> backend_of(const DescribedDevice& device) const;
  // Returns the cost model of a device while `ranks` ranks run, some of which may slow each other
  // down because they share a machine.
  CostModel model_of(const DescribedDevice& device, int ranks) const;
  // Return the graph as one device would have it, and the part of one rank.
  std::unique_ptr<Part> whole_of(const DescribedDevice& device) const;
  std::unique_ptr<Part> part_of(const Partition& partition, int rank) const;
  // Makes a plan for one device, or for ranks between which `rows` travel (--halo-rows). If
  // `limited`, values that do not fit into memory are computed again in the backward pass.
  Planned plan(const Part& part, bool alone, bool limited, HaloRows rows) const;
  // Makes the plans of training and of evaluation with the plan options that `planned` already has.
  static void make_plans(const Part& part, const Dfg& trained, const Dfg& predicted, Planned& planned);
  // Returns the bytes of memory that the device of a part needs if it runs these plans.
  double memory_of(const Part& part, const Planned& planned) const;
  // Sets the memory of the largest rank or, if there are few ranks, of all ranks in `result`.
  void count_memory(const Partition& partition, int largest, const Planned& planned, SimulatedRun& result) const;
  // Plans on the largest part, which `part` is, and predicts all ranks. With --halo-rows auto, does
  // this for each choice of rows that may travel, and returns the fastest run. Sets `planned` to
  // the plan of the run that is returned.
  SimulatedRun fastest(const Part& part, const PartitionStats& stats, Planned& planned) const;
  // Predicts a step of all ranks with the plan of the largest part.
  SimulatedRun forecast(const Part& part, const PartitionStats& stats, const Plan& plan) const;
  // Sets how long the bytes of each communication travel over the links.
  void set_links(const PartitionStats& stats, const Plan& plan, const SimulatedRun& result,
                 std::vector<RankStep>& steps) const;
  SimulatedRun run_alone();
  // Returns the seconds of an epoch if one device like `device` has the whole graph.
  double alone_seconds(const DescribedDevice& device);

  Hardware hardware_;
  double scale_;
  RunData run_;
  std::map<std::string, double> alone_;  // results of alone_seconds() by the name of the device
};

}  // namespace nacre
