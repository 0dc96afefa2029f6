// BatchSession: a data set and a model made ready for mini-batch training. The plan is made on a
// few sampled batches and used for all. The loader prepares batches while others are computed.
// Evaluation is exact: on the whole graph if that fits in memory beside the training, otherwise
// layer by layer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/engine/block_runner.h"
#include "nacre/schedule/batch_loader.h"
#include "nacre/train/batch_computer.h"
#include "nacre/train/batch_inputs.h"
#include "nacre/train/device.h"
#include "nacre/train/disk_tier.h"
#include "nacre/train/layerwise.h"
#include "nacre/train/learner.h"
#include "nacre/train/resources.h"
#include "nacre/train/run_data.h"
#include "nacre/train/scorer.h"
#include "nacre/train/step_weights.h"
#include "nacre/train/vertex_model.h"
#include "nacre/train/whole_inference.h"

namespace nacre {

class CachedBatches;
struct CacheForecast;
class FeatureStore;
class HostShare;
class PlacedBatches;
struct FeatureTiers;
struct JudgedPlacement;
class NearSampling;
struct PlacedFeatures;
class StaleSteps;

// What the session of one rank is made from. A run on one device has only one rank.
struct BatchRankParts {
  // The data and the settings of this rank. Ranks of one process share the memory of the data.
  RunData run;
  std::shared_ptr<GraphViews> views;
  std::shared_ptr<const RunDevice> device;
  BatchPart part;   // the batches that this rank computes
  int sharing = 1;  // ranks of this process whose values lie in the same memory
};

// Where the batches of a run were drawn and computed so far.
struct ScheduleReport {
  BatchPlaces places;  // empty if no schedule places batches
  int64_t drawn_on_device = 0, drawn_on_host = 0;
  int64_t computed_on_device = 0, computed_on_host = 0;
  double host_seconds = 0;     // seconds of the batches that the host computed beside a device
  double predicted_epoch = 0;  // predicted seconds of an epoch; 0: unknown
};

// The gradients of a step in the memory of the back end: one number for each element of the
// parameters, and the loss as the last one.
struct StepGradients {
  float* data = nullptr;
  int64_t count = 0;
};

class BatchSession : public VertexModel {
 public:
  BatchSession(Dataset dataset, RunConfig config, const SessionNeeds& needs = {});
  BatchSession(BatchRankParts parts, const SessionNeeds& needs);
  ~BatchSession() override;

  const RunConfig& config() const override { return run_.config; }
  const Dataset& dataset() const override { return run_.dataset; }
  const std::vector<std::string>& notes() const override { return run_.notes; }
  const std::string& metric() const override { return run_.metric; }
  const RunDevice& device() const override { return *device_; }
  double plan_seconds() const override { return plan_seconds_; }
  const PlanAnswer& planning() const override { return planning_; }
  const Plan& plan() const override { return runner_ ? runner_->plan() : planning_.plan; }
  std::string fingerprint() const override { return run_.fingerprint(); }

  // Returns the items of the bill for the memory in which the session computes, that of the host or
  // of a GPU. Batches differ in size, so the items count the largest of the batches that were
  // sampled for planning, and a quarter more. host_memory() returns the items for the host, also if
  // the session computes on a GPU.
  std::vector<MemoryItem> memory() const override;
  std::vector<MemoryItem> host_memory() const;
  HostMemory host() const override;
  // Returns the bytes of the data, which all ranks of a process share. host_memory() counts them.
  int64_t data_bytes() const;
  // Returns the most bytes that the session may take where it computes, including what it holds.
  int64_t memory_limit() const;
  void start() override;
  // Does what start() does, without comparing the bill with the memory.
  void begin();

  Parameters& parameters() override { return learner_->parameters(); }
  OptimizerState& optimizer() override { return learner_->optimizer(); }
  void weights_changed() override { learner_->weights_changed(); }
  void use_average(bool use) override { learner_->use_average(use); }
  int64_t steps_per_epoch() const override;
  int64_t batches_per_epoch() const override { return weights_ ? weights_->batches_per_epoch() : 0; }
  int64_t batches_in_step(int64_t first) const override { return weights_->step_end(first) - first; }
  void expect_epochs(int64_t epochs) override { expected_epochs_ = epochs; }
  void shuffle_from(int64_t epoch) override;
  void begin_epoch(int64_t epoch, int64_t first) override;
  void queue_step(int64_t step, double lr) override;
  void take_losses(double& sum) override;

