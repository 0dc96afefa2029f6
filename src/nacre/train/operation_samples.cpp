#include "nacre/train/operation_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"
#include "nacre/dfg/dfg.h"
#include "nacre/train/batch_inputs.h"
#include "nacre/train/step_model.h"

namespace nacre {
namespace {

// The batches that are timed belong to epochs from this number on, which no run reaches.
constexpr uint64_t kSampledEpoch = uint64_t{1} << 62;
// Every piece of work is run this many times, and the least time counts, because other programs may
// disturb a run.
constexpr int kRepeats = 3;
// This many batches run in turn, so that the rows of a batch are no longer in the caches when it
// runs again.
constexpr uint64_t kInTurn = 6;
constexpr size_t kFewestBatches = 8;  // least number of batches for each way to compute them
constexpr uint64_t kWarmUp = uint64_t{1} << 60;
constexpr const char* kOrders[] = {"aggregate", "combine"};

// Draws batches of random sizes, whose logarithms are uniform.
class RandomBatches {
 public:
  RandomBatches(const BatchSession& session, const OperationSampling& how) : session_(session), how_(how) {
    const Sampler& sampler = session.sampler();
    if (!sampler.draws_seeds()) {
      samplers_.push_back(std::make_unique<Sampler>(sampler.graph(), sampler.options()));
      return;
    }
    // GraphSAINT samplers draw the seeds themselves, and the size of their subgraphs is a setting,
    // so there is one sampler for each size.
    for (double factor = how.smallest; factor <= how.largest * 1.001; factor *= 2) {
      SampleOptions options = sampler.options();
      options.budget = std::max<int64_t>(1, std::llround(factor * static_cast<double>(options.budget)));
      options.norm_samples = 1;
      samplers_.push_back(std::make_unique<Sampler>(sampler.graph(), options));
    }
  }

  // Chooses the sampler and the seeds of batch `index`, which the functions below return. If
  // `largest` is set, the batch is as large as a batch can be.
  void choose(uint64_t index, bool largest = false) {
    const PhiloxBlock random = philox(mix_key(how_.seed, 0x6F706572), index, 0);
    sampler_ = largest ? samplers_.size() - 1 : index % samplers_.size();
    key_ = {kSampledEpoch + index, 0};
    if (session_.sampler().draws_seeds()) return;
    const Array<NodeId>& train = session_.dataset().splits.train;
    const auto usual = static_cast<double>(session_.config().batch_size);
    const double most = std::max(1.0, std::min(how_.largest * usual, static_cast<double>(train.size())));
    const double least = std::clamp(how_.smallest * usual, 1.0, most);
    const double size = largest ? most : least * std::pow(most / least, uniform01(random[0], random[1]));
    const auto count = std::clamp<int64_t>(std::llround(size), 1, train.size());
    order_ = std::make_unique<BatchOrder>(train, count, mix_key(how_.seed, index), true);
  }

  const Sampler& sampler() const { return *samplers_[sampler_]; }
  // Returns the index of the chosen sampler among those of all sizes.
  size_t sampler_number() const { return sampler_; }
  std::span<const NodeId> seeds() const { return order_ ? order_->batch(0) : std::span<const NodeId>(); }
  const SampleKey& key() const { return key_; }

 private:
  const BatchSession& session_;
  const OperationSampling& how_;
  std::vector<std::unique_ptr<Sampler>> samplers_;
  size_t sampler_ = 0;
  std::unique_ptr<BatchOrder> order_;
  SampleKey key_;
};

// Times the stages of one batch after another, and collects the times. As in training, the memory
// for a batch is allocated before, but its rows and edges are not in the caches.
class Timer {
 public:
  Timer(BatchSession& session, const OperationSampling& how) : session_(session), batches_(session, how) {}

  // Times a batch in one of the ways to compute it. If the batch was timed before, the lesser of
  // the two times is kept for each operation.
  void batch(uint64_t index) {
    batch_ = static_cast<int>(index);
    batches_.choose(index);
    measure(index);
  }

  // Runs the largest batch in every way to compute it, so that all memory is allocated before
  // batches are timed. Returns the number of ways.
  size_t warm_up() {
    batches_.choose(kWarmUp, true);
    size_t ways = 1;
    for (size_t way = 0; way < ways; ++way) {
      measure(way);
      ways = 1 + ordered_.size();
    }
    times_.clear();
    found_.clear();
    return ways;
  }

