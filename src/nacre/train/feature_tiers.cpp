#include "nacre/train/feature_tiers.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/trace.h"
#include "nacre/engine/calibrate.h"
#include "nacre/tier/cached_batches.h"

namespace nacre {
namespace {

std::string size_of(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

FeatureRates rates_of(const TierRequest& request, int64_t row_bytes) {
  // In a deterministic run, results must not depend on how fast this machine is.
  if (request.run.config.deterministic) return feature_rates(std::nullopt, 0, row_bytes);
  const auto host = load_profile(machine_name(num_threads()), kProfileVersion);
  return feature_rates(load_gpu_profile(request.gpu), host ? host->far_gather_bytes : 0, row_bytes);
}

// Decides how rows of the host reach the device, and notes why.
void choose_way(const TierRequest& request, FeatureTiers& tiers) {
  const std::string& asked = request.run.config.features.host_rows;
  if (tiers.host_rows() == 0) return;
  const int64_t pinned = tiers.locked_rows() * tiers.format.stride();
  const double by_link = tiers.rates.seconds_by_link(tiers.format.stride());
  const double by_copy = tiers.rates.seconds_by_copy(tiers.format.stride());
  const std::string prices = fmt::format(
      "a row takes {} over the link, and {} if threads gather it and it is copied, {}", human_seconds(by_link),
      human_seconds(by_copy), tiers.rates.measured ? "by measured rates" : "by nominal rates");
  if (request.run.on_disk) {
    tiers.why = "the rows stay on disk because of --host-budget";
  } else if (asked != "auto") {
    tiers.link = asked == "link";
    tiers.why = "because of --host-rows " + asked;
  } else if (request.run.config.features_on == "host") {
    tiers.why = "because of --features-on host";
  } else if (pinned > request.pinned) {
    tiers.why =
        fmt::format("the rows take {}, but only {} may be page-locked", size_of(pinned), size_of(request.pinned));
  } else {
    tiers.link = by_link <= by_copy;
    tiers.why = prices;
  }
}

PlacementRequest placement_request(const RunData& run, const Sampler& sampler, const FeatureTiers& tiers) {
  PlacementRequest asked;
  asked.method = run.config.features.placement;
  if (asked.method == "auto") asked.method = placement_methods().front().name;
  asked.num_vertices = tiers.vertices;
  asked.device_rows = {tiers.device_rows};
  asked.costs = tiers.costs();
  asked.accesses.graph = &sampler.graph();
  asked.accesses.sampling = sampler.options();
  asked.accesses.train = run.dataset.splits.train.span();
  asked.accesses.batch_size = run.config.batch_size;
  asked.seed = run.config.seed;
  return asked;
}

// Returns the vertices whose rows the host holds for the device, and writes the position of each of
// them in this list into tables.buf_pos.
Array<NodeId> close_gaps(RowTables& tables) {
  std::vector<NodeId> host, position(tables.buf_pos.begin(), tables.buf_pos.end());
  for (size_t v = 0; v < position.size(); ++v) {
    if (tables.dev_num[static_cast<int64_t>(v)] >= 0) continue;
    position[v] = static_cast<NodeId>(host.size());
    host.push_back(static_cast<NodeId>(v));
  }
  tables.buf_pos = Array<NodeId>(std::move(position));
  return Array<NodeId>(std::move(host));
}

}  // namespace

RowCosts FeatureTiers::costs() const {
  const auto bytes = static_cast<double>(format.stride());
  const double host =
      link || host_rows() == 0 ? rates.seconds_by_link(format.stride()) : rates.seconds_by_copy(format.stride());
  return {.own = bytes / rates.device, .peer = bytes / rates.peer, .host = host};
}

std::string FeatureTiers::text() const {
  const std::string all = fmt::format("features ({}{})", size_of(vertices * format.stride()),
                                      format.type == DType::f32 ? "" : fmt::format(", {}", dtype_name(format.type)));
  if (host_rows() == 0) return all + " are in device memory, where rows are looked up";
  const std::string way = (link ? "page-locked memory of the host, which the device reads over the link ("
                                : "host memory, where threads gather the rows of each batch (") +
                          why + ")";
  if (device_rows == 0) return all + " are in " + way;
  const std::string share =
      fmt::format("{}: {:.1f} % of the rows ({})", all,
                  100 * static_cast<double>(device_rows) / static_cast<double>(vertices), size_of(device_bytes()));
  if (lookahead)
    return fmt::format(
        "{} are in device memory, at first those chosen by {}, then those that batches read soonest; "
        "all rows are in {}",
        share, method, way);
  return fmt::format("{} are in device memory, chosen by {}; the others are in {}", share, method, way);
}

PlacedFeatures place_rows(const TierRequest& request) {
  PlacedFeatures placed;
  FeatureTiers& tiers = placed.tiers;
  const Tensor& features = request.run.dataset.features;
  tiers.format = {features.dtype(), features.row_size()};
  tiers.vertices = features.rows();
  tiers.device_rows = std::clamp<int64_t>(request.budget / tiers.format.stride(), 0, tiers.vertices);
  tiers.lookahead = request.run.config.features.cache == "lookahead" && tiers.mixed();
  tiers.rates = rates_of(request, tiers.format.stride());
  choose_way(request, tiers);
  if (!tiers.mixed()) return placed;
  const TraceSpan span("prepare", "place features");
  const PlacementRequest asked = placement_request(request.run, request.sampler, tiers);
  FeaturePlacement placement = place_features(asked);
  tiers.method = placement.method;
  tiers.placing_seconds = placement.seconds;
  tiers.device_rows = placement.device_rows[0].size();
  // Methods that do not use reads return none, so they are computed here.
  if (placement.reads.empty()) placement.reads = access_probabilities(asked.accesses);
  tiers.expected = expected_reads(placement, placement.reads)[0];
  tiers.lookahead = tiers.lookahead && tiers.mixed();
  if (!tiers.mixed()) return placed;  // some methods give the device no rows
  placed.device_rows = placement.device_rows[0];
  if (tiers.lookahead) {
    placed.classes = cache_classes(placement.reads, placed.device_rows.span());
    return placed;
  }
  placed.tables = row_tables(placement, 0);
  placed.host_rows = close_gaps(placed.tables);
  return placed;
}

std::vector<JudgedPlacement> judge_methods(const RunData& run, const Sampler& sampler, const FeatureTiers& tiers) {
  if (!tiers.mixed()) return {};
  PlacementRequest request = placement_request(run, sampler, tiers);
  const std::vector<float> reads = access_probabilities(request.accesses);
  request.reads = reads;
  return compare_placements(request, reads, placement_method_names());
}

std::shared_ptr<FeatureStore> make_store(const std::shared_ptr<Device>& device, const PlacedFeatures& placed,
                                         const Tensor& features) {
  const FeatureTiers& tiers = placed.tiers;
  if (!tiers.mixed())
    return std::make_shared<FeatureStore>(device, tiers.format, features, tiers.device_rows == tiers.vertices);
  if (tiers.lookahead) return std::make_shared<FeatureStore>(device, tiers.format, features, placed.device_rows.span());
  const FeatureStore::Tables tables{0, placed.tables.dev_num.span(), placed.tables.buf_pos.span(),
                                    placed.device_rows.span()};
  return std::make_shared<FeatureStore>(device, tiers.format, features, tables);
}

}  // namespace nacre
