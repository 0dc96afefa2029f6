// Defines nacre plan, which shows what a run would do and what it would cost, without doing it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "account.h"
#include "commands.h"
#include "embedded.h"
#include "emit_cuda.h"
#include "feature_report.h"
#include "matters.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/printable.h"
#include "nacre/base/warnings.h"
#include "nacre/device/null_device.h"
#include "nacre/device/precision.h"
#include "nacre/gtask/picture.h"
#include "nacre/plan/explain.h"
#include "nacre/plan/passes.h"
#include "nacre/tier/cached_batches.h"
#include "nacre/train/gpu_device.h"
#include "neighbourhood.h"
#include "operation_report.h"
#include "options.h"
#include "planned.h"
#include "ranks.h"
#include "ranks_plan.h"
#include "summary.h"

namespace nacre::cli {
namespace {

// Name for --device of a GPU that need not exist: the plan is found by rules, kernels are written
// out, and nothing runs.
constexpr const char* kTypical = "cuda:typical";

struct PlanCommand {
  RunConfig config;
  std::string output;
  std::string cuda;  // folder for CUDA sources
  std::string picture;
  std::string table;
  std::string stop_after;  // name of the last pass to run
  PictureOptions square;
  std::string schedule;  // name of the schedule that is shown; empty: none
  bool json = false;
  bool bill = false;
  bool space = false;
};

// Returns the table that a picture shows: the one asked for, or that of the plan's kernels. If no
// kernel runs over gTasks, each destination is a gTask.
PartitionTable table_of_picture(const PlanCommand& c, const Planned& planned, const Plan& plan) {
  if (!c.table.empty()) return PartitionTable::parse(c.table);
  const PartitionTable table = main_table(plan, planned.blocks());
  return table.empty() ? PartitionTable::parse("dst-id=1") : table;
}

// Draws the edges of a square of vertices in the colours of their gTasks.
void draw(const PlanCommand& c, const Planned& planned, const Plan& plan) {
  const PartitionTable table = table_of_picture(c, planned, plan);
  const Dataset& data = planned.model().dataset();
  PictureOptions options = c.square;
  options.title = fmt::format("{} on {}", planned.model().config().model.model, printable(data.name));
  const auto tasks = planned.views()->tasks(data.graph, table);
  if (c.square.first < 0) {
    options.first = 0;
    options.title += fmt::format(", {} nodes around the one with most edges", options.vertices);
    write_file(c.picture, partition_svg(among_neighbours(*tasks, options.vertices), options));
  } else {
    write_file(c.picture, partition_svg(*tasks, options));
  }
  log_info(fmt::format("picture of {}: {}", table.text(), c.picture));
}

// Refuses wrong options before the data are read.
void check(const PlanCommand& c, const Command& command) {
  if (c.picture.empty()) {
    for (const char* option : {"--table", "--nodes", "--first"}) {
      if (command.given(option))
        throw UserError(option, "is a setting of --picture", "add --picture FILE.svg, or leave it out");
    }
  } else if (!c.picture.ends_with(".svg")) {
    throw UserError("--picture", "'" + c.picture + "' does not end in .svg",
                    "pictures are SVG files; write for example --picture graph.svg");
  } else if (c.config.mode == "minibatch") {
    throw UserError("--picture", "shows a partition of the whole graph", "leave --picture or --mode minibatch out");
  }
  if (!c.schedule.empty() && c.config.mode != "minibatch")
    throw UserError("--schedule", "shows the schedule of mini-batches", "add --mode minibatch, or leave it out");
  for (const char* option : {"--schedule", "--space", "--output", "--picture", "--emit-cuda"}) {
    if (c.bill && command.given(option))
      throw UserError(option, "needs the data, which --bill does not read", "leave one of them out");
  }
  for (const char* option : {"--plan", "--reorder", "--disable-pass", "--recompute"}) {
    if (c.bill && command.given(option))
      throw UserError(option, "does not go with --bill, which estimates the memory of plans by rules",
                      "leave one of them out");
  }
  if (c.config.ranks.several()) {
    for (const char* option : {"--picture", "--emit-cuda", "--bill", "--schedule", "--space"}) {
      if (command.given(option)) throw UserError(option, "is for one device", "leave it out, or leave --devices out");
    }
  }
  if (c.space && c.config.plan != "auto" && c.config.plan != "off")
    throw UserError("--space", "shows what a search looks at, but --plan " + c.config.plan + " searches for nothing",
                    "leave one of them out");
  if (!c.table.empty()) PartitionTable::parse(c.table);
  if (!c.stop_after.empty()) {
    for (const char* option : {"--output", "--emit-cuda", "--picture", "--bill", "--schedule", "--json", "--space"}) {
      if (command.given(option))
        throw UserError(option, "needs a whole plan, and --stop-after ends planning early", "leave one of them out");
    }
  }
  if (c.config.device == kTypical) {
    for (const char* option :
         {"--recompute", "--reorder", "--memory-limit", "--no-plan-cache", "--features-on", "--feature-budget",
          "--placement", "--cache", "--locality", "--host-rows", "--sample-on"}) {
      if (command.given(option))
        throw UserError(option, "has no effect with --device cuda:typical, where nothing is run",
                        "leave it out, or use --device cuda");
    }
  }
  for (const std::string& file : {c.output, c.picture}) {
    if (!file.empty()) PendingFile::check(file);
  }
  if (!c.cuda.empty()) check_folder(c.cuda);
}

// Returns the plan that rules find for a GPU.
PlanAnswer plan_for(const DeviceInfo& gpu, const RunConfig& asked, const Planned& planned) {
  const std::shared_ptr<Backend> backend = absent_gpu(gpu, asked, planned.views());
  PlanRequest request;
  request.plan = asked.plan;
  request.deterministic = true;
  request.disabled_passes = asked.disabled_passes;
  const RunConfig& config = planned.model().config();
  request.epochs = static_cast<int>(std::min<int64_t>(config.epochs * planned.model().steps_per_epoch(), 1 << 30));
  if (planned.batches() != nullptr) return plan_batches(planned.written(), {{planned.blocks(), {}}}, backend, request);
  return plan_training(planned.written(), planned.blocks(), backend, request, {});
}

// Adds to `memory` what a run on a GPU takes besides the memory of the plan.
void add_run_memory(VertexModel& model, std::vector<MemoryItem>& memory) {
  const Dataset& data = model.dataset();
  const int64_t weights = model.parameters().bytes();
  memory.insert(memory.begin() + 1, {{"features", data.features.bytes()},
                                     {"labels and loss weights", data.targets.bytes() + data.num_nodes() * 8},
                                     {"parameters and optimiser state", weights + model.optimizer().bytes()}});
}

GpuListing listing_of(const PlanCommand& c, const Planned& planned, const Plan& plan, const DeviceInfo& gpu) {
  ListingOptions options;
  options.gpu = gpu;
  options.precision = parse_precision(c.config.precision);
  options.title = planned.model().config().model.model + " on " + printable(planned.model().dataset().name);
  return list_gpu_kernels(plan, planned.blocks(), planned.views(), options);
}

// Holds what the command shows: the plan and bill of the session, or those of a GPU that is not in
// this machine.
struct Shown {
  Plan plan;
  Summary summary;
  std::string found;
  size_t cuda_files = 0;
  RanksSummary ranks;  // summary of the ranks; empty if there is one device
  SearchSpace space;
  std::optional<ShownSchedule> schedule;
};

Shown make_shown_ranks(const PlanCommand& c, const Planned& planned) {
  const RankedSession& session = *planned.several();
  Shown shown;
  shown.plan = planned.plan();
  shown.found = how_found(session.planning());
  shown.ranks = summarise_ranks(planned);
  Summary& summary = shown.summary;
  summary.planned = &planned;
  summary.device = device_text(session);
  summary.precision = c.config.precision;
  summary.source = session.planning().source;
  summary.dropped = session.planning().dropped;
  for (size_t r = 0; r < shown.ranks.ranks.size(); ++r) {
    const PlannedRank& rank = shown.ranks.ranks[r];
    summary.memory.push_back({fmt::format("rank {} ({})", r, rank.device), rank.figures.device_bytes});
  }
  return shown;
}

Shown make_shown(const PlanCommand& c, Planned& planned) {
  if (planned.several() != nullptr) return make_shown_ranks(c, planned);
  VertexModel& model = planned.model();
  const bool on_host = model.device().on_host();
  const DeviceInfo gpu = on_host ? typical_gpu() : gpu_of(model.device()).device().info();
  const bool typical = c.config.device == kTypical;
  Shown shown;
  const PlanAnswer answer = typical ? plan_for(gpu, c.config, planned) : model.planning();
  shown.plan = typical ? answer.plan : model.plan();
  shown.space = answer.search.space;
  shown.found = typical ? "for " + gpu.name : how_found(model.planning());
  Summary& summary = shown.summary;
  summary.planned = &planned;
  summary.device = typical ? gpu.name : model.device().name();
  summary.precision = c.config.precision;
  summary.source = answer.source;
  summary.dropped = answer.dropped;
  if (!typical) {
    summary.memory = model.memory();
    if (!on_host) summary.host_memory = model.host().training;
    summary.free_bytes = on_host                     ? host_bound(c.config, false).bytes
                         : c.config.memory_limit > 0 ? c.config.memory_limit
                                                     : gpu.free_bytes;
  }
  if (!typical && c.cuda.empty()) return shown;
  GpuListing listing = listing_of(c, planned, shown.plan, gpu);
  shown.cuda_files = listing.files.size();
  if (!c.cuda.empty()) write_listing(listing, c.cuda);
  if (typical) {
    summary.memory = std::move(listing.memory);
    add_run_memory(model, summary.memory);
  }
  return shown;
}

// Returns the configuration that the session is opened with. A GPU that does not exist needs no
// search and no device.
RunConfig session_config(const PlanCommand& c) {
  RunConfig config = c.config;
  if (c.space) config.plan_cache = false;  // a plan that was kept would leave nothing to search for
  // The bill must count the samples of a group if the schedule is in-turn, so the session follows
  // that schedule. It follows no other schedule, because it would then time operations by itself,
  // and on the device of the run only.
  if (c.schedule == "in-turn" && config.device != kTypical) config.batch_schedule = c.schedule;
  if (config.device != kTypical) return config;
  parse_precision(config.precision);
  check_plan(config);
  config.device = "cpu";
  config.precision = "f32";
  config.plan = "off";
  return config;
}

// Returns the situation of the command; `config` is the result of session_config().
Situation plan_situation(const PlanCommand& c, const RunConfig& config) {
  Situation situation = situation_of(config);
  if (c.config.device == kTypical) {
    situation.gpu = true;
    situation.precision = c.config.precision;
  }
  return situation;
}

// Returns the details, for readers who know what a kernel is.
std::string details_text(const Shown& shown, const Planned& planned) {
  const Summary& s = shown.summary;
  std::string text =
      fmt::format("{}\nmemory of a run:\n{}{}{}", plan_text(shown.plan, planned.blocks()), memory_text(s.memory),
                  peak_text(shown.plan, live_at_peak(shown.plan, planned.blocks())), dropped_text(s.dropped));
  if (!s.host_memory.empty()) text += "memory of the host:\n" + memory_text(s.host_memory);
  text += fmt::format("plan {}; ready in {}:", shown.found, human_seconds(planned.model().plan_seconds()));
  for (const PassTime& pass : shown.plan.passes) text += fmt::format(" {} {}", pass.pass, human_seconds(pass.seconds));
  return text + "\n";
}

// Returns the plan file, with what several devices do and where the features of mini-batches lie.
std::string json_text(const Shown& shown, const Planned& planned, bool space = false) {
  const FeatureTiers* tiers = planned.batches() == nullptr ? nullptr : planned.batches()->tiers();
  if (planned.several() == nullptr && tiers == nullptr && !shown.schedule && !space) return plan_json(shown.plan);
  auto json = nlohmann::ordered_json::parse(plan_json(shown.plan));
  if (planned.several() != nullptr) json["several_devices"] = planned_ranks_json(shown.ranks);
  if (tiers != nullptr) json["features"] = planned_features_json(*planned.batches(), shown.summary.forecast);
  if (shown.schedule) json["schedule"] = nlohmann::ordered_json::parse(shown_json(*shown.schedule));
  if (space) json["space"] = nlohmann::ordered_json::parse(space_json(shown.space));
  return json.dump(2);
}

// Returns what the passes know of the device that the shown plan is for.
DeviceTraits traits_of(const PlanCommand& c, const Planned& planned) {
  if (c.config.device == kTypical) return absent_gpu(typical_gpu(), c.config, planned.views())->traits();
  return planned.device().backend()->traits();
}

// Prints the plan as the passes up to --stop-after leave it, with the choices of the whole plan.
void print_stopped(const PlanCommand& c, const Planned& planned, const PlanOptions& options) {
  const DeviceTraits device = traits_of(c, planned);
  const Plan plan = make_plan(without_scores(planned.written()), planned.blocks(), options,
                              {.stop_after = c.stop_after, .validate = true, .device = &device});
  std::string passes;
  for (const PassTime& pass : plan.passes) passes += (passes.empty() ? "" : ", ") + pass.pass;
  fmt::print("passes: {}\n{}", passes, plan_text(plan, planned.blocks()));
}

void run_plan(PlanCommand& c, const Command& command) {
  RunConfig config = session_config(c);
  apply_execution(config);
  check(c, command);
  const Situation situation = plan_situation(c, config);
  refuse_idle(command, situation);
  if (c.bill) return show_estimate(config, c.json);
  MemoryAccount account(config, {});
  Dataset dataset = open_data(config);
  refuse_idle(command, with_data(situation, dataset));
  Planned planned(std::move(dataset), config, true);
  for (const std::string& note : planned.model().notes()) log_note(note);
  Shown shown = make_shown(c, planned);
  if (!c.stop_after.empty()) return print_stopped(c, planned, shown.plan.options);
  shown.summary.plan = &shown.plan;
  const std::unique_ptr<const CacheForecast> forecast = cache_forecast(planned.batches());
  shown.summary.forecast = forecast.get();
  if (planned.several() != nullptr) shown.summary.ranks = &shown.ranks;
  if (!c.schedule.empty()) {
    shown.schedule = schedule_batches(*planned.batches(), c.schedule, c.config.staleness,
                                      c.config.device == kTypical ? kTypical : "");
    shown.plan.places = shown.schedule->places;
  }
  account.reckon(planned.model().host());
  if (c.config.device != kTypical) shown.summary.host_bytes = account.planned();
  if (!c.output.empty())
    write_file(c.output, (shown.schedule ? json_text(shown, planned) : plan_json(shown.plan)) + "\n");
  if (!c.picture.empty()) draw(c, planned, shown.plan);
  if (c.json) {
    fmt::print("{}\n", json_text(shown, planned, c.space));
    return;
  }
  fmt::print("{}", summary_text(shown.summary));
  if (command.given("--verbose")) {
    fmt::print("\n{}", details_text(shown, planned));
  } else {
    fmt::print("{:<10}nacre plan -v shows every kernel and byte, nacre explain why they were chosen\n", "more");
  }
  if (c.space) fmt::print("\n{}", space_text(shown.space));
  if (shown.schedule) fmt::print("\n{}", shown_text(*shown.schedule));
  if (!c.output.empty()) fmt::print("plan file: {}\n", printable(c.output));
  if (!c.picture.empty()) fmt::print("picture: {}\n", printable(c.picture));
  if (!c.cuda.empty())
    fmt::print("CUDA source: {} and kernels.txt in {}\n", counted(static_cast<int64_t>(shown.cuda_files), "file"),
               printable(c.cuda));
}

void add_plan_options(Command command, const std::shared_ptr<PlanCommand>& c) {
  add_data_options(command, c->config, true);
  add_model_options(command, c->config);
  add_execution_options(command, c->config);
  add_rank_options(command, c->config);
  add_pass_option(command, c->config);
  add_batch_options(command, c->config);
  command.without(
      {"--prefetch", "--no-subtasks", "--no-relax", "--no-stream", "--schedule", "--comm", "--comm-timeout"});
  add_planned_epochs(command, c->config);
  add_talk_options(command);
  command.add_option("--output,-o", c->output, "write the plan as JSON, for nacre train --plan FILE");
  command.add_option("--emit-cuda", c->cuda,
                     "write the CUDA source of the plan's kernels into this folder; needs no GPU (see --device " +
                         std::string(kTypical) + ")");
  command.get_option("--device")
      .add_help(";\n" + std::string(kTypical) + ": show what would run on a usual GPU; this machine needs none");
  command.add_option("--picture,--emit-svg", c->picture, "write a picture of the partition as SVG").group("Picture");
  command.add_option("--table", c->table, "picture of this partition table; default: the one the plan uses most")
      .group("Picture");
  command.add_option("--nodes", c->square.vertices, "number of nodes shown, the side of the square")
      .show_default()
      .group("Picture");
  c->square.first = -1;
  command
      .add_option("--first", c->square.first,
                  "first node of the square; default: nodes around the one with most edges are shown")
      .not_negative()
      .group("Picture");
  command
      .add_call(
          "--stop-after", [c](const std::string& name) { c->stop_after = choose_pass(name, "--stop-after"); },
          "print the plan as it is after this pass of the planner, such as group, and nothing else")
      .group("Execution");
  std::vector<Synonym> synonyms = schedule_synonyms();
  synonyms.insert(synonyms.end(), {{"all", "daha"}, {"auto", "daha"}});
  command
      .add_option("--schedule", c->schedule,
                  "show how the operations of mini-batches are spread over the host and the device: " +
                      listed(schedule_choices()))
      .one_of("schedule", schedule_choices(), synonyms)
      .group("Mini-batches");
  command.add_flag("--bill", c->bill,
                   "print only the memory that a run would take, estimated without loading the data");
  command.add_flag("--space", c->space,
                   "also show how many plans there are and, for each reason, how many of them the search left out");
  command.add_flag("--json", c->json, "print the plan file, which is one JSON object, instead of text");
}

}  // namespace

void add_plan(Command app) {
  Command command =
      app.add_subcommand("plan", "show what a run would do: where it runs, how long it takes, what memory it needs");
  const auto c = std::make_shared<PlanCommand>();
  add_plan_options(command, c);
  command.callback([c, command] { run_plan(*c, command); });
}

PlanTexts plan_texts(const std::vector<std::string>& words, const OpenedData& data) {
  const auto c = std::make_shared<PlanCommand>();
  const ParsedWords parsed("plan", words, [&](Command command) {
    add_plan_options(command, c);
    command.without({"--output", "--emit-cuda", "--picture", "--table", "--nodes", "--first", "--stop-after", "--bill",
                     "--space", "--schedule", "--json", "--quiet", "--verbose"});
  });
  const Command command = parsed.command();
  refuse_reading(command);
  RunConfig config = session_config(*c);
  apply_execution(config);
  check(*c, command);
  config.data = data.spec;
  config.load = data.load;
  const Situation situation = plan_situation(*c, config);
  refuse_idle(command, with_data(situation, data.dataset));
  Planned planned(data.dataset, config, true);
  for (const std::string& note : planned.model().notes()) log_note(note);
  Shown shown = make_shown(*c, planned);
  shown.summary.plan = &shown.plan;
  if (planned.several() != nullptr) shown.summary.ranks = &shown.ranks;
  return {summary_text(shown.summary), details_text(shown, planned), json_text(shown, planned)};
}

}  // namespace nacre::cli
