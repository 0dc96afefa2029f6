#include "nacre/train/feature_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/place/placement.h"
#include "nacre/tensor/feature_types.h"
#include "nacre/tensor/narrow_floats.h"
#include "nacre/train/near_sampling.h"
#include "nacre/train/room.h"

namespace nacre {
namespace {

constexpr int64_t kChunk = 1 << 18;

// Returns the values of a table of 16-bit floats as f32.
Tensor widened(const Tensor& table) {
  Tensor values(DType::f32, table.shape());
  const auto* from = static_cast<const uint16_t*>(table.raw());
  parallel_for(table.size(), kChunk,
               [&](int64_t b, int64_t e) { widen(table.dtype(), from + b, values.data<float>() + b, e - b); });
  return values;
}

}  // namespace

DType feature_type(const std::string& name) { return parse_feature_type("--feature-type", name); }

namespace {

// Throws UserError if --locality contradicts another option. With --locality, samples depend on
// which rows are near, so where rows lie must not depend on how much memory is free.
void check_locality(const RunConfig& config) {
  const FeatureOptions& f = config.features;
  const double scale = locality_scale(f.locality);
  if (scale == 0) return;
  const SampleOptions& s = config.sampling;
  if (f.budget.empty())
    throw UserError("--locality", "needs --feature-budget, which decides which rows are near",
                    "add for example --feature-budget 2G");
  if (sampler_info(s.sampler).draws_subgraph)
    throw UserError("--locality", "is for the samplers neighbor and layer; GraphSAINT draws a whole subgraph",
                    "leave it out");
  if (!s.fanout.empty() && std::all_of(s.fanout.begin(), s.fanout.end(), [](int k) { return k < 0; }))
    throw UserError("--locality", "has no effect if all neighbours are taken", "leave it out, or give a --fanout");
  if (scale < 0 && config.deterministic)
    throw UserError("--locality", "auto follows measured times, which --deterministic must not depend on",
                    "give a number, for example 4");
  if (config.sample_on == "device")
    throw UserError("--locality", "is for neighbours that are drawn on the host", "leave --sample-on device out");
}

// Throws UserError if an option does not work together with --host-budget. Rows that stay on disk
// are gathered on the host for each batch, and nothing decides yet which of them a GPU keeps, and
// which the host keeps for it. The options are refused even if the features would fit in the
// budget, so that the answer does not depend on the data.
void check_host_budget(const RunConfig& config) {
  if (config.host_budget <= 0) return;
  const FeatureOptions& f = config.features;
  if (feature_type(f.type) != DType::f32)
    throw UserError("--host-budget",
                    "cannot be given together with --feature-type " + f.type + ", because rows on disk are f32",
                    "leave one of the two out");
  if (config.shuffle == "adaptive")
    throw UserError("--shuffle adaptive",
                    "does not work together with --host-budget, because then the rows of later epochs are read before "
                    "the accuracy is known",
                    "use --shuffle always or never, or leave --host-budget out");
  for (const auto& [option, given] : {std::pair{"--feature-budget", !f.budget.empty()},
                                      {"--placement", f.placement != "auto"},
                                      {"--locality", locality_scale(f.locality) != 0},
                                      {"--cache", f.cache != "static"},
                                      {"--host-rows", f.host_rows != "auto"}}) {
    if (!given) continue;
    throw UserError(option, "does not work together with --host-budget yet, which lets rows stay on disk",
                    "leave one of the two out");
  }
}

// Throws UserError if --cache is unknown or contradicts another option. A look-ahead changes the
// rows in device memory after each batch, and draws samples long before their batches.
void check_cache(const RunConfig& config) {
  const std::string& cache = config.features.cache;
  if (cache == "static") return;
  if (cache != "lookahead") throw UserError("--cache", "unknown way '" + cache + "'", "choose static or lookahead");
  if (config.features_on != "auto")
    throw UserError("--cache", "has no effect with --features-on " + config.features_on, "leave one of them out");
  if (locality_scale(config.features.locality) != 0)
    throw UserError("--cache",
                    "lookahead does not work together with --locality, for which the same rows stay in device memory",
                    "leave one of the two out");
  const std::string& schedule = config.batch_schedule;
  if (schedule == "in-turn" || schedule == "daha" || schedule == "bytegnn")
    throw UserError("--cache",
                    "lookahead draws samples ahead by itself, and --schedule " + schedule + " says who draws them when",
                    "leave one of the two out");
}

}  // namespace

void check_feature_options(const RunConfig& config) {
  check_host_budget(config);
  check_locality(config);
  check_cache(config);
  const FeatureOptions& f = config.features;
  const bool narrow = feature_type(f.type) != DType::f32;
  if (f.placement != "auto") placement_method(f.placement);
  if (f.host_rows != "auto" && f.host_rows != "link" && f.host_rows != "copy")
    throw UserError("--host-rows", "unknown way '" + f.host_rows + "'", "choose auto, link or copy");
  if (!f.budget.empty() && config.features_on != "auto")
    throw UserError("--feature-budget", "cannot be given together with --features-on " + config.features_on,
                    "give one of the two");
  if (f.placement != "auto" && config.features_on != "auto")
    throw UserError("--placement", "has no effect with --features-on " + config.features_on, "leave one of them out");
  if (f.host_rows != "auto" && config.features_on == "device")
    throw UserError("--host-rows", "has no effect with --features-on device", "leave one of them out");
  const size_t devices = std::max<size_t>(1, config.ranks.devices.size());
  if (f.budget.size() > 1 && f.budget.size() != devices)
    throw UserError("--feature-budget", fmt::format("has {} numbers for {} devices", f.budget.size(), devices),
                    "give one number, or one for each device");
  if (config.load.features_file != "learned") return;
  const bool budget = !f.budget.empty();
  const bool cached = f.cache != "static";
  if (!narrow && !budget && f.placement == "auto" && !cached && f.host_rows == "auto") return;
  throw UserError(narrow                  ? "--feature-type"
                  : budget                ? "--feature-budget"
                  : f.placement != "auto" ? "--placement"
                  : cached                ? "--cache"
                                          : "--host-rows",
                  "learned features are weights, which are always f32 and in device memory", "leave it out");
}

namespace {

// Returns the table `given` in the type that config.features.type names. If `keep_f32`, the result
// stays f32, but has the values of that type. The first row of the table belongs to the node
// `first`, by which a message names the node of a value that the type cannot hold.
Tensor stored_as(const RunConfig& config, const Tensor& given, int64_t first, bool keep_f32) {
  const DType type = feature_type(config.features.type);
  require_room(config, given.size() * 2, "features stored as " + config.features.type);
  Tensor stored(type, given.shape());
  const int64_t bad = narrow(type, given.data<float>(), static_cast<uint16_t*>(stored.raw()), given.size());
  if (bad >= 0) {
    throw UserError("--feature-type",
                    fmt::format("feature {} of node {} is {}, which {} cannot hold", bad % given.row_size(),
                                first + bad / given.row_size(), given.data<float>()[bad], config.features.type),
                    type == DType::f16 ? "use bf16 or f32" : "use f32");
  }
  return keep_f32 ? widened(stored) : stored;
}

}  // namespace

void check_kind_options(const RunConfig& config) {
  const FeatureOptions& f = config.features;
  for (const auto& [option, given] : {std::pair{"--host-budget", config.host_budget > 0},
                                      {"--feature-budget", !f.budget.empty()},
                                      {"--placement", f.placement != "auto"},
                                      {"--locality", locality_scale(f.locality) != 0},
                                      {"--cache", f.cache != "static"},
                                      {"--host-rows", f.host_rows != "auto"}}) {
    if (!given) continue;
    throw UserError(option,
                    "works for one table of features, but the data have several kinds of nodes with tables of "
                    "their own",
                    "leave it out; --features-on says where all of them lie");
  }
  if (config.features_on == "device" && feature_type(f.type) != DType::f32)
    throw UserError("--features-on",
                    "features of several kinds of nodes that are stored as " + f.type + " are gathered on the host",
                    "leave out --features-on device or --feature-type");
}

void refuse_learned_on_host() {
  throw UserError("--features-on", "learned features are weights, which are always in device memory", "leave it out");
}

void store_features(const RunConfig& config, Dataset& dataset, bool keep_f32) {
  const DType type = feature_type(config.features.type);
  if (type == DType::f32) return;
  // A table that has the type already comes from another session and is not changed.
  if (dataset.features.defined() && dataset.features.dtype() != type)
    dataset.features = stored_as(config, dataset.features, 0, keep_f32);
  for (size_t k = 0; k < dataset.type_features.size(); ++k) {
    Tensor& table = dataset.type_features[k];
    if (table.defined() && table.dtype() != type) table = stored_as(config, table, dataset.node_offsets[k], keep_f32);
  }
}

}  // namespace nacre