  // Times the operations that do not depend on the batch: the update and transfers.
  void once() {
    for (int i = 0; i < kRepeats; ++i) {
      const double start = now_seconds();
      session_.learner().update(0);
      settle();
      if (i > 0) add_once("update", {}, now_seconds() - start);
    }
    if (!session_.device().on_host()) transfers();
  }

  std::vector<TimedOperation>& times() { return times_; }
  double first_transfer() const { return first_transfer_; }

 private:
  void measure(uint64_t index) {
    const Sample sample = draw();
    const std::vector<MfgSize> sizes = block_sizes(sample);
    if (session_.sampler().layers() > 0 && session_.draws_on_device()) draw_on_device(sizes);
    gather(sample, sizes);
    compute(index, sample, sizes);
  }

  std::string device() const { return session_.device().name(); }

  void add(const std::string& device, const char* operation, int layer, const std::string& order, MfgSize size,
           double seconds) {
    const OperationKey key{device, operation, layer, order};
    const auto [at, fresh] = found_.try_emplace({key, batch_}, times_.size());
    if (fresh) times_.push_back({key, {size, seconds}, batch_});
    double& known = times_[at->second].timing.seconds;
    known = std::min(known, seconds);
  }
  // Adds the time of an operation that belongs to no batch.
  void add_once(const char* operation, MfgSize size, double seconds) {
    times_.push_back({{device(), operation, 0, {}}, {size, seconds}, 0});
  }

  template <class Work>
  static double least(const Work& work) {
    double seconds = 0;
    for (int i = 0; i < kRepeats; ++i) {
      const double start = now_seconds();
      work();
      const double took = now_seconds() - start;
      if (i == 0 || took < seconds) seconds = took;
    }
    return seconds;
  }

  void settle() {
    Backend& backend = *session_.device().backend();
    backend.await(backend.mark());
  }

  // Draws the batch on the host, hop by hop, and times every hop. The sampler is kept for later
  // batches, so that its tables are made only once.
  Sample draw() {
    const size_t number = batches_.sampler_number();
    if (samplers_.size() <= number) samplers_.resize(number + 1);
    std::unique_ptr<BatchSampler>& sampler = samplers_[number];
    if (!sampler) sampler = batches_.sampler().make_batch_sampler();
    const int hops = sampler->hops();
    std::vector<double> picked, indexed;
    for (int h = 0; h < hops; ++h) {
      const double start = now_seconds();
      if (h == 0) sampler->begin(batches_.seeds(), batches_.key());
      sampler->pick(h);
      sampler->insert(h);
      const double found = now_seconds();
      sampler->reindex(h);
      picked.push_back(found - start);
      indexed.push_back(now_seconds() - found);
    }
    Sample sample = sampler->finish();
    const std::vector<MfgSize> sizes = block_sizes(sample);
    for (int h = 0; h < hops; ++h) {
      const int layer = hops - 1 - h;  // the hop next to the seeds belongs to the last layer
      add(kHostName, "sample", layer, {}, sizes[layer], picked[h]);
      add(kHostName, "reindex", layer, {}, sizes[layer], indexed[h]);
    }
    return sample;
  }

  // Times how long the device draws the batch. It draws all hops at once, so the whole batch is one
  // operation.
  void draw_on_device(const std::vector<MfgSize>& sizes) {
    MfgSize whole = sizes.front();
    for (size_t l = 1; l < sizes.size(); ++l) whole.edges += sizes[l].edges;
    uint64_t epoch = batches_.key().epoch;
    const double seconds = least([&] { session_.sampler().sample(batches_.seeds(), {epoch += uint64_t{1} << 32, 0}); });
    add(device(), "sample", 0, {}, whole, seconds);
  }

  void gather(const Sample& sample, const std::vector<MfgSize>& sizes) {
    const Tensor& features = session_.dataset().features;
    if (!features.defined() || session_.disk() != nullptr) return;
    const int64_t count = sample.vertices.size();
    if (!rows_.defined() || rows_.rows() < count) rows_ = Tensor(DType::f32, {count, features.row_size()});
    const double start = now_seconds();
    gather_rows(features, sample.vertices.span(), rows_.raw());
    add(kHostName, "gather", 0, {}, {sizes.front().vertices, 0}, now_seconds() - start);
  }

