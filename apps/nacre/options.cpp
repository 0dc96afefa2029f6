#include "options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/names.h"
#include "nacre/base/parallel.h"
#include "nacre/base/printable.h"
#include "nacre/base/warnings.h"
#include "nacre/data/load.h"
#include "nacre/device/precision.h"
#include "nacre/model/model_file.h"
#include "nacre/plan/passes.h"
#include "nacre/schedule/epg/named.h"
#include "nacre/tensor/feature_types.h"
#include "nacre/train/device.h"
#include "nacre/train/rank_devices.h"
#include "terminal_log.h"

namespace nacre::cli {
namespace {

// Returns what is wrong with a seed. CLI11 itself would turn -1 and larger numbers into others.
std::string whole_number(const std::string& text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  return parsed.ec == std::errc() && parsed.ptr == end ? "" : "'" + text + "' is not a whole number from 0 to 2^64 - 1";
}

// Returns the usual spelling of a metric. Names with a number (recall@20) are in no list and stay.
std::string metric_name(const std::string& text) {
  const std::vector<std::string> names = {"auto", "accuracy", "micro_f1", "macro_f1", "roc_auc", "average_precision"};
  return find_name(text, names,
                   {{"acc", "accuracy"},
                    {"f1", "micro_f1"},
                    {"auc", "roc_auc"},
                    {"rocauc", "roc_auc"},
                    {"ap", "average_precision"}})
      .value_or(text);
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const ModelInfo* info : model_list()) names.push_back(info->name);
  return names;
}

// Returns the name of a model; loads the file that it comes from if the text names one.
std::string model_name(const std::string& text) {
  if (names_model_file(text)) return load_model_file(text);
  return choose_name("--model", "model", text, model_names(),
                     {{"graphsage", "sage"}, {"graphsage-lstm", "sage-lstm"}, {"perceptron", "mlp"}});
}

// Returns the usual spelling if `text` is a plan's name in any capitals and no such file exists;
// otherwise returns `text` unchanged, which is then a table or a file.
std::string plan_name(const std::string& text) {
  if (std::filesystem::exists(text)) return text;
  return find_name(text, {"auto", "off", "vertex", "edge", "tensor"}, {{"none", "off"}}).value_or(text);
}

}  // namespace

std::string device_name(const std::string& text) {
  std::string name = text;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name == "gpu" || name.starts_with("gpu:") || name.starts_with("gpu@")) name.replace(0, 3, "cuda");
  return name;
}

int64_t parse_size(const std::string& option, const std::string& text) {
  size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    throw UserError(option, "'" + text + "' is not a size", "write for example 6G or 512M");
  }
  std::string unit = text.substr(used);
  if (unit.ends_with("iB")) unit.resize(unit.size() - 2);
  if (unit.ends_with("B")) unit.resize(unit.size() - 1);
  const char* units = "KMGT";
  const char* found =
      unit.size() == 1 ? std::strchr(units, std::toupper(static_cast<unsigned char>(unit[0]))) : nullptr;
  if ((!unit.empty() && found == nullptr) || !(value > 0)) {
    throw UserError(option, "'" + text + "' is not a size", "write for example 6G or 512M");
  }
  const double bytes = value * (unit.empty() ? 1.0 : std::pow(1024.0, static_cast<double>(found - units + 1)));
  return bytes >= 0x1p62 ? int64_t{1} << 62 : static_cast<int64_t>(bytes);
}

