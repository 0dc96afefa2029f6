// RankSession: what one rank of a run over several devices holds and does: its part of the graph,
// its device, its plans and its copy of the weights. All ranks call the same functions in the same
// order; a function that waits for other ranks says so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/cluster/communicator.h"
#include "nacre/engine/executor.h"
#include "nacre/engine/step_forecast.h"
#include "nacre/partition/local_graph.h"
#include "nacre/train/device.h"
#include "nacre/train/learner.h"
#include "nacre/train/planner.h"
#include "nacre/train/rank_inputs.h"
#include "nacre/train/scorer.h"
#include "nacre/train/vertex_model.h"

namespace nacre {

// Holds everything that the session of a rank is made from.
struct RankSetup {
  const RunData& run;          // data of the whole graph, which must outlive the rank
  const Partition& partition;  // the part of each rank; it must outlive the rank
  std::vector<double> shares;  // the share of each rank
  RunConfig config;            // settings of the run, with the device of this rank
  int threads = 0;             // number of threads, if the rank computes on the host
  std::shared_ptr<const RunDevice> device;
  std::shared_ptr<GraphViews> views;
  Communicator& data;     // moves values of steps, in the memory of the devices
  Communicator& control;  // moves everything else, in host memory
  SessionNeeds needs;
  int sharing = 1;  // ranks of this process, if MPI has started it, that share the rank's memory
};

// After the first step, the kernels of this many steps are timed one by one.
inline constexpr int64_t kTimedSteps = 3;

// Says where the time of a rank's steps went, in seconds since the rank was made. Steps whose
// kernels are timed do not count. If the rank is on a GPU, only some steps count, because measuring
// makes steps slower.
struct RankTimes {
  int64_t count = 0;         // number of steps that were measured
  double steps = 0;          // seconds of these steps
  double communication = 0;  // moving rows and sums
  double reduction = 0;      // the part of `communication` that added up gradients and losses
  double waiting = 0;        // waiting for other ranks, which is not part of `communication`

  double computing() const { return steps - communication - waiting; }
  double exchanging() const { return communication - reduction; }
};

// Holds the figures of one rank. Ranks send them to each other as bytes.
struct RankFigures {
  int64_t vertices = 0;      // number of own vertices
  int64_t edges = 0;         // edges that lead to them
  int64_t halo = 0;          // vertices of other ranks that these edges come from
  int64_t device_bytes = 0;  // memory() of the rank
  int64_t host_bytes = 0;    // what a rank on a GPU holds on the host
  int64_t sent = 0;          // bytes that it has sent in steps and evaluations
  // Bytes of rows that the rank receives in a step: as planned, and as counted in the last step.
  // Arrays that all ranks add up (all_reduce) do not count.
  int64_t planned_received = 0;
  int64_t received = 0;
  // Seconds of the kernels of a step without communication, those of the fastest timed step. They
  // were measured while the other ranks were running, too.
  double kernel_seconds = 0;
  double edge_seconds = 0;   // the part of kernel_seconds in kernels that walk edges
  int64_t memory_limit = 0;  // the result of RankSession::memory_limit()
  RankTimes times;
};

class RankSession {
 public:
  // Waits for the other ranks: one of them plans, and tells the others the options of its plan.
  explicit RankSession(RankSetup setup);

  const RankSetup& setup() const { return setup_; }
  const RunDevice& device() const { return *setup_.device; }
  const LocalGraph& local() const { return *local_; }
  // Returns the graphs that the rank plans and computes with.
  RankPart part() const { return {*blocks_, *local_, reversed_.get()}; }
  // Returns which rows travel between ranks, and what other choices would cost.
  const PlacementChoice& placement() const { return placement_; }
  // Returns sentences about placement(): which rows travel, and what the choices that lost would
  // cost.
  std::vector<std::string> placement_notes() const;
  // Returns how the plan was found. On a rank that did not plan, only the plan's options and the
  // source of the plan are sure to be there.
  const PlanAnswer& planning() const { return planning_; }
  const Executor& trainer() const { return *train_; }
  const Executor& predictor() const { return *eval_; }
  bool trains() const { return train_ != nullptr; }
  Learner& learner() { return *learner_; }

  std::vector<MemoryItem> memory() const;
  // Returns the bytes of the data of the whole graph, which every process holds.
  int64_t data_bytes() const;
  // Returns the bytes by which the memory of this rank exceeds what its device has.
  int64_t missing_bytes() const;
  // Returns the most bytes that the rank may take where it computes. If MPI has started the
  // processes, ranks that share a memory get equal parts of it, and on the host the bytes of
  // data_bytes() are taken off before.
  int64_t memory_limit() const;
  // Takes the memory that memory() lists, and computes the values that never change. All ranks call
  // this together, because some of these values depend on rows of other ranks.
  void start();

