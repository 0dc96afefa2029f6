#include "matters.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/data/native.h"
#include "nacre/data/npz.h"
#include "nacre/train/batch_schedules.h"
#include "nacre/train/device.h"
#include "nacre/train/planner.h"
#include "nacre/train/rank_devices.h"
#include "nacre/train/recommend_batches.h"

namespace nacre::cli {
namespace {

using S = Situation;

bool any_model(const S& s, bool (*has)(const ModelInfo&)) {
  return std::any_of(s.models.begin(), s.models.end(), [&](const std::string& name) { return has(model_info(name)); });
}

bool attends(const ModelInfo& m) { return m.heads > 0; }
bool has_types(const ModelInfo& m) { return m.needs_types; }
bool chooses_aggregator(const ModelInfo& m) { return !m.aggregators.empty(); }
bool activates(const ModelInfo& m) { return m.activation != "none"; }

// Returns whether --hidden is the width of anything in the models. A model of one layer computes
// the classes at once, so it often has no hidden width. The rule that calls this function does not
// apply to nodes without features, whose learned rows are as wide as --hidden.
bool uses_hidden(const S& s) {
  constexpr int64_t kSome = 16;
  if (s.config->model.layers > 1) return true;
  const auto text_with = [&](const std::string& model, int64_t hidden) {
    ModelOptions options = s.config->model;
    options.model = model;
    options.hidden = hidden;
    options.in_dim = kSome * 4;
    options.out_dim = 2;
    options.num_edge_types = 2;
    return print_dfg(build_model(complete_options(options)));
  };
  const auto uses = [&](const std::string& model) { return text_with(model, kSome) != text_with(model, 2 * kSome); };
  try {
    return std::any_of(s.models.begin(), s.models.end(), uses);
  } catch (const UserError&) {
    return true;  // building the model will report what is wrong
  }
}

bool in_batches(const S& s) { return s.config->mode == "minibatch"; }
bool several(const S& s) { return s.config->ranks.several() || s.processes; }
bool saint(const S& s) { return sampler_info(s.config->sampling.sampler).draws_subgraph; }
bool searched(const S& s) { return s.config->plan == "auto" && !s.config->deterministic; }
bool plan_is(const S& s, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return s.config->plan == name; });
}
// Returns whether a device of the run may store values as bf16.
bool may_store_bf16(const S& s) {
  return s.gpu && (s.precision.find("bf16") != std::string::npos || s.precision == kAutomaticPrecision);
}
bool by_search_or_rules(const S& s) { return plan_is(s, {"auto", "off"}); }
bool leaves_out(const S& s, std::initializer_list<const char*> passes) {
  return std::any_of(passes.begin(), passes.end(),
                     [&](const char* pass) { return s.config->disabled_passes.contains(pass); });
}
bool schedule_is(const S& s, const char* name) { return s.config->schedule.name == name; }

constexpr const char* kSettled = "is settled by --schedule";
constexpr const char* kOne = "leave one of the two out";

struct Rule {
  std::vector<const char*> options;
  bool (*idle)(const S&);
  const char* why;
  const char* remedy;
};

using Rules = std::vector<Rule>;

// Returns the rules on options of data and models. A rule that depends on the kind of the data does
// not apply while the kind is unknown.
Rules rules_of_data_and_model() {
  return {
      {{"--data-seed"},
       [](const S& s) { return !s.config->data.starts_with("twin:"); },
       "is the seed of generated twins, but the data are read from files",
       "leave it out"},
      {{"--format"},
       [](const S& s) { return s.reads_format && s.config->data.starts_with("twin:"); },
       "is for files, but the data are a generated twin",
       "leave it out"},
      {{"--split-seed"},
       [](const S& s) { return s.config->load.split.empty(); },
       "is the seed of --split, but no split is drawn",
       "add --split random:0.6/0.2/0.2, or leave it out"},
      {{"--heads", "--out-heads", "--attention-dropout"},
       [](const S& s) { return !any_model(s, attends); },
       "is for models with attention",
       "use --model gat or gatv2, or leave it out"},
      {{"--num-bases", "--relations"},
       [](const S& s) { return !any_model(s, has_types); },
       "is for models with edge types",
       "use --model rgcn, or leave it out"},
      {{"--relations"},
       [](const S& s) { return s.typed; },
       "is for graphs without edge types, but this graph has its own",
       "leave it out"},
      {{"--aggr", "--aggregator"},
       [](const S& s) { return !any_model(s, chooses_aggregator); },
       "is for models with a choice of aggregator",
       "use --model sage, or leave it out"},
      {{"--hidden"},
       [](const S& s) { return s.features && s.data == DataKind::nodes && !uses_hidden(s); },
       "has no effect on a model whose only layer leads from the features to the classes",
       "leave it out, or add --layers 2"},
      {{"--activation", "--norm", "--residual"},
       [](const S& s) { return !any_model(s, activates); },
       "has no effect on this model, whose layers only propagate",
       "leave it out, or use --model ngcf"},
  };
}