  void compute(uint64_t index, const Sample& sample, const std::vector<MfgSize>& sizes) {
    const std::vector<LeafValue> leaves = session_.leaves(session_.dfg(), sample);
    const size_t way = index % (1 + orders(sample).size());
    BlockRunner& runner = way == 0 ? session_.runner() : *ordered_[way - 1];
    const char* const order = way == 0 ? "plan" : kOrders[way - 1];
    if (session_.device().on_host()) {
      run_on_host(runner, sample, sizes, leaves, order);
    } else {
      run_on_device(runner, sample, sizes, leaves, order);
    }
  }

  // Returns runners of two plans: in one all layers aggregate first, in the other all combine
  // first. Returns an empty list if no layer has a choice of order.
  const std::vector<std::unique_ptr<BlockRunner>>& orders(const Sample& sample) {
    if (asked_) return ordered_;
    asked_ = true;
    const Blocks blocks = session_.blocks(sample);
    PlanOptions options = session_.plan().options;
    std::vector<Site> sites;
    for (Site& site : find_sites(prepare_dfg(session_.dfg(), blocks, options))) {
      if (std::find(site.options.begin(), site.options.end(), "combine") != site.options.end()) sites.push_back(site);
    }
    if (sites.empty()) return ordered_;
    const DeviceTraits traits = session_.device().backend()->traits().of_batches();
    PassControl control;
    control.device = &traits;
    for (const char* order : kOrders) {
      for (const Site& site : sites) options.choices[site.key] = order;
      Plan plan = make_plan(session_.dfg(), blocks, options, control);
      ordered_.push_back(std::make_unique<BlockRunner>(std::move(plan), session_.device().backend()));
      for (const Parameter& p : session_.learner().list()) ordered_.back()->bind(p.name, session_.learner().place(p));
    }
    return ordered_;
  }

  // Computes a batch on the host, and adds the times of its operations. The time of binding
  // includes the time in which the bound kernels are freed after the step.
  void run_on_host(BlockRunner& runner, const Sample& sample, const std::vector<MfgSize>& sizes,
                   const std::vector<LeafValue>& leaves, const char* order) {
    const double start = now_seconds();
    std::unique_ptr<Executor> executor = runner.prepare(session_.blocks(sample));
    const double prepared = now_seconds();
    for (const Parameter& p : session_.learner().list()) executor->bind(p.name, session_.learner().place(p));
    for (const LeafValue& leaf : leaves) executor->bind(leaf.name, const_cast<void*>(leaf.values.raw()));
    executor->allocate(runner.arena(executor->arena_bytes()), runner.constants());
    double bound = now_seconds() - prepared;
    executor->run_timed({session_.config().seed, static_cast<uint64_t>(batch_)});
    const std::vector<KernelPart> parts = kernel_parts(executor->plan(), static_cast<int>(sizes.size()));
    std::vector<double> seconds;
    for (const KernelTime& time : executor->times()) seconds.push_back(time.seconds);
    const double ended = now_seconds();
    executor.reset();
    bound += now_seconds() - ended;
    add(kHostName, "prepare", 0, {}, sizes.front(), prepared - start);
    add(kHostName, "bind", 0, {}, sizes.front(), bound);
    add_kernels(parts, seconds, sizes, order);
  }

  void run_on_device(BlockRunner& runner, const Sample& sample, const std::vector<MfgSize>& sizes,
                     const std::vector<LeafValue>& leaves, const char* order) {
    const double start = now_seconds();
    runner.prepare(session_.blocks(sample));
    const double prepared = now_seconds() - start;
    const double again = now_seconds();
    const BlockRunner::Ready ready = runner.make_ready(session_.blocks(sample), leaves, {});
    add(kHostName, "prepare", 0, {}, sizes.front(), prepared);
    add(kHostName, "bind", 0, {}, sizes.front(), std::max(0.0, now_seconds() - again - prepared));
    Executor& executor = *ready.executor;
    const std::vector<KernelPart> parts = kernel_parts(executor.plan(), static_cast<int>(sizes.size()));
    std::vector<double> seconds(parts.size(), 0);
    for (int repeat = 0; repeat <= kRepeats; ++repeat) {
      executor.reset_times();
      executor.run_timed({session_.config().seed, static_cast<uint64_t>(repeat)});
      for (size_t k = 0; k < parts.size(); ++k) {
        const KernelTime& time = executor.times()[k];
        const double took = time.runs > 0 ? time.seconds / static_cast<double>(time.runs) : 0;
        // The first run only warms up and does not count.
        if (repeat == 1 || (repeat > 1 && took < seconds[k])) seconds[k] = took;
      }
    }
    add_kernels(parts, seconds, sizes, order);
  }

