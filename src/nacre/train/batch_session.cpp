#include "nacre/train/batch_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/names.h"
#include "nacre/base/parallel.h"
#include "nacre/base/trace.h"
#include "nacre/tier/cached_batches.h"
#include "nacre/train/batch_schedules.h"
#include "nacre/train/feature_options.h"
#include "nacre/train/feature_tiers.h"
#include "nacre/train/metrics.h"
#include "nacre/train/near_sampling.h"
#include "nacre/train/placed_batches.h"
#include "nacre/train/room.h"
#include "nacre/train/stale_steps.h"

namespace nacre {
namespace {

constexpr int kTrialBatches = 5;
constexpr int64_t kMostSeeds = std::numeric_limits<int32_t>::max();
// The trial batches that plans are made on belong to the epoch of this number, which no run
// reaches.
constexpr uint64_t kTrialEpoch = ~uint64_t{0};

Sampling sampling_of(const SampleOptions& o, bool near) {
  const bool all = std::all_of(o.fanout.begin(), o.fanout.end(), [](int f) { return f < 0; });
  if (!sampler_info(o.sampler).uniform || !o.type_fanout.empty()) return Sampling::importance;
  if (all) return Sampling::blocks;
  return o.weighted || near ? Sampling::importance : Sampling::uniform;
}

// Returns how many times a model passes messages along edges, which is the number of blocks that a
// batch needs.
int message_steps(const ModelOptions& options) {
  const Dfg dfg = build_model(options);
  return dfg[dfg.find_output("logits")].type.space.layer;
}

// Adds a number to the fan-outs by type for the self loops that a model adds to a typed graph.
// These loops are one more edge type, for which users give no number, so all of them are taken.
void take_added_loops(const RunConfig& config, const Graph& graph, SampleOptions& o) {
  if (!graph.typed() || !model_info(config.model.model).needs_self_loops) return;
  for (std::vector<int>& hop : o.type_fanout) {
    if (static_cast<int>(hop.size()) + 1 == graph.num_edge_types()) hop.push_back(-1);
  }
}

int tracks_of(const RunConfig& config) { return config.staleness > 0 ? config.staleness + 1 : 0; }

// Returns what the session of a run on one device is made from. That session computes all batches.
BatchRankParts only_rank(RunData run) {
  auto views = std::make_shared<GraphViews>();
  std::shared_ptr<const RunDevice> device = open_device(run.config, views);
  return {std::move(run), std::move(views), std::move(device), {}, 1};
}

}  // namespace

BatchSession::BatchSession(Dataset dataset, RunConfig config, const SessionNeeds& needs)
    : BatchSession(now_seconds(), only_rank(RunData(std::move(dataset), std::move(config), needs.training)), needs) {}

BatchSession::BatchSession(BatchRankParts parts, const SessionNeeds& needs)
    : BatchSession(now_seconds(), std::move(parts), needs) {}

BatchSession::BatchSession(double start, BatchRankParts parts, const SessionNeeds& needs)
    : start_(start),
      run_(std::move(parts.run)),
      views_(std::move(parts.views)),
      device_(std::move(parts.device)),
      inputs_(std::make_unique<BatchInputs>(run_)),
      part_(parts.part),
      sharing_(parts.sharing),
      shuffled_from_(run_.config.shuffle == "always" ? 0 : kNeverShuffled) {
  ModelOptions options = run_.config.model;
  if (needs.training) {
    check_batch_schedule(run_.config, !device_->on_host());
    follow_schedule(run_.config);
    check_feature_options(run_.config);
    if (inputs_->kinds() != nullptr) check_kind_options(run_.config);
    const FeatureOptions& asked = run_.config.features;
    if (device_->on_host() && (!asked.budget.empty() || asked.placement != "auto" || asked.host_rows != "auto" ||
                               asked.locality != "off" || asked.cache != "static"))
      throw UserError("--feature-budget, --placement, --cache, --host-rows and --locality",
                      "are for a GPU, but the run is on the CPU", "leave them out");
    make_sampler();
    check_staleness();
    weights_ = std::make_unique<StepWeights>(*inputs_, batch_order({}), sampler_->draws_seeds());
    weights_->join(part_.group);
    options.sampling = sampling_of(run_.config.sampling, locality_scale(asked.locality) != 0 || needs.near_scale > 0);
    options.training = true;
    options.loss = run_.training_loss();
    dfg_ = build_model(options);
    differentiate(dfg_);
  }
  options.sampling = Sampling::blocks;
  options.training = false;
  options.embeddings = needs.embeddings;
  options.loss = "none";
  const Dfg forward = build_model(options);
  // Parameters are sized by a DFG of the whole graph, in which learned rows are those of all
  // vertices, not those of a batch.
  options.sampling = Sampling::none;
  const Dfg all_rows = build_model(options);
  const Blocks whole = Blocks::full(run_.dataset.graph, 1);
  require_parameters(all_rows, whole, run_.config, needs.training);
  learner_ = std::make_unique<Learner>(Parameters(all_rows, whole, run_.config.seed), device_->backend());
  if (inputs_->kinds() != nullptr) inputs_->kinds()->learn(*learner_);
  const std::vector<VertexKind>& kinds = run_.config.model.kinds;
  for (const Parameter& p : learner_->list()) {
    if (learns_all_rows(kinds) && p.name == learned_rows_name(kinds[0])) learned_ = &p;
  }
  LayerwiseOptions layerwise;
  layerwise.seed = run_.config.seed;
  if (run_.on_disk) {
    tier_ = std::make_unique<DiskTier>(run_.config, *run_.on_disk);
    layerwise.block_bytes = std::min(layerwise.block_bytes, tier_->block_bytes());
  }
  if (run_.config.memory_limit > 0)
    layerwise.block_bytes = std::min(layerwise.block_bytes, std::max<int64_t>(1 << 20, run_.config.memory_limit / 8));
  inference_ = std::make_unique<LayerwiseInference>(run_, *inputs_, forward, device_->backend(), layerwise);
  if (needs.training) {
    learner_->optimize_with(run_.config.optimizer, tracks_of(run_.config));
    make_plans(needs);
    share_with_host(all_rows, whole);
    if (tier_) use_disk(needs.evaluation);
    if (!device_->on_host()) place_features();
    prefer_near_rows(needs);
    counted_.clear();
    // The way to evaluate is chosen after the number of batches ahead, because it depends on that
    // number. Until then, evaluation counts with the most memory that it may take.
    if (needs.evaluation) inference_work_ = inference_->work_bytes();
    choose_prefetch();
    inference_work_ = 0;
    sample_on_device();
    if (needs.evaluation) choose_evaluation(needs.embeddings);
  }
  if (!whole_ && (needs.evaluation || !needs.training)) inference_work_ = inference_->work_bytes();
  if (needs.training) choose_group();
  if (needs.training) look_ahead();
  plan_seconds_ = now_seconds() - start_;
}

BatchSession::~BatchSession() = default;

// Throws UserError if the run cannot have the --staleness that was asked for. It must be less than
// the number of batches of an epoch, because the end of an epoch waits for all updates.
void BatchSession::check_staleness() {
  const int asked = run_.config.staleness;
  if (asked == 0) return;
  if (asked < 0) throw UserError("--staleness", "must not be negative");
  if (run_.config.ranks.several())
    throw UserError("--staleness", "is for one device, because several devices add up the gradients of each step",
                    "leave it out, or leave out --devices");
  const int64_t batches = batch_order({}).num_batches();
  if (asked >= batches)
    throw UserError("--staleness",
                    fmt::format("{} is too much for epochs of {}", asked, counted(batches, "batch", "batches")),
                    "give a smaller number, or use a smaller --batch-size");
  if (!device_->on_host() && !places_batches(run_.config.batch_schedule))
    run_.notes.emplace_back("--staleness saves no time on a GPU, where steps follow one another");
}

void BatchSession::make_sampler() {
  SampleOptions& o = run_.config.sampling;
  const SamplerInfo& info = sampler_info(o.sampler);
  const int layers = message_steps(run_.config.model);
  o.seed = run_.config.seed;
  o.layers = std::max(1, layers);
  if (run_.config.batch_size < 1 || run_.config.batch_size > kMostSeeds)
    throw UserError("--batch-size", "must lie between 1 and " + human_count(kMostSeeds));
  if (layers == 0 && !info.draws_subgraph) return sample_no_neighbours();
  take_added_loops(run_.config, run_.dataset.graph, o);
  if (!info.draws_subgraph && o.type_fanout.empty()) {
    if (o.fanout.empty()) o.fanout.assign(layers, info.usual_fanout);
    if (static_cast<int>(o.fanout.size()) != layers) {
      throw UserError("--fanout", fmt::format("has {} numbers, but the model has {} layers", o.fanout.size(), layers),
                      "give one number per layer, the one next to the seeds first");
    }
  }
  if (info.draws_subgraph && o.budget == 0) o.budget = run_.config.batch_size;
  // GraphSAINT counts before training how often every vertex and edge is drawn.
  if (info.draws_subgraph)
    require_room(run_.config, run_.dataset.graph.num_edges() * 2 + run_.dataset.num_nodes() * 14,
                 "the counts of how often nodes and edges are drawn");
  sampler_ = std::make_unique<Sampler>(run_.dataset.graph, o);
}

// Makes the sampler for a model that reads only the batch's own vertices. Its batches are drawn
// from a graph without edges.
void BatchSession::sample_no_neighbours() {
  const SampleOptions& asked = run_.config.sampling;
  if (!asked.fanout.empty() || !asked.type_fanout.empty()) {
    throw UserError("--fanout", "has no effect on " + run_.config.model.model + ", which does not use neighbours",
                    "leave it out");
  }
  GraphArrays alone;
  alone.num_src = alone.num_dst = run_.dataset.num_nodes();
  alone.row_ptr = Array<int64_t>(std::vector<int64_t>(static_cast<size_t>(alone.num_dst) + 1, 0));
  SampleOptions options;
  options.fanout = {-1};
  options.layers = 1;
  options.seed = asked.seed;
  sampler_ = std::make_unique<Sampler>(Graph::trusted(std::move(alone)), options);
}

std::vector<Sample> BatchSession::trial_batches(int count) const {
  const bool subgraph = sampler_->draws_seeds();
  const BatchOrder order = trial_order();
  std::vector<Sample> list;
  const int64_t batches = subgraph ? count : std::min<int64_t>(count, order.num_batches());
  for (int64_t i = 0; i < batches; ++i) {
    list.push_back(sampler_->sample(subgraph ? std::span<const NodeId>() : order.batch(i),
                                    {kTrialEpoch, static_cast<uint64_t>(i)}));
  }
  return list;
}

// Returns the order of trial batches. It is shuffled if some epochs of the run are shuffled.
BatchOrder BatchSession::trial_order() const {
  const bool shuffle = run_.config.shuffle != "never";
  BatchOrder order(run_.dataset.splits.train, run_.config.batch_size, run_.config.seed, shuffle);
  order.begin_epoch(kTrialEpoch);
  return order;
}

// Returns the last batch of an epoch, which may be much smaller than the others.
Sample BatchSession::short_batch() const {
  if (sampler_->draws_seeds()) return sampler_->sample({}, {kTrialEpoch, 0});
  const BatchOrder order = trial_order();
  const int64_t last = order.num_batches() - 1;
  return sampler_->sample(order.batch(last), {kTrialEpoch, static_cast<uint64_t>(last)});
}

std::vector<LeafValue> BatchSession::leaves(const Dfg& dfg, const Sample& sample) const {
  std::vector<LeafValue> values = inputs_->gather(dfg, sample);
  if (const KindTables* kinds = inputs_->kinds(); kinds != nullptr) {
    const KindBatch batch = kinds->split(sample.vertices.span());
    for (LeafValue& rows : kinds->features(batch, true)) values.push_back(std::move(rows));
    for (LeafValue& rows : kinds->learned_rows(batch)) values.push_back(std::move(rows));
  } else {
    values.push_back({features_leaf(), rows_of(sample.vertices.span())});
  }
  return values;
}

Tensor BatchSession::rows_of(std::span<const NodeId> ids) const {
  return tier_ ? tier_->read(ids) : gather_rows(features(), ids);
}

Tensor BatchSession::features() const {
  if (learned_ == nullptr) return run_.dataset.features;
  return {DType::f32, learned_->shape, nullptr, learner_->parameters().data(*learned_)};
}

void* BatchSession::parameter_place(const std::string& name) {
  for (const Parameter& p : learner_->list()) {
    if (p.name == name) return learner_->place(p);
  }
  NACRE_CHECK(false, "there is no parameter '" + name + "'");
  return nullptr;
}

void BatchSession::bind(Executor& executor, const std::vector<LeafValue>& values) {
  for (const Parameter& p : learner_->list()) {
    if (&p != learned_) executor.bind(p.name, learner_->place(p));
  }
  for (const LeafValue& v : values) {
    trial_memory_.push_back(device_->backend()->borrow(v.values.raw(), v.values.bytes()));
    executor.bind(v.name, trial_memory_.back().get());
  }
}

void BatchSession::make_plans(const SessionNeeds& needs) {
  const std::vector<Sample> trials = trial_batches(kTrialBatches);
  const auto vertices = [](const Sample& sample) { return sample.vertices.size(); };
  const auto largest = std::max_element(trials.begin(), trials.end(),
                                        [&](const Sample& a, const Sample& b) { return vertices(a) < vertices(b); });
  // Only plans that are timed need values. All trial batches read the features of the largest one,
  // because this does not change how long kernels take.
  Tensor rows;
  std::vector<std::vector<LeafValue>> values(trials.size());
  const auto bind_trial = [&](Executor& executor, size_t i) {
    const KindTables* kinds = inputs_->kinds();
    if (!rows.defined() && kinds == nullptr) rows = rows_of(largest->vertices.span());
    if (values[i].empty()) {
      values[i] = inputs_->gather(dfg_, trials[i]);
      if (kinds != nullptr) {
        for (LeafValue& x : kinds->like(kinds->split(trials[i].vertices.span()))) values[i].push_back(std::move(x));
      } else {
        values[i].push_back(
            {features_leaf(), Tensor(rows.dtype(), {vertices(trials[i]), rows.row_size()}, nullptr, rows.raw())});
      }
    }
    bind(executor, values[i]);
  };
  std::vector<TrialBlocks> blocks;
  for (size_t i = 0; i < trials.size(); ++i)
    blocks.push_back({inputs_->blocks(trials[i]), [&bind_trial, i](Executor& e) { bind_trial(e, i); }});
  PlanRequest request = plan_request(run_.config, run_.config.epochs * batches_per_epoch(), needs.resumed_plan);
  // Ranks would disturb each other if they timed kernels, so their plans are made by rules.
  if (run_.config.ranks.several() && request.plan == "auto") request.deterministic = true;
  planning_ = plan_batches(dfg_, blocks, device_->backend(), request);
  trial_memory_.clear();
  choose_places();
  runner_ = std::make_unique<BlockRunner>(planning_.plan, device_->backend());
  count_batches(trials);
  if (!device_->on_host()) kernel_trials_ = {trials.front(), short_batch()};
}

int64_t BatchSession::steps_per_epoch() const {
  const int64_t group = part_.group;
  return (batches_per_epoch() + group - 1) / group;
}

void BatchSession::start() {
  check_memory();
  begin();
}

void BatchSession::begin() {
  learner_->weights_changed();
  if (!learner_->trains()) return;
  if (placed_ && placed_->tiers.link) {
    store_->read_host(std::make_shared<HostRows>(device_->gpu(), placed_->tiers.format, run_.dataset.features,
                                                 placed_->host_rows.span()));
  }
  bind_gradients();
  if (whole_) {
    whole_->start();
    scorer_->start(nullptr);
  }
  sink_ = computer_->make_sink();
  load_with(run_.config.loader);
  // Waits until the kernels are compiled, so that no step waits for its kernels.
  device_->backend()->settle();
}

void BatchSession::bind_gradients() {
  const int64_t bytes = gradients().count * 4 + track_gradients();
  gradient_memory_ = device_->backend()->allocate(bytes);
  // No step writes the gradients of parameters for which the plan computes none, but ranks add up
  // all gradients, so all of them are cleared.
  device_->backend()->clear(gradient_memory_.get(), bytes);
  std::vector<const float*> gradients;
  for (const Parameter& p : learner_->list()) {
    float* gradient = static_cast<float*>(gradient_memory_.get()) + p.offset;
    const bool has = runner_->plan().dfg.find_output("grad:" + p.name) >= 0;
    if (&p == learned_) {
      // Learned rows are not bound here, because a batch reads its rows, and writes their gradient,
      // at another place than the batches before it.
      learned_gradient_ = gradient;
    } else if (KindTable* table = inputs_->kinds() != nullptr ? inputs_->kinds()->learned(p) : nullptr;
               table != nullptr) {
      table->gradient = gradient;
    } else {
      runner_->bind(p.name, learner_->place(p));
      if (has) gradient = static_cast<float*>(runner_->bind_output("grad:" + p.name, gradient));
    }
    gradients.push_back(has ? gradient : nullptr);
  }
  const BatchParts parts{run_,
                         *inputs_,
                         dfg_,
                         *runner_,
                         *learner_,
                         learned_,
                         learned_gradient_,
                         gradient_memory(),
                         track_gradients() > 0,
                         device_features_,
                         store_.get(),
                         cache_.get(),
                         weights_.get()};
  computer_ = device_->make_batch_computer(parts);
  place_on_host(parts);
  computer_->ask_for_kernels(kernel_trials_);
  kernel_trials_.clear();
  learner_->start(gradients);
  if (track_gradients() > 0)
    stale_ = std::make_unique<StaleSteps>(*learner_, *device_->backend(), gradient_memory(), placed_batches_);
}

// Returns where the gradients lie that the optimiser reads, and those of every track.
GradientMemory BatchSession::gradient_memory() const {
  return {static_cast<char*>(gradient_memory_.get()), learner_->parameter_bytes()};
}

// Returns the bytes of the gradients of all tracks. If only a GPU computes batches, they are 0,
// because it computes one batch after another and all of them write the same gradients.
int64_t BatchSession::track_gradients() const {
  return device_->on_host() || host_share_ ? learner_->track_bytes() : 0;
}

// Returns the features that the loader looks up; a table without columns if it looks up none. The
// loader does not look up learned rows, which change with every step, nor rows that a device reads
// where they lie, nor rows of several kinds, which are gathered when a batch is prepared.
LoaderFeatures BatchSession::loaded_features() const {
  const bool one_table = learned_ == nullptr && inputs_->kinds() == nullptr;
  const bool looks_up = one_table && (device_->on_host() || (store_ && store_->gathers()));
  if (!looks_up) return Tensor(DType::f32, {run_.dataset.num_nodes(), 0});
  LoaderFeatures features = run_.dataset.features;
  if (device_->on_host()) return features;
  features.as_stored = true;
  features.stride = store_->format().stride();
  features.wanted = store_->tiers();
  return features;
}

void BatchSession::load_with(const LoaderOptions& options) {
  run_.config.loader = options;
  end_loader();
  LoaderFeatures features = loaded_features();
  if (tier_) features.source = tier_->source(*sampler_, batch_order(part_), features.wanted);
  if (cache_) {
    cache_->reorder(batch_order(part_));
    features.samples = cache_.get();
  }
  loader_ = std::make_unique<BatchLoader>(
      *sampler_, batch_order(part_), features, *sink_, loading_options(),
      [this](const Sample& sample, const SampleKey& key) { return computer_->prepare(sample, key); });
}

void BatchSession::take_part(const BatchPart& part) {
  part_ = part;
  weights_->join(part.group);
  load_anew();
}

// Sets the first epoch that is shuffled. Batches of the next epoch may already be under way in the
// old order, so they are dropped and drawn anew.
void BatchSession::shuffle_from(int64_t epoch) {
  if (epoch == shuffled_from_ || sampler_->draws_seeds()) return;
  NACRE_CHECK(!tier_, "rows of the disk tier are planned for another order of batches");
  shuffled_from_ = epoch;
  weights_->shuffle_from(static_cast<uint64_t>(epoch));
  load_anew();
}

void BatchSession::end_loader() {
  if (stale_) stale_->finish();
  if (loader_) {
    LoaderTimes times = loader_->times();
    times.copied = 0;  // counted by the sink, which the next loader uses, too
    earlier_times_ += times;
  }
  loader_.reset();
}

void BatchSession::load_anew() {
  end_loader();
  if (reorder_drawing_) reorder_drawing_(batch_order(part_));
  load_with(run_.config.loader);
}

StepGradients BatchSession::gradients() const {
  return {static_cast<float*>(gradient_memory_.get()), learner_->parameter_bytes() / 4 + 1};
}

BatchOrder BatchSession::batch_order(const BatchPart& part) const {
  // Subgraphs are drawn from all vertices; in an epoch each vertex is drawn about once.
  std::vector<NodeId> all(sampler_->draws_seeds() ? static_cast<size_t>(run_.dataset.num_nodes()) : 0);
  std::iota(all.begin(), all.end(), NodeId{0});
  const Array<NodeId> seeds = all.empty() ? run_.dataset.splits.train : Array<NodeId>(std::move(all));
  BatchOrder order(seeds, run_.config.batch_size, run_.config.seed, true, part);
  if (!sampler_->draws_seeds()) order.shuffle_from(static_cast<uint64_t>(shuffled_from_));
  order.begin_epoch(0);
  return order;
}

void BatchSession::begin_epoch(int64_t epoch, int64_t first) {
  if (stale_) stale_->finish();
  if (first == 0) learner_->begin_tracks();
  if (near_) near_->begin_epoch(loading_seconds());
  weights_->begin_epoch(static_cast<uint64_t>(epoch), first);
  if (loader_->num_batches() == 0) return;
  loader_->begin_epoch(static_cast<uint64_t>(epoch), batches_before(first),
                       std::max<int64_t>(0, expected_epochs_ - epoch - 1));
}

void BatchSession::take_losses(double& sum) {
  const double start = now_seconds();
  const TraceSpan span("train", "device");
  if (stale_) stale_->finish();
  learner_->take_losses(sum);
  step_times_.settled += now_seconds() - start;
}

void BatchSession::queue_step(int64_t step, double lr) {
  if (stale_) {
    const double start = now_seconds();
    stale_->free_track();
    step_times_.host += now_seconds() - start;
    ++step_times_.steps;
    return stale_->begin(take_batch(), step, lr);
  }
  Batch batch = take_batch();
  const int64_t number = batch.index;
  compute(batch, step, [&](const void* loss) {
    learner_->keep_loss(loss);
    learner_->update(lr, number);
  });
}

void BatchSession::compute_next(int64_t step, PreparedBatch::Finish finish) {
  Batch batch = take_batch();
  compute(batch, step, finish);
}

Batch BatchSession::take_batch() {
  const TraceSpan span("train", "wait for a batch");
  return loader_->next();
}

void BatchSession::compute(Batch& batch, int64_t step, PreparedBatch::Finish finish) {
  const double start = now_seconds();
  batch.prepared->run(batch, step, finish);
  batch = {};  // freed here, because freeing the batch's memory takes time, too
  step_times_.host += now_seconds() - start;
  ++step_times_.steps;
}

const float* BatchSession::predict() {
  if (whole_) {
    whole_->run();
    return whole_->values("logits");
  }
  const auto place = [this](const std::string& name) { return parameter_place(name); };
  if (!tier_) {
    inference_->run(features(), place);
  } else {
    const std::unique_ptr<DiskRows> source = tier_->evaluation_source(inference_->feature_blocks());
    inference_->run(features(), place, source.get());
    tier_->count(*source);
  }
  return inference_->values("logits");
}

const float* BatchSession::embeddings() {
  if (embedding_width() == 0) refuse_embeddings(run_.config);
  return whole_ ? whole_->values("embedding") : inference_->values("embedding");
}

int64_t BatchSession::embedding_width() const { return inference_->width("embedding"); }

Scores BatchSession::evaluate(bool with_loss) {
  if (!whole_) return score_splits(run_.metric, run_.dataset, predict(), with_loss);
  whole_->run();
  return scorer_->score(whole_->executor(), with_loss);
}

}  // namespace nacre