Rules rules_of_training() {
  return {
      {{"--momentum"},
       [](const S& s) { return s.config->optimizer.name != "sgd"; },
       "is a setting of sgd",
       "add --optimizer sgd, or leave it out"},
      {{"--beta1", "--beta2", "--eps"},
       [](const S& s) { return s.config->optimizer.name == "sgd"; },
       "is a setting of adam and adamw",
       "choose one of these, or leave it out"},
      {{"--lr-step"},
       [](const S& s) { return !schedule_is(s, "step"); },
       "is a setting of the step schedule",
       "add --lr-schedule step, or leave it out"},
      {{"--lr-gamma"},
       [](const S& s) { return !schedule_is(s, "step") && !schedule_is(s, "plateau"); },
       "is a setting of the step and plateau schedules",
       "add --lr-schedule step, or leave it out"},
      {{"--lr-patience"},
       [](const S& s) { return !schedule_is(s, "plateau"); },
       "is a setting of the plateau schedule",
       "add --lr-schedule plateau, or leave it out"},
      {{"--init-partial"},
       [](const S& s) { return s.config->init.empty(); },
       "is a setting of --init, which was not given",
       "add --init RUN, or leave it out"},
      {{"--split", "--split-seed"},
       [](const S& s) { return s.data == DataKind::pairs; },
       "draws training, validation and test nodes, but data of users and items have test pairs of their own",
       "leave it out"},
      {{"--label-smoothing", "--class-weights", "--seeds", "--init", "--init-partial"},
       [](const S& s) { return s.data == DataKind::pairs; },
       "is for models that classify nodes, but the data are users and items",
       "leave it out"},
      {{"--lr-final"},
       [](const S& s) { return !schedule_is(s, "cosine") && !schedule_is(s, "linear") && !schedule_is(s, "plateau"); },
       "is a setting of the cosine, linear and plateau schedules",
       "add --lr-schedule cosine, or leave it out"},
      {{"--patience"},
       [](const S& s) { return !s.validated; },
       "needs validation nodes, but the data have none",
       "leave it out, or choose them with --split or --splits"},
  };
}

