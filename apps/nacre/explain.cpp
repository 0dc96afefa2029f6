// Defines nacre explain, which says why the plan of a run is what it is, with the predicted and
// measured time of every kernel.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "account.h"
#include "commands.h"
#include "feature_report.h"
#include "gpu_profile.h"
#include "matters.h"
#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/printable.h"
#include "nacre/base/warnings.h"
#include "nacre/engine/calibrate.h"
#include "nacre/engine/measure.h"
#include "nacre/place/compare.h"
#include "nacre/plan/explain.h"
#include "nacre/plan/operands.h"
#include "nacre/train/gpu_device.h"
#include "options.h"
#include "planned.h"
#include "ranks.h"
#include "ranks_plan.h"
#include "summary.h"

namespace nacre::cli {
namespace {

struct ExplainCommand {
  RunConfig config;
  std::string run;
  int steps = 3;
  double budget = 2;
  std::string profile;  // file that the corrected profile is written to (--save-profile)
  bool json = false;
  bool all = false;
};

// Sets in `c` how the batches of a run were sampled. `batches` is the section of that name in the
// config.json of the run.
void apply_batches(const nlohmann::json& batches, RunConfig& c) {
  SampleOptions& s = c.sampling;
  c.batch_size = batches.value("batch_size", c.batch_size);
  set_sampler(batches.value("sampler", "neighbor"), s);
  s.fanout = batches.value("fanout", s.fanout);
  s.type_fanout = batches.value("type_fanout", s.type_fanout);
  s.replace = batches.value("replace", s.replace);
  s.weighted = batches.value("weighted", s.weighted);
  s.budget = batches.value("budget", s.budget);
  s.walk_length = batches.value("walk_length", s.walk_length);
  s.norm_samples = batches.value("norm_samples", s.norm_samples);
}

// Sets the settings of the command to those of the run in c.run. They include dropout, which
// decides what the DFG looks like.
void apply_run(ExplainCommand& c) {
  const std::string file = c.run + "/config.json";
  const std::string text = read_file(file);
  apply_config_json(text, file, c.config);
  const auto settings = parse_json_or_discard<nlohmann::json>(text);
  const auto model = settings.value("model", nlohmann::json::object());
  try {
    c.config.mode = settings.value("execution", nlohmann::json::object()).value("mode", "full");
    if (c.config.mode == "minibatch") apply_batches(settings.at("batches"), c.config);
    c.config.model.dropout = model.value("dropout", c.config.model.dropout);
    c.config.model.input_dropout = model.value("input_dropout", c.config.model.input_dropout);
    c.config.model.attention_dropout = model.value("attention_dropout", c.config.model.attention_dropout);
  } catch (const nlohmann::json::exception&) {
    throw UserError(file, "is not the config.json of a run");
  }
  c.config.plan = c.run + "/plan.json";
}

std::vector<KernelReport> report_kernels(const Plan& plan, const Blocks& blocks, const DeviceProfile& profile,
                                         const std::vector<double>& measured) {
  std::vector<KernelReport> reports;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const Work work = kernel_work(plan.kernels[k], plan, blocks, profile.cache_bytes);
    reports.push_back({profile.model.predict(work), measured[k], kernel_floor(plan.kernels[k], work, profile)});
  }
  return reports;
}

// Returns the profile that the kernels of this session are compared with.
DeviceProfile profile_of(const RunDevice& device) {
  if (device.on_host()) return machine_profile();
  GpuContext& gpu = gpu_of(device);
  return planning_profile(gpu_profile(*device_plugin(), gpu.device()), gpu.options().precision);
}

// Holds the speed of a measured kernel.
struct KernelRate {
  size_t kernel = 0;
  double seconds = 0;
  // Bytes that the kernel must move at least (Kernel::floor_bytes), per measured second.
  double bytes = 0;
  double flops = 0;  // operations per measured second
};

std::vector<KernelRate> kernel_rates(const Explanation& e) {
  std::vector<KernelRate> rates;
  for (size_t k = 0; k < e.kernels.size(); ++k) {
    const double s = e.kernels[k].measured;
    if (s > 0) rates.push_back({k, s, e.plan.kernels[k].floor_bytes / s, e.plan.kernels[k].flops / s});
  }
  return rates;
}

std::string short_title(const Plan& plan, const Kernel& k) {
  return fmt::format("{} {}", kernel_name(k.kind), type_text(plan.dfg[k.root].type));
}

// Returns a text that lists the kernels by the time that they take beyond their floor, the longest
// first.
std::string rates_text(const Explanation& e, std::vector<KernelRate> rates, const DeviceProfile& profile) {
  const auto lost = [&](const KernelRate& r) { return r.seconds - e.kernels[r.kernel].floor; };
  std::stable_sort(rates.begin(), rates.end(),
                   [&](const KernelRate& a, const KernelRate& b) { return lost(a) > lost(b); });
  std::string text = fmt::format("distance to the floor on {}: {:.4g} GB/s copied, products at {:.4g} TFLOP/s\n",
                                 profile.machine, profile.stream_bytes / 1e9, profile.gemm_flops / 1e12);
  text += fmt::format("  {:>4} {:>9} {:>9} {:>9} {:>9} {:>7} {:>9} {:>7}\n", "", "us", "floor us", "lost us", "GB/s",
                      "of copy", "TFLOP/s", "of most");
  for (const KernelRate& r : rates) {
    text += fmt::format("  [{:>2}] {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>5.1f} % {:>9.3f} {:>5.1f} %  {}\n", r.kernel,
                        r.seconds * 1e6, e.kernels[r.kernel].floor * 1e6, lost(r) * 1e6, r.bytes / 1e9,
                        100 * r.bytes / profile.stream_bytes, r.flops / 1e12, 100 * r.flops / profile.gemm_flops,
                        short_title(e.plan, e.plan.kernels[r.kernel]));
  }
  return text;
}

std::string with_rates(const std::string& json, const std::vector<KernelRate>& rates, const DeviceProfile& profile) {
  if (rates.empty()) return json;
  auto j = parse_json<nlohmann::ordered_json>(json, "explanation");
  j["device"] = {{"name", profile.machine},
                 {"copy_bytes", profile.stream_bytes},
                 {"gemm_flops", profile.gemm_flops},
                 {"l2_bytes", profile.cache_bytes}};
  for (const KernelRate& r : rates) {
    j["kernels"][r.kernel]["gb_s"] = r.bytes / 1e9;
    j["kernels"][r.kernel]["tflop_s"] = r.flops / 1e12;
  }
  return j.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string with_ranks(const std::string& json, const RanksSummary& ranks) {
  auto j = parse_json<nlohmann::ordered_json>(json, "explanation");
  j["several_devices"] = planned_ranks_json(ranks);
  return j.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Returns a report on every table that kernels of the plan run, with the gTasks that it makes. In
// mini-batches, these are the gTasks of the first layer's block.
std::vector<TableReport> report_tables(const Planned& planned) {
  std::vector<TableReport> reports;
  const Plan& plan = planned.plan();
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const PartitionTable& table = plan.kernels[k].table;
    if (table.empty()) continue;
    auto same = std::find_if(reports.begin(), reports.end(), [&](const TableReport& r) { return r.table == table; });
    if (same == reports.end()) {
      const auto tasks = planned.views()->tasks(planned.blocks().layer(0), table);
      same = reports.insert(reports.end(), {table, "", find_patterns(*tasks).patterns});
    }
    same->kernels += (same->kernels.empty() ? "" : " ") + std::to_string(k);
  }
  return reports;
}

// Returns whether the plan contains the candidate's choice.
bool has_chosen(const Explanation& e, const Candidate& c) {
  if (c.group.starts_with("lstm ")) {
    return std::any_of(e.plan.kernels.begin(), e.plan.kernels.end(), [&](const Kernel& k) {
      return is_sequence(k.kind) && c.group == "lstm " + type_text(e.plan.dfg[sequence_weight(k)].type) &&
             k.table.text() == c.what;
    });
  }
  std::map<std::string, int> seen;
  std::istringstream words(c.what);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string op = word.substr(0, equals);
    std::string key = c.group.find('@') != std::string::npos ? c.group : op + "@" + c.group;
    if (++seen[op] > 1) key += "#" + std::to_string(seen[op]);
    std::string taken;
    for (const Site& site : e.sites) {
      if (site.key == key) taken = site.written;
    }
    const auto choice = e.plan.options.choices.find(key);
    if (choice != e.plan.options.choices.end()) taken = choice->second;
    if (taken != word.substr(equals + 1)) return false;
  }
  return true;
}

// Writes the profile to a file, with the rates of each kind of kernel corrected by what was
// measured in this run.
void save_corrected(const std::string& path, DeviceProfile profile, const Explanation& e, const Blocks& blocks) {
  std::vector<Timing> samples;
  for (size_t k = 0; k < e.kernels.size(); ++k) {
    const Kernel& kernel = e.plan.kernels[k];
    if (e.kernels[k].measured > 0 && kernel.kind != KernelKind::exchange)
      samples.push_back({kernel_work(kernel, e.plan, blocks, profile.cache_bytes), e.kernels[k].measured});
  }
  profile.model.correct(samples);
  write_file(path, profile_json(profile) + "\n");
  log_info("profile: " + printable(path));
}

// Refuses options that contradict --run, which takes the settings from the run's folder.
void check(const ExplainCommand& c, const Command& command) {
  if (!c.profile.empty() && c.steps == 0)
    throw UserError("--save-profile", "needs measured kernels, and --steps 0 measures none", "leave one of them out");
  if (!c.profile.empty()) PendingFile::check(c.profile);
  if (c.run.empty()) {
    if (c.config.data.empty()) throw UserError("--data", "is required", "or name a run folder with --run");
    return;
  }
  constexpr const char* kOfTheRun[] = {"--model",         "--layers",
                                       "--hidden",        "--input-dim",
                                       "--heads",         "--out-heads",
                                       "--dropout",       "--aggr",
                                       "--norm",          "--residual",
                                       "--num-bases",     "--relations",
                                       "--activation",    "--normalize-features",
                                       "--set",           "--plan",
                                       "--mode",          "--fanout",
                                       "--sampler",       "--batch-size",
                                       "--replace",       "--budget",
                                       "--recompute",     "--walk-length",
                                       "--norm-samples",  "--sample-weighted",
                                       "--input-dropout", "--attention-dropout",
                                       "--no-plan-cache", "--disable-pass",
                                       "--reorder"};
  for (const char* option : kOfTheRun) {
    if (command.given(option))
      throw UserError(option, "is set by the run that is explained", "leave it out, or leave --run out");
  }
}

Explanation explain(ExplainCommand& c, Planned& planned, const DeviceProfile& profile) {
  VertexModel& session = planned.model();
  Explanation e;
  e.data = printable(session.dataset().name);
  e.model = session.config().model.model;
  e.source = session.planning().source;
  e.search_seconds = session.planning().search.seconds;
  e.written = planned.written();
  e.plan = planned.plan();
  e.work_before = count_dfg_work(e.written, planned.blocks());
  e.work_after = count_dfg_work(e.plan.dfg, planned.blocks());
  e.sites = find_sites(prepare_dfg(e.written, planned.blocks(), e.plan.options), planned.blocks().cover_layers());
  for (const MemoryItem& item : session.memory()) e.memory.emplace_back(item.what, static_cast<double>(item.bytes));
  e.peak = live_at_peak(e.plan, planned.blocks());
  e.narrow = report_narrow(e.plan, planned.blocks());
  e.dropped = session.planning().dropped;
  e.candidates = planned.candidates(profile.model, profile.cache_bytes, c.budget);
  if (e.source != "searched") {
    for (Candidate& candidate : e.candidates) candidate.chosen = has_chosen(e, candidate);
  }
  e.kernels = report_kernels(e.plan, planned.blocks(), profile, planned.measure_kernels(c.steps));
  if (c.steps > 0) e.plan = planned.bound_plan();
  e.tables = report_tables(planned);
  return e;
}

// Returns the methods of feature placement that were compared for this run, and what an epoch would
// load with each; empty if there was nothing to choose.
std::vector<JudgedPlacement> judged_placements(const Planned& planned) {
  return planned.batches() == nullptr ? std::vector<JudgedPlacement>() : planned.batches()->judged_placements();
}

std::string with_placements(const std::string& text, const std::vector<JudgedPlacement>& methods) {
  auto json = nlohmann::ordered_json::parse(text);
  json["placements"] = placements_json(methods);
  return json.dump(2);
}

std::string placements_text(const std::vector<JudgedPlacement>& methods) {
  return methods.empty()
             ? ""
             : "feature rows that an epoch would load, by method of --placement:\n" + compared_text(methods);
}

Summary summarise(const ExplainCommand& c, const Planned& planned, const Explanation& e, const RanksSummary* ranks) {
  const VertexModel& session = planned.model();
  Summary s;
  s.planned = &planned;
  s.plan = &e.plan;
  s.ranks = ranks;
  s.device = device_text(session);
  s.precision = c.config.precision;
  s.memory = session.memory();
  if (!session.device().on_host()) s.host_memory = session.host().training;
  s.source = e.source;
  s.dropped = e.dropped;
  double measured = 0;
  for (size_t k = 0; k < e.kernels.size(); ++k) {
    if (!e.plan.kernels[k].once) measured += std::max(0.0, e.kernels[k].measured);
  }
  s.measured = measured > 0 ? measured : -1;
  return s;
}

void run_explain(ExplainCommand& c, const Command& command) {
  check(c, command);
  if (!c.run.empty()) apply_run(c);
  apply_execution(c.config);
  const Situation situation = situation_of(c.config);
  refuse_idle(command, situation);
  MemoryAccount account(c.config, {});
  Dataset dataset = open_data(c.config);
  refuse_idle(command, with_data(situation, dataset));
  Planned planned(std::move(dataset), c.config, true);
  for (const std::string& note : planned.model().notes()) log_note(note);
  account.present(planned.model().host());
  const DeviceProfile profile = profile_of(planned.device());
  const bool several = planned.several() != nullptr;
  const RanksSummary ranks = several ? summarise_ranks(planned) : RanksSummary();
  const Explanation e = explain(c, planned, profile);
  const std::vector<KernelRate> rates = planned.device().on_host() ? std::vector<KernelRate>{} : kernel_rates(e);
  const std::vector<JudgedPlacement> placements = judged_placements(planned);
  if (!c.profile.empty()) save_corrected(c.profile, profile, e, planned.blocks());
  if (c.json) {
    const std::string json = with_placements(with_rates(explain_json(e), rates, profile), placements);
    fmt::print("{}\n", several ? with_ranks(json, ranks) : json);
    return;
  }
  Summary summary = summarise(c, planned, e, several ? &ranks : nullptr);
  summary.host_bytes = account.planned();
  fmt::print("{}{}{}", summary_text(summary), alternatives_text(e), placements_text(placements));
  if (!c.all) {
    fmt::print("{:<10}nacre explain -v shows every choice, kernel, gTask and alternative\n", "more");
    return;
  }
  fmt::print("\n{}\n{}", explain_text(e, true), rates.empty() ? "" : rates_text(e, rates, profile));
}

}  // namespace

