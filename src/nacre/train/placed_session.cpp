// This file is the part of BatchSession that follows schedules: where samples are drawn, how many
// of them are drawn together, and which batches the host computes beside the device.
#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/names.h"
#include "nacre/base/parallel.h"
#include "nacre/train/batch_schedules.h"
#include "nacre/train/batch_scheduling.h"
#include "nacre/train/batch_session.h"
#include "nacre/train/placed_batches.h"

namespace nacre {
namespace {

// The plan of the host is made on this many batches.
constexpr int kHostTrials = 5;

}  // namespace

// Chooses the places of the batches. Those of a run that is continued, or of a plan file, are kept,
// because values depend on them. If there are none, a second session, which follows no schedule,
// learns what operations cost.
void BatchSession::choose_places() {
  BatchPlaces& places = planning_.plan.places;
  const std::string& name = run_.config.batch_schedule;
  if (!places_batches(name)) {
    places = {};
    return;
  }
  const std::string option = "--schedule " + name;
  if (sampler_->layers() == 0 || !run_.dataset.features.defined())
    throw UserError(option, "needs features that are one table and are not learned", "leave it out");
  if (places.empty()) {
    if (run_.config.deterministic)
      throw UserError(option, "follows times that are measured, so its values differ from machine to machine",
                      "leave out --deterministic, or give --plan a file of nacre plan " + option + " --output FILE");
    BatchSession session(run_.dataset, settings_beside(run_.config), {.evaluation = false});
    places = find_places(session, name, run_.config.staleness);
  }
  run_.notes.push_back("schedule " + name + ": " + places_text(places, device_->name()));
}

// Makes what the host needs to compute batches. The plan of the host comes from rules, so that it
// is the same whenever the run is continued.
void BatchSession::share_with_host(const Dfg& all_rows, const Blocks& whole) {
  if (!planning_.plan.places.host_computes()) return;
  const std::shared_ptr<Backend> host = make_cpu_backend(std::make_shared<GraphViews>());
  const std::vector<Sample> trials = trial_batches(kHostTrials);
  std::vector<TrialBlocks> blocks;
  blocks.reserve(trials.size());
  for (const Sample& sample : trials) blocks.push_back({inputs_->blocks(sample), {}});
  PlanRequest request;
  request.plan = "off";
  request.deterministic = true;
  request.disabled_passes = run_.config.disabled_passes;
  host_share_ = std::make_unique<HostShare>(Parameters(all_rows, whole, run_.config.seed),
                                            plan_batches(dfg_, blocks, host, request).plan, host, *learner_);
  for (const TrialBlocks& trial : blocks)
    host_arena_ = std::max(host_arena_, host_share_->runner().prepare(trial.blocks)->arena_bytes());
}

// Returns the bytes of the host's weights, gradients and arenas, and of the rows that it looks up
// for the batches that it computes, which may be all that are under way.
int64_t BatchSession::shared_bytes() const {
  if (!host_share_) return 0;
  const int64_t tracks = std::max<int64_t>(1, learner_->tracks());
  return host_share_->bytes() + tracks * (host_arena_ + host_arena_ / 4) +
         (run_.config.loader.in_flight + tracks) * largest_.rows;
}

void BatchSession::place_on_host(const BatchParts& parts) {
  if (!host_share_) return;
  host_share_->start();
  auto placed = std::make_unique<PlacedBatches>(parts, std::move(computer_), *host_share_, device_->backend(),
                                                planning_.plan.places);
  placed_batches_ = placed.get();
  computer_ = std::move(placed);
}

void BatchSession::sample_on_device() {
  const std::string& where = run_.config.sample_on;
  const BatchPlaces& places = planning_.plan.places;
  const bool placed = !places.empty();
  if (where == "host" || near_ || (placed && !places.device_draws())) return;
  const int ahead = run_.config.loader.in_flight + 1;
  const auto& nodes = dfg_.nodes();
  const bool scaled = std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
    return node.op == Op::input && node.name.starts_with("edge_scale.");
  });
  const std::function<BatchOrder()> order = [this] { return batch_order(part_); };
  const bool required = where == "device";
  // Without groups, the places say which batches the host draws, and the device skips these. With
  // groups, the device and the host divide the batches of a group while they draw.
  const bool each = placed && places.host_draws() && !places.together;
  DrawRequest request{run_.config.sampling, *sampler_, order, ahead, scaled, drawing_bytes(ahead), required};
  if (each) request.skips = [places](int64_t batch) { return places.draws_on_host(batch); };
  const DrawAnswer drawing = device_->draw_batches(request);
  if (!drawing.make) {
    const bool scheduled = settles(run_.config, "--sample-on");
    if (required)
      throw UserError(scheduled ? "--schedule " + run_.config.batch_schedule : "--sample-on", drawing.why_not,
                      scheduled ? "use salient" : "use auto or host");
    return;
  }
  // Groups are drawn by the device and the host together, unless --sample-on says where, or the
  // host has only one thread.
  const bool in_turn = run_.config.batch_schedule == "in-turn" || places.together;
  draws_together_ = each || (in_turn && where == "auto" && num_threads() > 1);
  sampler_->draw_with(drawing.make, draws_together_);
  reorder_drawing_ = drawing.reorder;
  run_.notes.emplace_back(draws_together_ ? "neighbours are drawn on the device and the host together"
                                          : "neighbours are drawn on the device");
}

// Chooses how many batches a group has. Their samples may take a quarter of the memory that is left
// on the host. Which batches are sampled together does not change the samples, so the results do
// not depend on this number.
void BatchSession::choose_group() {
  const bool together = run_.config.batch_schedule == "in-turn" || planning_.plan.places.together;
  if (!together || sampler_->layers() == 0) return;
  const int64_t bound =
      device_->on_host() ? memory_limit() : host_bound(run_.config, true).bytes - run_.config.program_bytes;
  const int64_t room = (bound - total_bytes(host_memory())) / 4;
  const int64_t fit = room / std::max<int64_t>(1, sample_bytes() + sample_bytes() / 4);
  const int64_t batches = batch_order(part_).num_batches();
  const int64_t most = batches * std::min<int64_t>(kGroupEpochs, std::max(1, run_.config.epochs));
  run_.config.loader.group = std::clamp<int64_t>(fit, 1, std::max<int64_t>(1, most));
  run_.notes.push_back(fmt::format("{} are sampled before the first of them is computed",
                                   counted(run_.config.loader.group, "batch", "batches")));
}

LoaderOptions BatchSession::loading_options() const {
  LoaderOptions loading = run_.config.loader;
  if (stale_) loading.kept = static_cast<int>(learner_->tracks()) - 1;
  const BatchPlaces& places = planning_.plan.places;
  if (draws_together_ && loading.group == 0)
    loading.second = [places](int64_t batch) { return places.draws_on_host(batch); };
  return loading;
}

ScheduleReport BatchSession::schedule_report() const {
  ScheduleReport report;
  report.places = plan().places;
  const LoaderTimes times = loader_times();
  const int64_t usual = times.drawn;
  report.drawn_on_device = draws_on_device() || device_->on_host() ? usual : 0;
  report.drawn_on_host = times.drawn_second + usual - report.drawn_on_device;
  report.computed_on_host = placed_batches_ != nullptr ? placed_batches_->host_batches() : 0;
  report.computed_on_device = step_times_.steps - report.computed_on_host;
  report.host_seconds = placed_batches_ != nullptr ? placed_batches_->host_seconds() : 0;
  report.predicted_epoch = report.places.seconds * static_cast<double>(batches_per_epoch());
  return report;
}

}  // namespace nacre