Rules rules_of_batches() {
  return {
      {{"--batch-size", "--prefetch",     "--fanout",      "--sampler",      "--replace",        "--sample-weighted",
        "--budget",     "--norm-samples", "--walk-length", "--features-on",  "--feature-budget", "--placement",
        "--cache",      "--locality",     "--host-rows",   "--feature-type", "--sample-on",      "--host-budget",
        "--pack",       "--pack-folder",  "--no-subtasks", "--no-relax",     "--no-stream",      "--shuffle",
        "--staleness",  "--schedule"},
       [](const S& s) { return s.data == DataKind::nodes && !in_batches(s); },
       "is for mini-batches, but this run trains on the whole graph",
       "add --mode minibatch, or leave it out"},
      // Without mini-batches, neither models of nodes nor recommenders use these options. They are
      // therefore refused even if the kind of the data is still unknown.
      {{"--fanout",      "--sampler",      "--replace",        "--sample-weighted", "--budget",    "--norm-samples",
        "--walk-length", "--features-on",  "--feature-budget", "--placement",       "--cache",     "--locality",
        "--host-rows",   "--feature-type", "--sample-on",      "--host-budget",     "--pack",      "--pack-folder",
        "--no-subtasks", "--no-relax",     "--no-stream",      "--shuffle",         "--staleness", "--schedule"},
       [](const S& s) { return s.data == DataKind::unknown && !in_batches(s); },
       "is for mini-batches of models that classify nodes; recommenders use all neighbours",
       "leave it out, or add --mode minibatch if the data are not users and items"},
      {{"--fanout",      "--sampler",      "--replace",        "--sample-weighted", "--budget",    "--norm-samples",
        "--walk-length", "--features-on",  "--feature-budget", "--placement",       "--cache",     "--locality",
        "--host-rows",   "--feature-type", "--sample-on",      "--host-budget",     "--pack",      "--pack-folder",
        "--no-subtasks", "--no-relax",     "--no-stream",      "--shuffle",         "--staleness", "--schedule"},
       [](const S& s) { return s.data == DataKind::pairs; },
       "is for models that sample neighbours, but recommenders use all neighbours",
       "leave it out"},
      {{"--mode"},
       [](const S& s) { return s.data == DataKind::pairs; },
       "is for models that classify nodes; recommenders always train on batches of user-item pairs",
       "leave it out; --batch-size sets the size of a batch"},
      {{"--fanout", "--replace", "--sample-weighted"},
       [](const S& s) { return in_batches(s) && saint(s); },
       "is for the samplers neighbor and layer; GraphSAINT draws a whole subgraph",
       "use --budget, or leave it out"},
      {{"--shuffle"},
       [](const S& s) { return in_batches(s) && saint(s); },
       "says how batches are made of the training nodes, but GraphSAINT draws the nodes of its subgraphs itself",
       "leave it out"},
      {{"--staleness"},
       [](const S& s) { return in_batches(s) && several(s); },
       "is for one device, but several devices add up the gradients of each step",
       "leave it out"},
      {{"--schedule"},
       [](const S& s) { return in_batches(s) && several(s); },
       "is for one device, but the run has several",
       "leave it out"},
      {{"--sample-on"}, [](const S& s) { return in_batches(s) && settles(*s.config, "--sample-on"); }, kSettled, kOne},
      {{"--features-on", "--feature-budget", "--placement", "--cache"},
       [](const S& s) { return in_batches(s) && settles(*s.config, "--features-on"); },
       kSettled,
       kOne},
      {{"--host-rows"}, [](const S& s) { return in_batches(s) && settles(*s.config, "--host-rows"); }, kSettled, kOne},
      {{"--prefetch"}, [](const S& s) { return in_batches(s) && settles(*s.config, "--prefetch"); }, kSettled, kOne},
      {{"--budget", "--norm-samples"},
       [](const S& s) { return in_batches(s) && !saint(s); },
       "is for the GraphSAINT samplers",
       "add --sampler saint-vertex, or leave it out"},
      {{"--walk-length"},
       [](const S& s) { return in_batches(s) && s.config->sampling.sampler != "saint-walk"; },
       "is a setting of the sampler saint-walk",
       "add --sampler saint-walk, or leave it out"},
      {{"--pack", "--pack-folder"},
       [](const S& s) { return in_batches(s) && s.config->host_budget == 0; },
       "is for features that stay on disk because of --host-budget",
       "add --host-budget, or leave it out"},
      {{"--pack-folder"},
       [](const S& s) { return in_batches(s) && s.config->pack == "off"; },
       "is the folder of packed rows, but --pack off packs none",
       "leave it out"},
      {{"--host-budget"},
       [](const S& s) { return in_batches(s) && s.config->load.features_file == "learned"; },
       "limits the memory of features that are read, but learned features are weights",
       "leave it out"},
      {{"--features-on", "--feature-budget", "--placement", "--cache", "--locality", "--host-rows", "--sample-on"},
       [](const S& s) { return in_batches(s) && !s.gpu; },
       "is for a GPU, but the run is on the CPU",
       "add --device cuda, or leave it out"},
  };
}