  // The following functions are for several ranks.
  Learner& learner() { return *learner_; }
  const BatchPart& part() const { return part_; }
  // Gives the session other batches, from the next epoch on. start() must have been called.
  void take_part(const BatchPart& part);
  // Returns how many batches of this session lie before batch `number` of an epoch.
  int64_t batches_before(int64_t number) const { return part_.taken(number); }
  // Computes the gradient of the session's next batch and calls finish(loss). Random numbers depend
  // on `step`.
  void compute_next(int64_t step, PreparedBatch::Finish finish);
  StepGradients gradients() const;
  // Counts seconds that a step took after its batches were computed.
  void count_end_of_step(double seconds) { step_times_.host += seconds; }

  Scores evaluate(bool with_loss) override;

  // Return outputs of all vertices with the current weights: "logits" and "embedding".
  const float* predict() override;
  const float* embeddings() override;
  int64_t embedding_width() const override;

  const Sampler& sampler() const { return *sampler_; }
  // Returns whether the device draws neighbours, alone or together with the host.
  bool draws_on_device() const { return reorder_drawing_ != nullptr; }
  BlockRunner& runner() { return *runner_; }
  LoaderTimes loader_times() const;
  // Returns how many feature rows the steps so far have read from each tier.
  RowReads rows_read() const { return rows_read_since({}); }
  // Returns the seconds in which rows of the host came to a GPU; 0 if the run has no such rows.
  double loading_seconds();
  std::string take_feature_rows() override;
  // Returns where feature rows lie; null if they are not in tiers.
  const FeatureTiers* tiers() const;
  // Returns what the methods of placement would cost (judge_methods()); empty if the run has no
  // choice between them.
  std::vector<JudgedPlacement> judged_placements() const;
  // Returns the batches whose rows the device caches with a look-ahead; null if it does not.
  const CachedBatches* cache() const { return cache_.get(); }
  // Returns what the first `most` batches of an epoch would read with the look-ahead, and what they
  // would read if the rows that are in device memory at first stayed there. cache() must not be
  // null.
  CacheForecast forecast_cache(int64_t most) const;
  // Returns the features that stay on disk; null if they are in memory.
  const DiskTier* disk() const { return tier_.get(); }
  std::string take_disk_reads() override;
  // Returns the times of the steps so far. Waits until these steps are over.
  StepTimes step_times();
  // Returns how busy each resource was. The figures mean something only if the run computes on a
  // GPU and one loader has loaded all batches from the first step on.
  ResourceUse resource_use();
  // Returns where batches were drawn and computed so far. If the run has only the host, all batches
  // count as batches of the device of the run.
  ScheduleReport schedule_report() const;
  // Sets the options with which batches are loaded from the next epoch on.
  void load_with(const LoaderOptions& options);
  // Returns at most `count` sampled batches, which belong to no epoch of the run. Every call
  // returns the same batches.
  std::vector<Sample> trial_batches(int count) const;
  Blocks blocks(const Sample& sample) const { return inputs_->blocks(sample); }
  // Returns the model with its gradient, before planning.
  const Dfg& dfg() const { return dfg_; }
  // leaves() returns the values of the leaves of any plan of this model for `sample`. bind() binds
  // the leaves of an executor to such values, which must stay alive while the executor runs.
  std::vector<LeafValue> leaves(const Dfg& dfg, const Sample& sample) const;
  void bind(Executor& executor, const std::vector<LeafValue>& values);

 private:
  void make_sampler();
  void check_staleness();
  void sample_no_neighbours();
  void make_plans(const SessionNeeds& needs);
  Sample short_batch() const;
  void* parameter_place(const std::string& name);
  // Returns the features of all vertices on the host, given or learned.
  Tensor features() const;
  // Returns the feature rows of these vertices.
  Tensor rows_of(std::span<const NodeId> ids) const;
  // Return the name of the leaf that holds the feature rows of a batch, and the width of a row.
  std::string features_leaf() const { return learned_ != nullptr ? learned_->name : "x"; }
  int64_t feature_width() const { return run_.config.model.in_dim; }
  void bind_gradients();
  int64_t track_gradients() const;
  GradientMemory gradient_memory() const;
  Batch take_batch();
  void compute(Batch& batch, int64_t step, PreparedBatch::Finish finish);
  // The next seven functions are defined in placed_session.cpp.
  void choose_places();
  void share_with_host(const Dfg& all_rows, const Blocks& whole);
  int64_t shared_bytes() const;
  void place_on_host(const BatchParts& parts);
  void sample_on_device();
  void choose_group();
  LoaderOptions loading_options() const;
  // Most of the next functions are defined in batch_memory.cpp.
  void count_batches(const std::vector<Sample>& trials);
  void count_batch(const Sample& sample);
  int64_t batch_bytes() const;
  int64_t stored_features() const;
  int64_t drawing_bytes(int ahead) const;
  void use_disk(bool evaluates);
  void place_features();
  void choose_tiers(int64_t budget);
  void prefer_near_rows(const SessionNeeds& needs);
  int64_t feature_budget(int64_t free) const;
  void look_ahead();
  int64_t cache_bytes(int64_t window) const;
  int64_t sent_bytes() const;
  int64_t room_to_lock() const;
  LoaderFeatures loaded_features() const;
  RowReads rows_read_since(const RowReads& told) const;
  void choose_prefetch();
  void choose_evaluation(bool embeddings);
  int64_t sample_bytes() const { return largest_.blocks + largest_.ids; }
  int64_t available_bytes() const;
  std::vector<MemoryItem> device_memory() const;
  void check_memory() const;

