// The part of BatchSession that decides where batches and evaluations keep their data, and counts
// the memory of the host and of a GPU.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/names.h"
#include "nacre/base/parallel.h"
#include "nacre/cost/gpu_profile.h"
#include "nacre/tensor/narrow_floats.h"
#include "nacre/tier/cached_batches.h"
#include "nacre/train/batch_session.h"
#include "nacre/train/feature_options.h"
#include "nacre/train/feature_tiers.h"
#include "nacre/train/near_sampling.h"

namespace nacre {
namespace {

constexpr const char* kFewer = "use a smaller --batch-size, --prefetch or --fanout";

// A piece of memory of fewer bytes than this may stay with the allocator after it is freed.
constexpr int64_t kKeptByAllocator = int64_t{32} << 20;

// The arrays of a batch are sent to a GPU in blocks of memory of at least this many bytes
// (PinnedPool).
constexpr int64_t kBlockBytes = int64_t{8} << 20;

std::string size_of(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

// Returns the bytes of the views of a block in device memory: both directions, and a unit of work
// for each row.
int64_t forms_bytes(const Graph& block) {
  constexpr int64_t entry = 12, row = 40;
  return block.num_edges() * entry + (block.num_src() + block.num_dst()) * row;
}

}  // namespace

// Counts the memory of the trial batches, and of a batch whose seeds are the training vertices with
// the most in-edges. The batches of the run are hardly larger.
void BatchSession::count_batches(const std::vector<Sample>& trials) {
  for (const Sample& sample : trials) count_batch(sample);
  if (sampler_->draws_seeds()) return;
  const Array<NodeId>& train = run_.dataset.splits.train;
  std::vector<NodeId> seeds(train.begin(), train.end());
  const auto count = static_cast<size_t>(std::min<int64_t>(run_.config.batch_size, train.size()));
  const auto degree = [&](NodeId v) { return run_.dataset.graph.in_degree(v); };
  std::partial_sort(seeds.begin(), seeds.begin() + static_cast<std::ptrdiff_t>(count), seeds.end(),
                    [&](NodeId a, NodeId b) { return degree(a) != degree(b) ? degree(a) > degree(b) : a < b; });
  seeds.resize(count);
  count_batch(sampler_->sample(seeds, {~uint64_t{0}, ~uint64_t{0}}));
}

void BatchSession::count_batch(const Sample& sample) {
  const int64_t rows = sample.vertices.size();
  // The numbers of a vertex in its batch and among its kind take 8 bytes.
  int64_t blocks = inputs_->kinds() != nullptr ? rows * 8 : 0, forms = 0;
  for (const Graph& block : sample.blocks) {
    blocks += block.bytes() + block.num_edges() * 12;  // each edge takes 12 more bytes for its
                                                       // number and scales
    forms += forms_bytes(block);
  }
  largest_arena_ = std::max(largest_arena_, runner_->prepare(inputs_->blocks(sample))->arena_bytes());
  counted_.push_back(sample.vertices);
  largest_.rows = std::max(largest_.rows, inputs_->row_bytes(sample));
  largest_.blocks = std::max(largest_.blocks, blocks);
  largest_.ids = std::max<int64_t>(largest_.ids, rows * static_cast<int64_t>(sizeof(NodeId)));
  largest_.forms = std::max(largest_.forms, forms + rows * 8);
}

// Returns the bytes of memory for the rows that are sent to a GPU with each batch; 0 if no rows are
// sent. The memory is up to half larger than the rows: the loader asks for an eighth more than they
// need, and the sink allocates a quarter more than the loader asks for.
int64_t BatchSession::sent_bytes() const {
  if (!placed_ || placed_->tiers.link) return 0;
  const int64_t rows = most_sent_ * placed_->tiers.format.stride();
  return rows + rows / 2;
}

// Returns the bytes that each batch under way takes of a GPU's memory.
int64_t BatchSession::batch_bytes() const {
  // If rows are cached, the positions and seats of those that stay come with the batch.
  const int64_t keeps = placed_ && placed_->tiers.lookahead ? 2 * largest_.ids : 0;
  return largest_.rows + largest_.forms + kBlockBytes + sent_bytes() + keeps;
}

int64_t BatchSession::drawing_bytes(int ahead) const {
  return run_.dataset.graph.bytes() + ahead * (run_.dataset.num_nodes() * 4 + largest_.blocks);
}

// Returns the bytes of a GPU's memory that features may take: --feature-budget if it is given, and
// 0 with --features-on host. Without these options, features may take half of the `free` bytes.
// They may take more if that leaves twice what batches need and four times what drawing them on the
// GPU needs, because choose_prefetch() gives batches only half of the memory that is then free, and
// RunDevice::draw_batches() takes at most a quarter of it, unless --sample-on device is given.
int64_t BatchSession::feature_budget(int64_t free) const {
  const FeatureOptions& options = run_.config.features;
  if (!options.budget.empty()) return options.budget.front();
  if (run_.config.features_on == "host") return 0;
  const int ahead = run_.config.loader.in_flight >= 0 ? run_.config.loader.in_flight : 2 * device_->batches_ahead();
  const int64_t batches = (ahead + 1) * (batch_bytes() + largest_.rows);
  const int64_t others = learner_->parameter_bytes() + largest_arena_ + largest_arena_ / 4;
  return std::max(free / 2, free - 2 * batches - 4 * drawing_bytes(ahead + 1) - others);
}

// Divides --host-budget between training and evaluation. Batches differ in size, so a quarter is
// added to the rows of the largest batch that was counted.
void BatchSession::use_disk(bool evaluates) {
  const int64_t rows = largest_.rows / std::max<int64_t>(1, feature_width() * 4);
  tier_->divide(std::min(rows + rows / 4, run_.dataset.num_nodes()), evaluates);
  tier_->draw_with(sampler_->make_batch_sampler());
  run_.notes.push_back(tier_->note());
}

void BatchSession::place_features() {
  if (tier_) {
    if (run_.config.features_on == "device")
      throw UserError("--features-on", "features that stay on disk because of --host-budget cannot be on the device",
                      "leave one of the two out");
    return choose_tiers(0);
  }
  const int64_t free = std::min(available_bytes(), memory_limit());
  if (KindTables* kinds = inputs_->kinds(); kinds != nullptr) {
    const std::string where = kinds->place(run_.config.features_on, free);
    if (!where.empty()) run_.notes.push_back(where);
    return;
  }
  if (learned_ != nullptr) {
    if (run_.config.features_on == "host") refuse_learned_on_host();
    device_features_ = learner_->place(*learned_);
    return;
  }
  const Tensor& features = run_.dataset.features;
  const std::string& where = run_.config.features_on;
  const bool given = !run_.config.features.budget.empty();
  const cuda::RowFormat format{features.dtype(), features.row_size()};
  const bool plain = features.dtype() == DType::f32;  // rows of f32 are stored without gaps
  const int64_t all = plain ? features.bytes() : features.rows() * format.stride();
  const int64_t budget = where == "device" ? all : feature_budget(free);
  if ((where == "device" || given) && std::min(all, budget) > free) {
    throw UserError(given ? "--feature-budget" : "--features-on",
                    "the features would take " + size_of(std::min(all, budget)) + ", but only " + size_of(free) +
                        " of device memory are free",
                    given ? "give a smaller size" : "use auto or host");
  }
  const bool fits = where == "auto" && !given ? all <= free / 2 : all <= budget;
  if (fits && plain) {
    device_features_ = learner_->leaf("x", features);
    run_.notes.push_back("features (" + size_of(all) + ") are in device memory, where rows are looked up");
  } else {
    choose_tiers(fits ? features.rows() * format.stride() : budget);
  }
}

// Returns the bytes of features that may be page-locked: what the bill leaves on the host, but no
// more than half of the free memory, divided equally among the ranks that share the memory.
int64_t BatchSession::room_to_lock() const {
  const int64_t left = host_bound(run_.config, true).bytes - run_.config.program_bytes - total_bytes(host_memory());
  return std::min(left, available_memory() / 2) / sharing_;
}

void BatchSession::choose_tiers(int64_t budget) {
  const DeviceInfo& gpu = device_->gpu()->info();
  placed_ = std::make_unique<const PlacedFeatures>(
      place_rows({run_, *sampler_, budget, room_to_lock(), gpu_label(gpu.name, gpu.multiprocessors)}));
  const FeatureTiers& tiers = placed_->tiers;
  store_ = make_store(device_->gpu(), *placed_, run_.dataset.features);
  // If there is a disk tier, use_disk() has already added its note.
  if (!tier_) run_.notes.push_back(tiers.text());
  // If the rows in device memory change, a batch may find none of its rows there, so all of its
  // rows are counted.
  for (const Array<NodeId>& vertices : counted_) {
    const auto sent = [&](NodeId v) {
      return store_->caches() || !store_->tiers() || (*store_->tiers())[v] == LoaderFeatures::kWanted;
    };
    most_sent_ = std::max<int64_t>(most_sent_, std::count_if(vertices.begin(), vertices.end(), sent));
  }
}

void BatchSession::prefer_near_rows(const SessionNeeds& needs) {
  if (needs.near_scale > 0) near_ = std::make_unique<NearSampling>(*sampler_, needs.near, needs.near_scale);
  const std::string& asked = run_.config.features.locality;
  const double scale = locality_scale(asked);
  if (scale == 0) return;
  if (!placed_ || !placed_->tiers.mixed()) {
    run_.notes.push_back("--locality " + asked + " changes nothing, because all rows are in the same place");
    return;
  }
  near_ = std::make_unique<NearSampling>(*sampler_, placed_->device_rows.span(), scale);
  run_.notes.emplace_back("samples prefer nodes whose rows are in device memory");
}

const FeatureTiers* BatchSession::tiers() const { return placed_ ? &placed_->tiers : nullptr; }

std::vector<JudgedPlacement> BatchSession::judged_placements() const {
  if (!placed_) return {};
  return judge_methods(run_, *sampler_, placed_->tiers);
}

// Chooses how many batches are prepared ahead if --prefetch is not given. On the host, these are
// the usual number, or as many as fit. On a GPU, they are up to twice the usual number, because
// batches are taken in order and differ in size. They may take half of the free device memory, and
// the rows that are sent may take a quarter of the free host memory.
void BatchSession::choose_prefetch() {
  int& ahead = run_.config.loader.in_flight;
  if (ahead >= 0) return;
  ahead = device_->batches_ahead();
  if (device_->on_host()) {
    const int64_t limit = memory_limit();
    while (ahead > 0 && total_bytes(host_memory()) > limit) --ahead;
    return;
  }
  ahead *= 2;
  const int64_t most = available_bytes() / 2 / std::max<int64_t>(1, batch_bytes()) - 1;
  const int64_t pinned = sent_bytes() > 0 ? available_memory() / 4 / sharing_ / sent_bytes() - 1 : ahead;
  ahead = static_cast<int>(std::clamp<int64_t>(std::min(most, pinned), 1, ahead));
}

// Makes evaluation run on the whole graph if the features lie where the device computes and there
// is room; otherwise it runs layer by layer. With --deterministic it always runs layer by layer,
// because the choice depends on how much memory this machine has.
void BatchSession::choose_evaluation(bool embeddings) {
  const KindTables* kinds = inputs_->kinds();
  const bool all_f32 = kinds != nullptr ? kinds->all_f32() : !is_narrow_float(features().dtype());
  const bool on_device = kinds != nullptr ? kinds->resident() : device_features_ != nullptr;
  const bool whole_rows = device_->on_host() ? all_f32 : on_device;
  if (tier_ || run_.config.deterministic || !whole_rows) return;
  const int64_t room = memory_limit() - total_bytes(memory());
  // This rough check comes before planning. It counts the views of the graph, the values of two
  // layers, and as many bytes again for work and constants.
  if (forms_bytes(run_.dataset.graph) + 2 * inference_->bytes() > room) return;
  auto whole = std::make_unique<WholeInference>(run_, *learner_, *device_, embeddings);
  auto scorer = device_->make_scorer(run_);
  if (whole->bytes() + scorer->device_bytes(true) > room) return;
  whole_ = std::move(whole);
  scorer_ = std::move(scorer);
}

// Returns the bytes that a look-ahead of `window` batches takes on the host: samples, tables of
// planning, the orders of batches and the tables of the samplers that draw ahead.
int64_t BatchSession::cache_bytes(int64_t window) const {
  const int64_t rows = run_.dataset.num_nodes(), batch_rows = largest_.ids / static_cast<int64_t>(sizeof(NodeId));
  const int64_t drawers = draws_on_device() ? 0 : std::min(run_.config.loader.in_flight + 1, num_threads());
  const int64_t ids = sampler_->draws_seeds() ? rows : run_.dataset.splits.train.size();
  return CachedBatches::bytes(rows, placed_->device_rows.size(), window, batch_rows + batch_rows / 4,
                              sample_bytes() + sample_bytes() / 4) +
         drawers * rows * 8 + 2 * ids * static_cast<int64_t>(sizeof(NodeId));
}

// Chooses how many batches a look-ahead draws ahead (its window). They may take a quarter of the
// memory that is left on the host. Their number changes how many rows are read from the host, but
// no result.
void BatchSession::look_ahead() {
  const std::string& asked = run_.config.features.cache;
  if (asked == "static") return;
  if (!placed_ || !placed_->tiers.lookahead) {
    run_.notes.push_back("--cache " + asked + " changes nothing, because all rows are in the same place");
    return;
  }
  const int64_t seats = placed_->device_rows.size();
  const int64_t batch_rows = std::max<int64_t>(1, largest_.ids / static_cast<int64_t>(sizeof(NodeId)));
  const int64_t room =
      (host_bound(run_.config, true).bytes - run_.config.program_bytes - total_bytes(host_memory())) / 4 / sharing_;
  const int64_t each = std::max<int64_t>(1, cache_bytes(1) - cache_bytes(0));
  const int64_t useful = CachedBatches::useful_window(seats, batch_rows);
  const int64_t window = std::clamp<int64_t>((room - cache_bytes(0)) / each, 1, useful);
  CacheOptions options{{placed_->device_rows.begin(), placed_->device_rows.end()}, placed_->classes, window};
  cache_ = std::make_unique<CachedBatches>(*sampler_, batch_order(part_), std::move(options));
  run_.notes.push_back(fmt::format("up to {} drawn ahead, to know which rows are read soonest",
                                   window == 1 ? "1 batch is" : human_count(window) + " batches are"));
}

CacheForecast BatchSession::forecast_cache(int64_t most) const {
  NACRE_CHECK(cache_ != nullptr, "the device caches no rows");
  return nacre::forecast_cache(
      *sampler_, batch_order(part_),
      {{placed_->device_rows.begin(), placed_->device_rows.end()}, placed_->classes, cache_->window()}, most);
}

// Returns the bytes of the features of all kinds as they are stored.
int64_t BatchSession::stored_features() const {
  return inputs_->kinds() != nullptr ? inputs_->kinds()->stored_bytes() : run_.dataset.features.bytes();
}

std::vector<MemoryItem> BatchSession::memory() const { return device_->on_host() ? host_memory() : device_memory(); }

std::vector<MemoryItem> BatchSession::device_memory() const {
  std::vector<MemoryItem> items = {{"parameters", learner_->parameter_bytes()}};
  if (!learner_->trains()) return items;
  const int batches = run_.config.loader.in_flight + 1;
  items.push_back({"optimiser state and gradients", learner_->optimizer_bytes() + learner_->parameter_bytes()});
  if (const int64_t tracks = learner_->tracks(); tracks > 0)
    items.push_back({host_share_ ? fmt::format("weights and gradients of {} tracks", tracks)
                                 : fmt::format("weights of {} tracks", tracks),
                     learner_->track_bytes() + track_gradients()});
  if (device_features_ != nullptr && learned_ == nullptr) items.push_back({"features", run_.dataset.features.bytes()});
  if (const KindTables* kinds = inputs_->kinds(); kinds != nullptr && kinds->resident())
    items.push_back({"features", stored_features()});
  if (placed_ && placed_->tiers.device_rows > 0) items.push_back({"features", placed_->tiers.device_bytes()});
  if (placed_ && placed_->tiers.table_bytes() > 0)
    items.push_back({"tables of where features lie", placed_->tiers.table_bytes()});
  if (draws_on_device()) items.push_back({"graph and tables for drawing samples", drawing_bytes(batches)});
  items.push_back({fmt::format("{} batches (rows and blocks)", batches), batches * batch_bytes()});
  items.push_back({"arena (activations, gradients, work)", largest_arena_ + largest_arena_ / 4});
  if (whole_) items.push_back({"evaluation on the whole graph", whole_->bytes() + scorer_->device_bytes(true)});
  return items;
}

std::vector<MemoryItem> BatchSession::host_memory() const {
  const int64_t tracks = device_->on_host() ? std::max<int64_t>(1, learner_->tracks()) : 1;
  const int64_t batches = run_.config.loader.in_flight + tracks;
  std::vector<MemoryItem> items = {
      {"graph", run_.dataset.graph.bytes()},
      {"features", learned_ != nullptr || tier_ ? 0 : stored_features()},
      {"labels, splits and degrees", run_.label_bytes() + inputs_->bytes()},
      {"parameters", learner_->parameter_bytes()},
  };
  if (tier_) {
    for (MemoryItem& item : tier_->memory(static_cast<int>(batches))) items.push_back(std::move(item));
  }
  if (!whole_) {
    items.push_back({"values of two layers, for evaluation", inference_->bytes()});
    items.push_back({"work on a block, for evaluation", inference_work_});
  } else if (!device_->on_host()) {
    if (scorer_->host_bytes() > 0) items.push_back({"results of an evaluation", scorer_->host_bytes()});
  } else {
    items.push_back({"evaluation on the whole graph", whole_->bytes()});
  }
  if (!learner_->trains()) return items;
  const int64_t group = run_.config.loader.group;
  if (group > 0)
    items.push_back({fmt::format("samples of {} batches", group), group * (sample_bytes() + sample_bytes() / 4)});
  items.push_back(
      {"optimiser state, gradients and best weights", learner_->optimizer_bytes() + 2 * learner_->parameter_bytes()});
  if (learner_->tracks() > 0)
    items.push_back({fmt::format("weights and gradients of {} tracks", learner_->tracks()),
                     learner_->track_bytes() + track_gradients()});
  if (host_share_) items.push_back({"batches of the host (weights, gradients, arena, features)", shared_bytes()});
  if (!device_->on_host()) {
    // Rows of several kinds that the host gathers are copied to page-locked memory, so they exist
    // twice.
    const bool gathers = inputs_->kinds() != nullptr && !inputs_->kinds()->resident();
    items.push_back(
        {fmt::format("{} batches (blocks, rows to send)", batches),
         batches * (largest_.blocks + 2 * largest_.forms + sent_bytes() + (gathers ? 2 * largest_.rows : 0))});
    if (placed_ && placed_->tiers.link)
      items.push_back({"features in page-locked memory", placed_->tiers.pinned_bytes()});
    if (placed_ && placed_->tiers.host_table_bytes() > 0)
      items.push_back({"tables of where features lie", placed_->tiers.host_table_bytes()});
    if (cache_)
      items.push_back(
          {fmt::format("samples of {} and tables to look ahead with", counted(cache_->window(), "batch", "batches")),
           cache_bytes(cache_->window())});
    if (draws_together_) items.push_back({"tables for drawing samples", num_threads() * run_.dataset.num_nodes() * 8});
    if (near_) items.push_back({"nodes that each hop prefers", run_.dataset.num_nodes() * sampler_->layers()});
  } else {
    // The memory for the rows of a batch is an eighth larger than the rows. The arrays of a batch
    // exist twice while they are drawn.
    const int64_t rows = std::min(largest_.rows + largest_.rows / 4, inputs_->all_row_bytes());
    const int64_t arrays = 2 * largest_.blocks + largest_.forms;
    // One buffer more is counted, because a buffer that grows may leave its old memory with the
    // allocator.
    const int64_t buffers = learned_ != nullptr ? 2 * tracks : batches + 1;
    items.push_back({fmt::format("{} batches (features)", batches), buffers * (rows + rows / 8)});
    items.push_back({fmt::format("{} batches (blocks and their forms)", batches), batches * (arrays + arrays / 4)});
    const int64_t drawers = group > 0 ? std::max<int64_t>(batches, num_threads()) : batches;
    items.push_back({"tables for drawing samples", (drawers + 1) * run_.dataset.num_nodes() * 8});
    const int64_t old_arena = std::min(largest_arena_, kKeptByAllocator);
    items.push_back({tracks > 1 ? fmt::format("{} arenas (activations, gradients, work)", tracks)
                                : "arena (activations, gradients, work)",
                     tracks * (largest_arena_ + largest_arena_ / 4 + old_arena)});
  }
  return items;
}

int64_t BatchSession::data_bytes() const {
  return run_.dataset.graph.bytes() + (learned_ != nullptr || tier_ ? 0 : run_.dataset.features.bytes()) +
         run_.label_bytes();
}

int64_t BatchSession::memory_limit() const {
  // The bill includes what the run holds already, so it is compared with all bytes that were free
  // when the device was opened.
  const int64_t limit = device_->memory_limit(run_.config, device_->free_at_start());
  // Ranks that compute in host memory share the data, so only the rest is divided among them.
  const int64_t data = device_->on_host() ? data_bytes() : 0;
  return data + (limit - data) / sharing_;
}

// Returns the bytes of device memory that are free, or an equal part of them for each rank that
// shares the memory.
int64_t BatchSession::available_bytes() const { return device_->backend()->available_bytes() / sharing_; }

HostMemory BatchSession::host() const {
  HostMemory host;
  host.gpu = !device_->on_host();
  host.training = host_memory();
  host.remedy = kFewer;
  if (run_.config.staleness > 0) host.remedy += ", or a smaller --staleness";
  host.evaluating = {{"scores being ranked", ranking_bytes(run_.metric, run_.dataset)}};
  host.held = run_.dataset.graph.bytes() + (tier_ ? 0 : stored_features()) + run_.label_bytes() + inputs_->bytes() +
              learner_->parameter_bytes() + learner_->optimizer_bytes() + learner_->track_bytes() + views_->bytes() +
              (placed_ ? placed_->tiers.host_table_bytes() : 0);
  return host;
}

void BatchSession::check_memory() const {
  if (device_->on_host())
    return require_fit(host_memory(), memory_limit(), kFewer + std::string(", or raise --memory-limit"));
  require_fit(host_memory(), host_bound(run_.config, true).bytes - run_.config.program_bytes, kFewer);
  require_fit(device_memory(), memory_limit(),
              std::string(kFewer) +
                  (learned_ == nullptr && (device_features_ != nullptr || (store_ && store_->rows_on_device() > 0))
                       ? ", a smaller --feature-budget, or --features-on host"
                       : ""));
}

}  // namespace nacre