Rules rules_of_other_parts() {
  return {
      {{"--embedding-decay", "--embedding-init", "--positives"},
       [](const S& s) { return s.data == DataKind::nodes; },
       "is for recommenders, but the data are not users and items",
       "leave it out"},
      {{"--no-plan-cache"},
       [](const S& s) { return !searched(s); },
       "has no effect if no plan is searched for",
       "leave it out, or use --plan auto without --deterministic"},
      {{"--recompute"},
       [](const S& s) { return s.config->plan != "auto" && s.config->plan != "off"; },
       "has no effect, because the given plan decides it",
       "leave it out, or use --plan auto"},
      {{"--reorder"},
       [](const S& s) { return in_batches(s) || several(s) || s.data == DataKind::pairs; },
       "is for models of nodes that train on the whole graph, on one device",
       "leave it out, or renumber the nodes of the file with nacre data convert --reorder"},
      {{"--reorder"},
       [](const S& s) { return s.models == std::vector<std::string>{"mlp"}; },
       "has no effect on mlp, which does not read the graph",
       "leave it out"},
      {{"--reorder", "--disable-pass"},
       [](const S& s) { return !is_plan_name(s.config->plan); },
       "is settled by the plan file",
       "leave it out, or use --plan auto"},
      {{"--disable-pass"},
       [](const S& s) {
         return leaves_out(s, {"swap_indexing", "fold_expand"}) && plan_is(s, {"vertex", "edge", "tensor"});
       },
       "swap_indexing and fold_expand do not run in plans that take the model as written",
       "leave it out, or use --plan auto"},
      {{"--disable-pass"},
       [](const S& s) {
         return leaves_out(s, {"inline_edges", "sink_summed_rows", "sink_tails"}) && plan_is(s, {"tensor"});
       },
       "inline_edges, sink_summed_rows and sink_tails do not run in the plan tensor, which fuses nothing",
       "leave it out, or use --plan auto"},
      {{"--disable-pass"},
       [](const S& s) { return leaves_out(s, {"join_products"}) && !by_search_or_rules(s); },
       "join_products runs in searched plans and plans by rules only",
       "leave it out, or use --plan auto or off"},
      {{"--disable-pass"},
       [](const S& s) {
         return leaves_out(s, {"factor_sums", "delay_row_factors"}) && (!s.gpu || !by_search_or_rules(s));
       },
       "factor_sums and delay_row_factors run on GPUs only, in searched plans and plans by rules",
       "leave it out, or use --device cuda with --plan auto or off"},
      {{"--disable-pass"},
       [](const S& s) { return leaves_out(s, {"choose_variants"}) && !s.gpu; },
       "choose_variants runs on GPUs only",
       "leave it out, or use --device cuda"},
      {{"--disable-pass"},
       [](const S& s) { return leaves_out(s, {"store_as_bf16"}) && !may_store_bf16(s); },
       "store_as_bf16 runs on GPUs with --precision bf16 only",
       "leave it out, or add --device cuda --precision bf16"},
      {{"--disable-pass"},
       [](const S& s) { return leaves_out(s, {"choose_early_rows"}) && !(several(s) && !in_batches(s)); },
       "choose_early_rows runs on several devices only, on the whole graph",
       "leave it out, or add --devices"},
      // This rule and the next ones need takes_devices, because other commands have options of
      // these names with other meanings.
      {{"--shares", "--partition", "--halo-rows", "--comm-timeout", "--no-overlap"},
       [](const S& s) { return s.takes_devices && !several(s); },
       "is for several devices, but the run has one",
       "add --devices, or leave it out"},
      {{"--partition", "--halo-rows", "--no-overlap"},
       [](const S& s) { return s.takes_devices && in_batches(s); },
       "is for devices that share the nodes of the graph, but mini-batches share out batches",
       "leave it out, or leave out --mode minibatch"},
      {{"--comm"},
       [](const S& s) { return s.takes_devices && !s.launched; },
       "is for processes that mpirun or srun has started",
       "leave it out; in one process, GPUs read each other's memory where they can"},
      {{"--device", "--threads"},
       [](const S& s) { return s.config->ranks.several() && !s.processes; },
       "is for one device, but --devices names several",
       "leave it out; --devices cpu:4,cpu:4 gives each device four threads"},
      {{"--no-plan-cache"},
       [](const S& s) { return several(s); },
       "has no effect, because plans for several devices are made by rules",
       "leave it out"},
      {{"--checkpoint-every", "--keep"},
       [](const S& s) { return !s.keeps_run; },
       "is for checkpoints, but --no-checkpoint writes none",
       "leave one of them out"},
      {{"--log"},
       [](const S& s) { return !s.keeps_run; },
       "writes files into the run folder, but --no-checkpoint writes none",
       "leave one of them out"},
  };
}

