// RankSession: what one rank of a run over several devices holds and does: its part of the graph,
// its device, its plans and its copy of the weights. All ranks call the same functions in the same
// order; a function that waits for other ranks says so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/cluster/communicator.h"
#include "nacre/cluster/rank_memory.h"
#include "nacre/engine/executor.h"
#include "nacre/partition/local_graph.h"
#include "nacre/train/device.h"
#include "nacre/train/learner.h"
#include "nacre/train/planner.h"
#include "nacre/train/rank_inputs.h"
#include "nacre/train/scorer.h"
#include "nacre/train/vertex_model.h"

namespace nacre {

// Everything that the session of a rank is made from.
struct RankSetup {
  const RunData& run;          // of the whole graph; must outlive the rank
  const Partition& partition;  // likewise
  RunConfig config;            // with the device of this rank
  std::shared_ptr<const RunDevice> device;
  std::shared_ptr<GraphViews> views;
  Communicator& data;     // moves values of steps, in the memory of the devices
  Communicator& control;  // moves everything else, in host memory
  SessionNeeds needs;
  // `data` moves rows between GPUs with this. It is null if all ranks compute on the host.
  std::shared_ptr<RankMemory> memory;
};

// Where the time of a rank's steps went, in seconds since the rank was made. Of a rank on a GPU,
// only some steps count, because measuring makes steps slower.
struct RankTimes {
  double steps = 0;          // all of it
  double communication = 0;  // moving rows and sums
  double reduction = 0;      // the part of `communication` that added up gradients and losses
  double waiting = 0;        // waiting for other ranks, which is not part of `communication`

  double computing() const { return steps - communication - waiting; }
};

// Figures of one rank. Ranks send them to each other as bytes.
struct RankFigures {
  int64_t vertices = 0;      // own ones
  int64_t edges = 0;         // edges that lead to them
  int64_t halo = 0;          // vertices of other ranks that these edges come from
  int64_t device_bytes = 0;  // memory() of the rank
  int64_t host_bytes = 0;    // what a rank on a GPU holds on the host
  int64_t sent = 0;          // bytes that it has sent in steps and evaluations
  // Bytes of rows that the rank receives in a step: as planned, and as counted in the last step.
  // Sums over all ranks are not included.
  int64_t planned_received = 0;
  int64_t received = 0;
  // Seconds of the kernels of a step without communication, the mean of the timed steps. They were
  // measured while the other ranks were running, too.
  double kernel_seconds = 0;
  RankTimes times;
};

class RankSession {
 public:
  // Waits for the other ranks: one of them plans, and tells the others the options of its plan.
  explicit RankSession(RankSetup setup);

  const RankSetup& setup() const { return setup_; }
  const RunDevice& device() const { return *setup_.device; }
  const LocalGraph& local() const { return *local_; }
  // Returns a sentence that says which rows travel between ranks, and why.
  const std::string& travels() const { return travels_; }
  // Returns how the plan was found. Only rank 0 knows all of it.
  const PlanAnswer& planning() const { return planning_; }
  const Executor& trainer() const { return *train_; }
  const Executor& predictor() const { return *eval_; }
  bool trains() const { return train_ != nullptr; }
  Learner& learner() { return *learner_; }

  std::vector<MemoryItem> memory() const;
  // Returns the bytes by which the memory of this rank exceeds what its device has.
  int64_t missing_bytes() const;
  // Allocates memory, and computes the constants. Waits for the other ranks.
  void start();

  // Each of the following functions waits for the other ranks.
  // Runs a step. If `timed`, every kernel is timed by itself, and the step takes longer.
  void step(int64_t step, double lr, bool timed = false);
  // Makes the weights and the state of the optimiser equal to those of rank 0.
  void share_weights();
  // Returns the scores of all ranks on rank 0, and of this one on the others.
  Scores evaluate(bool with_loss);
  // Computes an output ("logits" or "embedding") for all vertices. On rank 0, `all` has the rows of
  // all vertices of the whole graph; other ranks pass null.
  void predict(const std::string& output, float* all);

  // Returns the figures of all ranks, in their order. Waits for the other ranks.
  std::vector<RankFigures> figures() const;
  // Returns whether the score is a mean over vertices. If it is not, evaluation brings the
  // predictions for all vertices to rank 0.
  bool adds_up() const;

 private:
  double kernel_seconds() const;
  void run_step(const StepContext& context, bool timed);
  // Measures what the GPU of this rank does in a step.
  void measure_step(const StepContext& context, bool timed);
  void plan(const Dfg& dfg);
  // Returns which rows should travel: the way with the least predicted time of a step. Adds a
  // sentence on all ways to travels_.
  HaloRows cheapest_rows(const Dfg& dfg, PlanOptions options);
  void make_executor(const Dfg& dfg, std::unique_ptr<Executor>& executor);
  void fit(const Dfg& dfg);
  // Returns what `planner` says; all ranks wait for it.
  PlanOptions agreed(int planner, const PlanOptions& own);
  Scores add_up(const Scores& own);
  void gather(const float* own_rows, int64_t width, float* all_rows);

  RankSetup setup_;
  std::shared_ptr<const LocalGraph> local_;
  std::unique_ptr<Blocks> blocks_;
  std::unique_ptr<RankInputs> inputs_;
  std::unique_ptr<Learner> learner_;
  Dfg predicted_;  // the model without its gradient
  std::unique_ptr<Executor> train_, eval_;
  RunData own_run_;  // with the data of the own vertices only, for the scorer
  std::unique_ptr<Scorer> scorer_;
  ConstantPool constants_;
  PlanAnswer planning_;
  std::string travels_;
  Array<NodeId> order_;         // rank 0: the vertices of all ranks, one rank after the other
  std::vector<int64_t> begin_;  // rank 0: where the vertices of each rank begin in order_
  std::vector<float> all_rows_;
  int64_t steps_ = 0;  // steps so far
  RankTimes times_;
  int64_t received_ = 0;  // bytes of rows in the last step
  bool timed_ = false;    // a step has been timed
};

}  // namespace nacre