  // Each of the functions from here to predict() waits for the other ranks.
  //
  // Runs a step. If `timed`, every kernel is timed by itself, and the step takes longer.
  void step(int64_t step, double lr, bool timed = false);
  // Replaces this rank's weights by those of rank 0.
  void share_weights();
  // Replaces this rank's weights and optimiser state by those of rank 0.
  void share_state();
  // Returns on rank 0 the scores over the vertices of all ranks. What it returns on other ranks
  // must not be used.
  Scores evaluate(bool with_loss);
  // Computes an output ("logits" or "embedding") for all vertices. On rank 0, `all` has the rows of
  // all vertices of the whole graph; other ranks pass null.
  void predict(const std::string& output, float* all);

  // Return the figures of all ranks, or only their times, in the order of the ranks. Both functions
  // wait for the other ranks.
  std::vector<RankFigures> figures() const;
  std::vector<RankTimes> all_times() const;
  // Returns for each rank the features of its part and the stored model of its device, as texts
  // that part_reports() reads (share_report.h). If `only_modelled` and a rank has no stored model,
  // returns nothing. Waits for the other ranks.
  std::vector<std::string> describe_parts(bool only_modelled) const;
  // Returns the predicted seconds of a step's kernels in bf16, divided by those in the precision of
  // the rank; 0 if the device cannot compute in bf16.
  double bf16_part() const;
  // Returns whether the score is a mean over vertices. If it is not, evaluation brings the
  // predictions for all vertices to rank 0.
  bool adds_up() const;

 private:
  // Adds up the times of the kernels of a timed step, and keeps those of the fastest step. `before`
  // has the times of the kernels before the step.
  void keep_kernel_times(const std::vector<KernelTime>& before);
  void run_step(const StepContext& context, bool timed);
  // Runs a step, and measures what the GPU of this rank does in it.
  void measure_step(const StepContext& context, bool timed);
  bool wants_reversed(const Graph& whole);
  void plan(const Dfg& dfg);
  // Chooses the rows that travel, so that the predicted time of a step is least. All ranks call
  // this together.
  void place(const Dfg& dfg);
  // Returns the measured rate at which rows of other ranks come in, in bytes per second; 0 if it is
  // not measured.
  double link_rate();
  // Returns the predicted cost of a step of this rank, whose device has `memory` bytes.
  PlacementCost predict(const Plan& plan, int64_t memory, double link);
  void make_executor(const Dfg& dfg, std::unique_ptr<Executor>& executor);
  void fit(const Dfg& dfg);
  // Returns the plan options that rank `planner` passes, with products joined as this rank's device
  // needs it. Other ranks pass options that are not used, and wait for that rank.
  PlanOptions agreed(int planner, const PlanOptions& own);
  Scores add_up(const Scores& own);
  void gather(const float* own_rows, int64_t width, float* all_rows);

  RankSetup setup_;
  std::shared_ptr<const LocalGraph> local_;
  // The rank's part of the reversed graph; null if ranks do not need it.
  std::shared_ptr<const LocalGraph> reversed_;
  std::unique_ptr<Blocks> blocks_;
  std::unique_ptr<RankInputs> inputs_;
  std::unique_ptr<Learner> learner_;
  Dfg predicted_;  // the model without its gradient
  std::unique_ptr<Executor> train_, eval_;
  RunData own_run_;  // data of the own vertices only, for the scorer
  std::unique_ptr<Scorer> scorer_;
  ConstantPool constants_;
  PlanAnswer planning_;
  PlacementChoice placement_;
  Array<NodeId> order_;         // rank 0: the vertices of all ranks, one rank after the other
  std::vector<int64_t> begin_;  // rank 0: where the vertices of each rank begin in order_
  std::vector<float> all_rows_;
  int64_t steps_ = 0;        // number of steps so far
  double link_ = 0;          // the result of link_rate() before the rows were placed
  int64_t sent_before_ = 0;  // bytes that were sent to measure the link
  RankTimes times_;
  int64_t received_ = 0;                          // bytes of rows received in the last step
  double kernel_seconds_ = 0, edge_seconds_ = 0;  // the same as in RankFigures
  bool timed_ = false;                            // whether a step has been timed
  bool some_bf16_ = false;                        // whether some rank stores values as bf16
};

}  // namespace nacre