  void add_kernels(const std::vector<KernelPart>& parts, const std::vector<double>& seconds,
                   const std::vector<MfgSize>& sizes, const char* order) {
    std::map<std::pair<std::string, int>, double> sums;
    for (size_t k = 0; k < parts.size(); ++k) {
      if (!parts[k].operation.empty()) sums[{parts[k].operation, parts[k].layer}] += seconds[k];
    }
    for (const auto& [part, sum] : sums) {
      add(device(), part.first.c_str(), part.second, order, sizes[part.second], sum);
    }
  }

  void transfers() {
    constexpr int64_t kLeast = 1 << 12, kMost = int64_t{1} << 26;
    Backend& backend = *session_.device().backend();
    const std::shared_ptr<void> memory = backend.allocate(kMost);
    const std::vector<char> host(static_cast<size_t>(kMost));
    const auto send = [&](int64_t bytes) {
      backend.write(memory.get(), host.data(), bytes);
      settle();
    };
    const double start = now_seconds();
    send(kLeast);
    const double first = now_seconds() - start;
    for (int64_t bytes = kLeast; bytes <= kMost; bytes *= 2) {
      const double seconds = least([&] { send(bytes); });
      add_once("transfer", {static_cast<double>(bytes), 0}, seconds);
      if (bytes == kLeast) first_transfer_ = std::max(0.0, first - seconds);
    }
  }

  BatchSession& session_;
  RandomBatches batches_;
  int batch_ = 0;
  bool asked_ = false;
  std::vector<std::unique_ptr<BlockRunner>> ordered_;
  std::vector<std::unique_ptr<BatchSampler>> samplers_;  // samplers of the host
  Tensor rows_;                                          // features of a batch
  std::vector<TimedOperation> times_;
  std::map<std::pair<OperationKey, int>, size_t> found_;  // index in times_
  double first_transfer_ = 0;
};

}  // namespace

std::vector<MfgSize> block_sizes(const Sample& sample) {
  std::vector<MfgSize> sizes;
  for (const Graph& block : sample.blocks)
    sizes.push_back({static_cast<double>(block.num_src()), static_cast<double>(block.num_edges())});
  return sizes;
}

std::vector<Sample> random_batches(const BatchSession& session, int count, const OperationSampling& how) {
  RandomBatches batches(session, how);
  std::vector<Sample> list;
  for (int i = 0; i < count; ++i) {
    batches.choose(static_cast<uint64_t>(i));
    list.push_back(batches.sampler().sample(batches.seeds(), batches.key()));
  }
  return list;
}

OperationTimes time_operations(BatchSession& session, const OperationSampling& how) {
  Timer timer(session, how);
  Progress progress("timing operations", how.seconds);
  const double start = now_seconds();
  const size_t fewest = kFewestBatches * timer.warm_up();
  timer.once();
  for (uint64_t i = 0; i < fewest || now_seconds() - start < how.seconds; i += kInTurn) {
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      for (uint64_t k = 0; k < kInTurn; ++k) timer.batch(i + k);
    }
    progress.update(std::min(now_seconds() - start, how.seconds), fmt::format("{} batches", i + kInTurn));
  }
  return {std::move(timer.times()), timer.first_transfer()};
}

std::string operation_costs_key(const BatchSession& session) {
  const RunConfig& c = session.config();
  const SampleOptions& s = c.sampling;
  const Dataset& d = session.dataset();
  std::string sampling = s.sampler;
  for (const int fanout : s.fanout) sampling += fmt::format(" {}", fanout);
  for (const std::vector<int>& hop : s.type_fanout) sampling += fmt::format(" {}", fmt::join(hop, "/"));
  if (session.draws_on_device()) sampling += " on the device";
  if (session.sampler().draws_seeds()) sampling += fmt::format(" budget {} walk {}", s.budget, s.walk_length);
  // Two models of one name may differ, for example in a file of the user's own, so the key has a
  // hash of the model.
  const size_t model = std::hash<std::string>()(print_dfg(session.dfg()));
  return fmt::format(
      "{}; {}{}{}; {}: {} nodes, {} edges, {} features of {}, {} "
      "classes; dropout {} {}; model {:x}; {} threads",
      step_model_key(c, num_threads()), sampling, s.replace ? " replace" : "", s.weighted ? " weighted" : "", d.name,
      d.num_nodes(), d.graph.num_edges(), c.model.in_dim, c.features.type, c.model.out_dim, c.model.input_dropout,
      c.model.attention_dropout, model, num_threads());
}

}  // namespace nacre