  BatchOrder batch_order(const BatchPart& part) const;
  BatchOrder trial_order() const;
  void end_loader();
  void load_anew();
  BatchSession(double start, BatchRankParts parts, const SessionNeeds& needs);

  double start_;
  RunData run_;
  std::shared_ptr<GraphViews> views_;
  std::shared_ptr<const RunDevice> device_;
  std::unique_ptr<BatchInputs> inputs_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<StepWeights> weights_;
  BatchPart part_;                      // the batches of this session
  int sharing_ = 1;                     // see BatchRankParts
  std::unique_ptr<NearSampling> near_;  // null if samples do not depend on where rows lie
  Dfg dfg_;
  std::unique_ptr<Learner> learner_;
  const Parameter* learned_ = nullptr;  // the rows of all vertices, if features are learned
  float* learned_gradient_ = nullptr;   // gradient of the rows of all vertices
  // The f32 features of all vertices in device memory; null if they are not all there.
  const void* device_features_ = nullptr;
  std::unique_ptr<const PlacedFeatures> placed_;  // on a GPU, where features lie if
                                                  // device_features_ is null
  std::shared_ptr<FeatureStore> store_;           // the rows of placed_ in their tiers
  std::unique_ptr<CachedBatches> cache_;          // null: the rows in device memory do not change
  RowReads told_;                                 // rows that take_feature_rows() has returned so
                                                  // far
  std::shared_ptr<void> gradient_memory_;
  std::unique_ptr<BlockRunner> runner_;
  // What the host computes some batches with, beside a device; null if it computes none of them, or
  // if it is the device of the run.
  std::unique_ptr<HostShare> host_share_;
  int64_t host_arena_ = 0;                   // most bytes of an arena of host_share_
  std::unique_ptr<BatchComputer> computer_;  // made by start()
  PlacedBatches* placed_batches_ = nullptr;  // computer_ if there is a host_share_
  std::unique_ptr<FeatureSink> sink_;
  std::unique_ptr<DiskTier> tier_;  // null: features are in memory
  DiskCounters told_disk_reads_;    // reads that take_disk_reads() has returned so far
  double told_wait_ = 0;
  std::unique_ptr<BatchLoader> loader_;
  std::unique_ptr<StaleSteps> stale_;  // steps on tracks of the host; null: one step at a time
  LoaderTimes earlier_times_;          // times of the loaders that loader_ has replaced
  int64_t shuffled_from_ = 0;          // the first epoch that is shuffled
  std::unique_ptr<LayerwiseInference> inference_;
  std::unique_ptr<WholeInference> whole_;            // null: inference_ is used
  std::unique_ptr<Scorer> scorer_;                   // scores the results of whole_
  std::vector<Sample> kernel_trials_;                // batches whose kernels start() asks for
  std::vector<std::shared_ptr<void>> trial_memory_;  // leaves on a device while plans are timed
  PlanAnswer planning_;
  double plan_seconds_ = 0;
  StepTimes step_times_;
  // Makes the device draw the batches of another order; empty if only the host draws.
  std::function<void(const BatchOrder&)> reorder_drawing_;
  bool draws_together_ = false;  // whether the host draws beside the device
  int64_t expected_epochs_ = 0;
  int64_t largest_arena_ = 0;
  // bytes that the work on one block of layer-by-layer inference takes
  int64_t inference_work_ = 0;
  struct BatchBytes {
    // bytes of the features, of the blocks of the sample and the ids of its vertices, and of the
    // forms that kernels walk
    int64_t rows = 0, blocks = 0, ids = 0, forms = 0;
  };
  BatchBytes largest_;                  // the most bytes of any trial batch
  std::vector<Array<NodeId>> counted_;  // vertices of the batches that were counted
  int64_t most_sent_ = 0;               // the most rows of the host in one batch of counted_
};

}  // namespace nacre