const Rules& rules() {
  static const Rules all = [] {
    Rules joined;
    for (const auto part : {rules_of_data_and_model, rules_of_training, rules_of_batches, rules_of_other_parts}) {
      for (Rule& rule : part()) joined.push_back(std::move(rule));
    }
    return joined;
  }();
  return all;
}

}  // namespace

static bool any_gpu(const std::vector<RankDevice>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [](const RankDevice& rank) { return rank.device != "cpu"; });
}

Situation situation_of(const RunConfig& config) {
  Situation s;
  s.config = &config;
  s.models = {config.model.model};
  s.precision = config.precision;
  s.gpu = config.ranks.several() ? any_gpu(rank_devices(config)) : choose_device(config.device, config.precision).gpu;
  s.data = glance_at(config);
  return s;
}

DataKind glance_at(const RunConfig& config) {
  if (config.data.starts_with("twin:")) return DataKind::nodes;
  std::error_code error;
  if (!std::filesystem::is_regular_file(config.data, error)) return DataKind::unknown;
  // A file that is a single list of edges has no test pairs, so it is not for recommenders.
  std::string name = config.data;
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  const auto ends = [&](const char* ending) { return name.ends_with(ending); };
  if (ends(".txt") || ends(".csv") || ends(".tsv") || ends(".mtx")) return DataKind::nodes;
  // Only data of users and items have test pairs of their own, so a file without them holds nodes.
  // Errors in the file are reported when it is read.
  try {
    if (config.data.ends_with(".npz")) {
      const NpzFile npz(MappedFile::open(config.data));
      const auto held_out = [](const std::string& key) {
        return (key.starts_with("test_") || key.starts_with("val_")) && !key.ends_with("_idx") &&
               !key.ends_with("_mask");
      };
      const std::vector<std::string> keys = npz.keys();
      if (std::none_of(keys.begin(), keys.end(), held_out)) return DataKind::nodes;
    } else if (config.data.ends_with(".nacre")) {
      const NativeContents contents = native_contents(MappedFile::open(config.data));
      const auto held_out = [](const NativeSection& section) {
        return section.name == "val_src" || section.name == "test_src";
      };
      if (std::none_of(contents.sections.begin(), contents.sections.end(), held_out)) return DataKind::nodes;
    }
  } catch (const std::exception&) {
    return DataKind::unknown;
  }
  return DataKind::unknown;
}

Situation with_data(Situation situation, const Dataset& dataset) {
  situation.data = is_recommendation(dataset) ? DataKind::pairs : DataKind::nodes;
  situation.typed = dataset.graph.typed();
  situation.features = dataset.features.defined();
  situation.validated = dataset.splits.val.size() + dataset.val_edges.size() > 0;
  return situation;
}

void refuse_without_data(const Command& command) {
  if (command.given("--data")) return;
  for (const char* option : {"--format", "--features", "--labels", "--splits", "--num-nodes", "--data-seed"}) {
    if (command.given(option))
      throw UserError(option, "says how to read --data, but the data are those of the run",
                      "add --data, or leave it out");
  }
}

void refuse_idle(const Command& command, const Situation& situation) {
  Situation s = situation;
  s.takes_devices = command.has_option("--devices") && command.has_option("--halo-rows");
  for (const Rule& rule : rules()) {
    for (const char* option : rule.options) {
      if (command.given(option) && rule.idle(s)) throw UserError(option, rule.why, rule.remedy);
    }
  }
}

}  // namespace nacre::cli