void add_data_options(Command command, RunConfig& c, bool required) {
  const Setting data =
      command.add_option("--data", c.data, "a file, a folder, or twin:NAME[@scale] (nacre data list)").group("Data");
  if (required) data.required();
  command
      .add_option("--format", c.load.format,
                  "format of the data, NAME or NAME:VARIANT; recognised if not given (docs/data.md)")
      .group("Data");
  command
      .add_option("--features", c.load.features_file,
                  "a file with one row for each node (.npy, .npz, .csv), or learned (a row is trained for each node),\n"
                  "degree (made from the degrees of the nodes) or onehot (a column for each node)")
      .group("Data");
  command
      .add_option("--labels", c.load.labels_file,
                  "a file with one label for each node, or with lines node,label (.npy or text)")
      .group("Data");
  command
      .add_option("--splits", c.load.splits_file, "a file with the training, validation and test nodes (.npz or text)")
      .group("Data");
  command
      .add_option("--split", c.load.split,
                  "draw training, validation and test nodes: random:0.6/0.2/0.2, stratified:0.6/0.2/0.2\n"
                  "(the same shares of every class) or per-class:20/500/1000 (20 training nodes of each class)")
      .group("Data");
  command.add_option("--split-seed", c.load.split_seed, "seed of --split").check(whole_number).group("Data");
  command.add_flag("--ignore-edge-weights", c.load.ignore_edge_weights, "read the graph without edge weights")
      .group("Data");
  command.add_option("--num-nodes", c.load.num_nodes, "number of nodes of an edge list; default: largest id + 1")
      .group("Data");
  command.add_flag("--undirected", c.load.undirected, "add the reverse of every edge").group("Data");
  command.add_option("--data-seed", c.load.seed, "seed of generated twins").check(whole_number).group("Data");
}

void add_model_options(Command command, RunConfig& c) {
  ModelOptions& m = c.model;
  const std::vector<std::string> names = model_names();
  command.add_option("--model", m.model, listed(names) + ",\nor a file of your own: my_model.py, libmine.so")
      .written_as(model_name)
      .choices(names)
      .show_default()
      .group("Model");
  command.add_option("--layers", m.layers, "message-passing layers").show_default().group("Model");
  command.add_option("--hidden", m.hidden, "width of hidden layers, all heads together").show_default().group("Model");
  command
      .add_option("--input-dim", m.in_dim,
                  "for several kinds of nodes: width that their features are projected to; default: --hidden")
      .group("Model");
  command.add_option("--heads", m.heads, "number of attention heads; default: the model's usual number").group("Model");
  command.add_option("--out-heads", m.out_heads, "number of attention heads of the last layer, which are averaged")
      .show_default()
      .group("Model");
  command.add_option("--dropout", m.dropout, "share of values dropped between layers").show_default().group("Model");
  command.add_option("--input-dropout", m.input_dropout, "share of the features dropped").show_default().group("Model");
  command.add_option("--attention-dropout", m.attention_dropout, "share of attention weights dropped")
      .show_default()
      .group("Model");
  command.add_option("--aggr", m.aggregator, "mean, sum, max or lstm; default: the model's usual one")
      .one_of("aggregator", {"mean", "sum", "max", "lstm"}, {{"avg", "mean"}, {"average", "mean"}, {"add", "sum"}})
      .group("Model");
  std::vector<std::string> activations = activation_names();
  std::rotate(activations.begin(), activations.begin() + 1, activations.end());  // "none" is last
  command.add_option("--activation", m.activation, listed(activations) + "; default: the model's own")
      .one_of("activation", activation_names(), {{"identity", "none"}})
      .group("Model");
  command.add_option("--norm", m.norm, "normalisation after every hidden layer: none, layer or batch")
      .one_of("norm", {"none", "layer", "batch"}, {{"batchnorm", "batch"}, {"layernorm", "layer"}})
      .show_default()
      .group("Model");
  command.add_flag("--residual", m.residual, "add each hidden layer's input to its output").group("Model");
  command.add_option("--num-bases", m.num_bases, "rgcn: number of basis matrices; 0 = one matrix per relation")
      .show_default()
      .group("Model");
  command
      .add_option("--relations", c.relations,
                  "number of edge types made up for a graph that has none, if the model needs them")
      .show_default()
      .group("Model");
  command
      .add_option("--normalize-features", c.normalize_features,
                  "divide the rows of features by their sums: auto (word counts only), row or none")
      .one_of("way to normalise features", {"auto", "row", "none"}, {{"rows", "row"}})
      .show_default()
      .group("Model");
  command
      .add_list(
          "--set",
          [&m](const std::vector<std::string>& pairs) {
            for (const std::string& pair : pairs) {
              const size_t equals = pair.find('=');
              double value = 0;
              if (equals == std::string::npos || equals == 0 || !parse_double(pair.substr(equals + 1), value)) {
                throw UserError("--set", "'" + pair + "' is not NAME=NUMBER",
                                "write for example --set edge-dropout=0.1");
              }
              m.knobs[pair.substr(0, equals)] = value;
            }
          },
          "a setting that only this model has, NAME=NUMBER; may be repeated")
      .group("Model");
}