void add_explain(Command app) {
  Command command = app.add_subcommand(
      "explain", "explain why a plan was chosen: predicted and measured times, and the plans that lost");
  const auto c = std::make_shared<ExplainCommand>();
  add_data_options(command, c->config, false);
  add_model_options(command, c->config);
  add_execution_options(command, c->config);
  add_rank_options(command, c->config);
  add_pass_option(command, c->config);
  add_batch_options(command, c->config);
  command.without({"--prefetch", "--no-subtasks", "--no-relax", "--no-stream", "--staleness", "--schedule", "--comm"});
  add_planned_epochs(command, c->config);
  add_talk_options(command);
  command.add_option("--run", c->run, "explain the plan of this run folder");
  command.add_option("--steps", c->steps, "number of training steps measured; 0 = predictions only")
      .show_default()
      .between(0, 1000);
  command
      .add_option("--search-seconds", c->budget,
                  "seconds for timing alternatives if the plan was not searched for in this call")
      .show_default()
      .not_negative();
  command.add_option("--save-profile", c->profile,
                     "write the rates of the device, corrected by the measured kernels, to this JSON file for nacre\n"
                     "simulate");
  command.add_flag("--json", c->json, "print one JSON object instead of text");
  command.callback([c, command] {
    c->all = command.get_option("--verbose").given();
    run_explain(*c, command);
  });
}

}  // namespace nacre::cli