void add_training_options(Command command, RunConfig& c) {
  OptimizerOptions& o = c.optimizer;
  ScheduleOptions& s = c.schedule;
  command.add_option("--epochs", c.epochs, "number of passes over the training data").show_default().group("Training");
  command.add_option("--lr", o.lr, "learning rate").show_default().group("Training");
  command.add_option("--weight-decay", o.weight_decay, "L2 penalty; decoupled with adamw")
      .show_default()
      .group("Training");
  command.add_option("--optimizer", o.name, "adam, adamw or sgd")
      .one_of("optimizer", {"adam", "adamw", "sgd"})
      .show_default()
      .group("Training");
  command.add_option("--momentum", o.momentum, "momentum of sgd").show_default().group("Training");
  command.add_option("--beta1", o.beta1, "adam: decay of the mean of gradients").show_default().group("Training");
  command.add_option("--beta2", o.beta2, "adam: decay of the mean of squared gradients")
      .show_default()
      .group("Training");
  command.add_option("--eps", o.epsilon, "adam: number added to the denominator").show_default().group("Training");
  command.add_option("--lr-schedule", s.name, "constant, step, cosine, linear or plateau")
      .one_of("schedule", {"constant", "step", "cosine", "linear", "plateau"},
              {{"none", "constant"}, {"const", "constant"}, {"reduce-on-plateau", "plateau"}})
      .show_default()
      .group("Training");
  command.add_option("--warmup", s.warmup, "number of epochs in which the learning rate grows")
      .show_default()
      .group("Training");
  command.add_option("--lr-step", s.step_size, "step schedule: epochs between drops").show_default().group("Training");
  command.add_option("--lr-gamma", s.gamma, "step and plateau schedules: factor of a drop")
      .show_default()
      .group("Training");
  command
      .add_option("--lr-final", s.final_ratio,
                  "cosine and linear schedules: share of the rate left at the end; plateau: smallest share")
      .show_default()
      .group("Training");
  command.add_option("--lr-patience", s.patience, "plateau schedule: evaluations without improvement before a drop")
      .show_default()
      .group("Training");
  command.add_option("--clip-grad-norm", o.clip_norm, "largest norm of all gradients together; 0 = no clipping")
      .show_default()
      .group("Training");
  command.add_option("--ema", o.ema, "evaluate and keep a moving average of the weights with this decay; 0 = none")
      .show_default()
      .group("Training");
  command.add_option("--label-smoothing", c.model.label_smoothing, "share of a label that is spread over all classes")
      .show_default()
      .group("Training");
  command
      .add_option(
          "--class-weights", c.class_weights,
          "weights of the classes in the loss: balanced (rare classes weigh more), a list such as 1,0.5,2, or a file")
      .group("Training");
  command.add_option("--seed", c.seed, "seed of initial weights, dropout and batches")
      .check(whole_number)
      .show_default()
      .group("Training");
  command.add_option("--metric", c.metric, "auto, accuracy, micro_f1, macro_f1, roc_auc or average_precision")
      .written_as(metric_name)
      .show_default()
      .group("Training");
  command.add_option("--eval-every", c.eval_every, "epochs between evaluations").show_default().group("Training");
  command.add_option("--patience", c.patience, "stop after this many evaluations without improvement; 0 = never")
      .show_default()
      .group("Training");
  command
      .add_option("--select", c.select,
                  "which weights are kept: those of the best validation score (best) or loss (loss), or the last")
      .one_of("choice", {"best", "loss", "last"})
      .show_default()
      .group("Training");
}

// Returns the precisions of a list as the program spells them.
static std::string precisions(const std::string& text) {
  std::string list;
  std::vector<std::string> names = precision_names();
  names.emplace_back(kAutomaticPrecision);
  for (const std::string& name : split_list(text)) {
    list += (list.empty() ? "" : ",") + choose_name("--precision", "precision", name, names, float_synonyms());
  }
  return list;
}

void add_execution_options(Command command, RunConfig& c) {
  command.add_option("--device", c.device, "auto, cpu, cuda, cuda:1 or cuda:0@32 (32 multiprocessors of GPU 0)")
      .written_as(device_name)
      .show_default()
      .group("Execution");
  command.add_option("--threads", c.threads, "number of CPU threads; 0 = one for each processor")
      .show_default()
      .group("Execution");
  command
      .add_option("--precision", c.precision,
                  "f32; on a GPU also tf32 (matrix products) or bf16 (and rows of 16 or more numbers in memory);\n"
                  "with --devices also one for each device (tf32,bf16), or auto: bf16 on GPUs with too much work")
      .written_as(precisions)
      .show_default()
      .group("Execution");
  command
      .add_option("--mode", c.mode,
                  "full: every epoch is one step over the whole graph; minibatch: many steps over sampled parts")
      .one_of("mode", {"full", "minibatch"}, {{"full-graph", "full"}, {"full-batch", "full"}, {"batch", "minibatch"}})
      .show_default()
      .group("Execution");
  command
      .add_option("--plan", c.plan,
                  "auto (searched), off (rules only), vertex, edge, tensor, a partition table such as\n"
                  "dst-id=1,edge-id=32, or a plan file")
      .written_as(plan_name)
      .show_default()
      .group("Execution");
  command
      .add_option("--recompute", c.recompute,
                  "values of the forward pass that are dropped and computed again in the backward pass:\n"
                  "auto (where it saves much memory for little time) or fit (only if the run would not fit)")
      .one_of("choice", {"auto", "fit"})
      .show_default()
      .group("Execution");
  command
      .add_option("--reorder", c.reorder,
                  "the order in which a run on the whole graph numbers the nodes: none (as they are), degree, rcm,\n"
                  "rabbit, or auto (another order if sums over neighbours are timed to be faster in it)")
      .one_of("order", {"auto", "none", "degree", "rcm", "rabbit"})
      .show_default()
      .group("Execution");
  command
      .add_flag("--deterministic", c.deterministic,
                "give the same results, bit for bit, in every run: plans are made by fixed rules and nothing is timed")
      .group("Execution");
  command.add_off_flag("--no-plan-cache", c.plan_cache, "search for a plan even if one is stored, and do not store it")
      .group("Execution");
  command
      .add_call(
          "--memory-limit", [&c](const std::string& text) { c.memory_limit = parse_size("--memory-limit", text); },
          "most memory that a run may use, for example 6G; default: what is free")
      .group("Execution");
}

void add_pass_option(Command command, RunConfig& c) {
  command
      .add_list(
          "--disable-pass",
          [&c](const std::vector<std::string>& lists) {
            c.disabled_passes.clear();
            for (const std::string& list : lists) {
              for (const std::string& name : split_list(list))
                c.disabled_passes.insert(choose_pass(name, "--disable-pass"));
            }
            check_disabled_passes(c.disabled_passes, "--disable-pass");
          },
          "leave out a pass of the planner, such as sink_tails, or several: sink_tails,drop_unread")
      .group("Execution");
}

namespace {

// Returns the samplers with their names in papers: "neighbor, layer (LADIES), …".
std::string samplers_text() {
  const std::vector<SamplerInfo>& all = samplers();
  std::vector<std::string> names;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool last_of_paper = i + 1 == all.size() || all[i + 1].paper != all[i].paper;
    names.push_back(all[i].paper.empty() || !last_of_paper ? all[i].name
                                                           : fmt::format("{} ({})", all[i].name, all[i].paper));
  }
  return listed(names);
}

int fanout_number(const std::string& text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end)
    throw UserError("--fanout", "'" + text + "' is not a number of neighbours",
                    "write for example 15,10,5; -1 takes all");
  return value;
}

// Reads a number for each hop, "15,10,5", or for each hop a number for each edge type, "15/5,10/5".
void set_fanout(const std::string& text, SampleOptions& s) {
  s.fanout.clear();
  s.type_fanout.clear();
  if (text.empty()) fanout_number(text);  // refuses an empty text
  const bool typed = text.find('/') != std::string::npos;
  for (const std::string& hop : split_list(text)) {
    if (!typed) {
      s.fanout.push_back(fanout_number(hop));
      continue;
    }
    s.type_fanout.emplace_back();
    for (const std::string& type : split_list(hop, '/')) s.type_fanout.back().push_back(fanout_number(type));
  }
}

}  // namespace

void set_sampler(const std::string& name, SampleOptions& s) {
  std::vector<std::string> names;
  std::vector<Synonym> synonyms;
  for (const SamplerInfo& info : samplers()) {
    names.push_back(info.name);
    for (const std::string& said : info.synonyms) synonyms.push_back({said, info.name});
  }
  s.sampler = choose_name("--sampler", "sampler", name, names, synonyms);
}

std::vector<std::string> schedule_choices() {
  std::vector<std::string> names;
  for (const ScheduleName& known : schedule_names()) names.push_back(known.name);
  return names;
}

std::vector<Synonym> schedule_synonyms() {
  return {{"bytegnn-style", "bytegnn"}, {"salient-style", "salient"}, {"all-cpu", "cpu-only"}};
}

void add_batch_options(Command command, RunConfig& c) {
  const auto add = [](const Setting& setting) { setting.group("Mini-batches"); };
  SampleOptions& s = c.sampling;
  LoaderOptions& l = c.loader;
  add(command.add_option("--batch-size", c.batch_size, "nodes (or user-item pairs) of a mini-batch").show_default());
  add(command
          .add_option("--shuffle", c.shuffle,
                      "whether the training nodes of an epoch are shuffled: always, never, or adaptive (from the\n"
                      "epoch on at which the accuracy curve bends)")
          .one_of("way to shuffle", {"always", "never", "adaptive"},
                  {{"on", "always"}, {"true", "always"}, {"off", "never"}, {"false", "never"}})
          .show_default());
  std::vector<std::string> schedules = schedule_choices();
  schedules.insert(schedules.begin(), "auto");
  add(command
          .add_option("--schedule", c.batch_schedule,
                      "how batches are spread over time, the host and a GPU: daha (as costs predict), bytegnn (host\n"
                      "and GPU train batches of their own), in-turn (many are sampled, then trained), salient,\n"
                      "cpu-sample, all-gpu or cpu-only; nacre plan shows them")
          .one_of("schedule", schedules, schedule_synonyms())
          .show_default());
  add(command
          .add_option("--staleness", c.staleness,
                      "number of earlier updates that a batch need not wait for, so that this many more batches are\n"
                      "computed at the same time; 0 = every batch reads the newest weights")
          .not_negative()
          .show_default());
  add(command.add_call(
      "--fanout", [&s](const std::string& text) { set_fanout(text, s); },
      "neighbours that each node draws, one number per layer, the one next to the seeds first: 15,10,5;\n"
      "-1 = all; by edge type 15/5,10/5; with --sampler layer: the nodes that each layer draws"));
  add(command.add_call(
      "--sampler", [&s](const std::string& text) { set_sampler(text, s); }, samplers_text() + "; default: neighbor"));
  add(command.add_flag("--replace", s.replace, "draw with replacement"));
  add(command.add_flag("--sample-weighted", s.weighted, "draw by edge weight"));
  add(command.add_option("--budget", s.budget,
                         "GraphSAINT: number of nodes, edges or walks drawn; default: the batch size"));
  add(command
          .add_option("--norm-samples", s.norm_samples,
                      "GraphSAINT: subgraphs drawn before training to estimate how often nodes and edges are drawn")
          .show_default());
  add(command.add_option("--walk-length", s.walk_length, "saint-walk: number of steps of a walk").show_default());
  add(command
          .add_option("--prefetch", l.in_flight,
                      "number of batches prepared ahead; 0 = none; default: chosen for the device")
          .not_negative());
  add_feature_options(command, c);
  const std::vector<Synonym> places = {{"gpu", "device"}, {"cuda", "device"}, {"cpu", "host"}};
  add(command.add_option("--sample-on", c.sample_on, "where neighbours are drawn: device, host or auto")
          .one_of("place", {"auto", "device", "host"}, places)
          .show_default());
  add(command.add_off_flag("--no-subtasks", l.subtasks, "prepare a batch stage by stage, not hop by hop"));
  add(command.add_off_flag("--no-relax", l.relax, "sample neighbours and update hash tables in one task"));
  add(command.add_off_flag("--no-stream", l.stream, "send the features of a batch when all have been looked up"));
}

std::vector<std::string> split_list(const std::string& text, char at) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  parts.emplace_back();
  for (const char ch : text) {
    if (ch == at) {
      parts.emplace_back();
    } else {
      parts.back() += ch;
    }
  }
  return parts;
}

void add_planned_epochs(Command command, RunConfig& c) {
  command
      .add_option("--epochs", c.epochs,
                  "length of the run that is planned; a longer run may spend more time on the search for a plan")
      .show_default()
      .positive()
      .group("Execution");
}

void add_talk_options(Command command) {
  command.add_flag_call(
      "--quiet,-q", [] { set_log_level(LogLevel::quiet); }, "print only results and warnings");
  command.add_flag_call(
      "--verbose,-v", [] { set_log_level(LogLevel::verbose); }, "print more details");
}

void apply_execution(const RunConfig& c) {
  if (c.threads < 0) throw UserError("--threads", "must not be negative");
  if (c.threads > most_threads()) {
    throw UserError("--threads",
                    fmt::format("{} threads are more than {} processors can use", c.threads, usable_cpus()),
                    fmt::format("give at most {}; 0 takes one for each processor", most_threads()));
  }
  if (c.threads > 0) set_num_threads(c.threads);
  if (c.ranks.several()) {
    check_ranks(c);
  } else {
    if (c.precision.find(',') != std::string::npos)
      throw UserError("--precision", "'" + c.precision + "' has several names, but the run has one device",
                      "give one name, or add --devices");
    if (c.precision == kAutomaticPrecision)
      throw UserError("--precision", "'auto' is for several devices, but the run has one",
                      "use f32, tf32 or bf16, or add --devices");
    choose_device(c.device, c.precision);
  }
  check_plan(c);
  if (c.mode != "full" && c.mode != "minibatch")
    throw UserError("--mode", "unknown mode '" + c.mode + "'", "choose full or minibatch");
  check_places(c);
}

Dataset open_data(const RunConfig& c) {
  const double start = now_seconds();
  Dataset dataset = load_dataset(c.data, c.load);
  const std::string features =
      dataset.heterogeneous()
          ? fmt::format("{} kinds, {} relations", dataset.node_types.size(), dataset.relations.size())
          : human_count(dataset.num_features()) + " features";
  log_info(fmt::format("{}: {} nodes, {} edges, {}, {} classes ({})", printable(dataset.name),
                       human_count(dataset.num_nodes()), human_count(dataset.graph.num_edges()), features,
                       human_count(dataset.num_classes), human_seconds(now_seconds() - start)));
  return dataset;
}

void show_session(const VertexModel& session) {
  for (const std::string& note : session.notes()) log_note(note);
  if (!session.planning().source.empty()) log_info("plan " + how_found(session.planning()));
  if (session.device().on_host()) return;
  std::string bill = memory_text(session.memory());
  bill.pop_back();
  log_info("memory of the device:\n" + bill);
}

Dfg written_dfg(const Session& session) {
  ModelOptions options = session.config().model;
  options.training = true;
  Dfg dfg = build_model(options);
  differentiate(dfg);
  return dfg;
}

static std::string source_text(const PlanAnswer& answer) {
  if (answer.source == "searched") {
    return fmt::format("searched in {}, {} kernels timed", human_seconds(answer.search.seconds),
                       answer.search.samples.size());
  }
  if (answer.source == "cached") return "from the cache";
  if (answer.source == "rules") return "found by rules";
  return answer.source == "file" ? "from a file" : "as asked";
}

std::string how_found(const PlanAnswer& answer) {
  const Reorder order = answer.plan.options.vertex_order;
  return source_text(answer) +
         (order == Reorder::none ? "" : fmt::format("; nodes are numbered in {} order", reorder_name(order)));
}

void say_interrupted(const TrainResult& r, const std::string& folder) {
  if (!r.interrupted) return;
  log_info(fmt::format("interrupted after epoch {}{}", r.epochs,
                       folder.empty() ? "" : "; continue with nacre train --resume " + folder));
}

std::string json_number(double value) {
  return std::isfinite(value) && value >= 0 ? fmt::format("{:.6g}", value) : "null";
}

std::string score_text(double value) {
  const std::string number = json_number(value);
  return number == "null" ? "none" : number;
}

void say_line(bool json, const std::string& line) {
  if (json) {
    log_info(line);
  } else {
    fmt::print("{}\n", line);
  }
}

}  // namespace nacre::cli
