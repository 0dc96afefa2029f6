#include "options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/data/load.h"
#include "nacre/train/device.h"

namespace nacre::cli {
namespace {

// "6G", "512M", "1048576".
int64_t parse_size(const std::string& text) {
  size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    throw UserError("--memory-limit", "'" + text + "' is not a size", "write for instance 6G or 512M");
  }
  std::string unit = text.substr(used);
  if (unit.ends_with("iB")) unit.resize(unit.size() - 2);
  if (unit.ends_with("B")) unit.resize(unit.size() - 1);
  const char* units = "KMGT";
  const char* found =
      unit.size() == 1 ? std::strchr(units, std::toupper(static_cast<unsigned char>(unit[0]))) : nullptr;
  if ((!unit.empty() && found == nullptr) || !(value > 0)) {
    throw UserError("--memory-limit", "'" + text + "' is not a size", "write for instance 6G or 512M");
  }
  const double bytes = value * (unit.empty() ? 1.0 : std::pow(1024.0, static_cast<double>(found - units + 1)));
  return bytes >= 0x1p62 ? int64_t{1} << 62 : static_cast<int64_t>(bytes);
}

// CLI11 takes -1 and numbers beyond 64 bits for some other seed.
std::string whole_number(const std::string& text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  return parsed.ec == std::errc() && parsed.ptr == end ? "" : "'" + text + "' is no whole number from 0 to 2^64 - 1";
}

}  // namespace

void add_data_options(CLI::App& command, RunConfig& c, bool required) {
  auto* data = command.add_option("--data", c.data, "a file, or twin:NAME[@scale] (nacre data list)")->group("Data");
  if (required) data->required();
  command.add_option("--format", c.load.format, "nacre, npz or edges; recognised when not given")->group("Data");
  command
      .add_option("--features", c.load.features_file,
                  "for edge lists: one row of features per vertex (.npy, .npz, .csv)")
      ->group("Data");
  command.add_option("--labels", c.load.labels_file, "for edge lists: one label per vertex (.npy or text)")
      ->group("Data");
  command.add_option("--splits", c.load.splits_file, "for edge lists: train, val, test (.npz or text)")->group("Data");
  command.add_option("--num-nodes", c.load.num_nodes, "for edge lists: number of vertices; default: largest id + 1")
      ->group("Data");
  command.add_flag("--undirected", c.load.undirected, "add the reverse of every edge")->group("Data");
  command.add_option("--data-seed", c.load.seed, "seed of generated twins")->check(whole_number)->group("Data");
}

void add_model_options(CLI::App& command, RunConfig& c) {
  ModelOptions& m = c.model;
  std::string names;
  for (const ModelInfo* info : model_list()) names += (names.empty() ? "" : ", ") + info->name;
  command.add_option("--model", m.model, "one of " + names)->capture_default_str()->group("Model");
  command.add_option("--layers", m.layers, "message-passing layers")->capture_default_str()->group("Model");
  command.add_option("--hidden", m.hidden, "width of hidden layers, all heads together")
      ->capture_default_str()
      ->group("Model");
  command.add_option("--heads", m.heads, "attention heads; default: the model's own")->group("Model");
  command.add_option("--out-heads", m.out_heads, "attention heads of the last layer, averaged")
      ->capture_default_str()
      ->group("Model");
  command.add_option("--dropout", m.dropout, "share dropped between layers")->capture_default_str()->group("Model");
  command.add_option("--input-dropout", m.input_dropout, "share of the features dropped")
      ->capture_default_str()
      ->group("Model");
  command.add_option("--attention-dropout", m.attention_dropout, "share of the attention dropped")
      ->capture_default_str()
      ->group("Model");
  command.add_option("--aggr", m.aggregator, "mean, sum, max or lstm; default: the model's own")->group("Model");
  command.add_option("--activation", m.activation, "relu, elu, …; default: the model's own")->group("Model");
  command.add_option("--norm", m.norm, "none, layer or batch")->capture_default_str()->group("Model");
  command.add_flag("--residual", m.residual, "add each hidden layer's input to its output")->group("Model");
  command.add_option("--num-bases", m.num_bases, "rgcn: basis matrices; 0 = one matrix per relation")
      ->capture_default_str()
      ->group("Model");
  command.add_option("--relations", c.relations, "edge types assigned to an untyped graph for typed models")
      ->capture_default_str()
      ->group("Model");
  command.add_option("--normalize-features", c.normalize_features, "auto, row or none")
      ->capture_default_str()
      ->group("Model");
  command
      .add_option_function<std::vector<std::string>>(
          "--set",
          [&m](const std::vector<std::string>& pairs) {
            for (const std::string& pair : pairs) {
              const size_t equals = pair.find('=');
              double value = 0;
              if (equals == std::string::npos || equals == 0 ||
                  !CLI::detail::lexical_cast(pair.substr(equals + 1), value)) {
                throw UserError("--set", "'" + pair + "' is not NAME=NUMBER");
              }
              m.knobs[pair.substr(0, equals)] = value;
            }
          },
          "a setting of the model's own, NAME=NUMBER; may be repeated")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group("Model");
}

void add_training_options(CLI::App& command, RunConfig& c) {
  OptimizerOptions& o = c.optimizer;
  ScheduleOptions& s = c.schedule;
  command.add_option("--epochs", c.epochs, "passes over the graph")->capture_default_str()->group("Training");
  command.add_option("--lr", o.lr, "learning rate")->capture_default_str()->group("Training");
  command.add_option("--weight-decay", o.weight_decay, "L2 penalty; decoupled with adamw")
      ->capture_default_str()
      ->group("Training");
  command.add_option("--optimizer", o.name, "adam, adamw or sgd")->capture_default_str()->group("Training");
  command.add_option("--momentum", o.momentum, "of sgd")->capture_default_str()->group("Training");
  command.add_option("--beta1", o.beta1, "of adam")->capture_default_str()->group("Training");
  command.add_option("--beta2", o.beta2, "of adam")->capture_default_str()->group("Training");
  command.add_option("--eps", o.epsilon, "of adam")->capture_default_str()->group("Training");
  command.add_option("--lr-schedule", s.name, "constant, step, cosine or linear")
      ->capture_default_str()
      ->group("Training");
  command.add_option("--warmup", s.warmup, "epochs of growing learning rate")->capture_default_str()->group("Training");
  command.add_option("--lr-step", s.step_size, "step schedule: epochs between drops")
      ->capture_default_str()
      ->group("Training");
  command.add_option("--lr-gamma", s.gamma, "step schedule: factor of a drop")
      ->capture_default_str()
      ->group("Training");
  command.add_option("--lr-final", s.final_ratio, "cosine, linear: share of the rate left at the end")
      ->capture_default_str()
      ->group("Training");
  command.add_option("--seed", c.seed, "of weights and dropout")
      ->check(whole_number)
      ->capture_default_str()
      ->group("Training");
  command.add_option("--metric", c.metric, "auto, accuracy, micro_f1 or roc_auc")
      ->capture_default_str()
      ->group("Training");
  command.add_option("--eval-every", c.eval_every, "epochs between evaluations")
      ->capture_default_str()
      ->group("Training");
  command.add_option("--patience", c.patience, "stop after this many evaluations without improvement; 0 = never")
      ->capture_default_str()
      ->group("Training");
  command.add_option("--select", c.select, "weights kept: best validation score (best) or loss (loss), or the last")
      ->capture_default_str()
      ->group("Training");
}

void add_execution_options(CLI::App& command, RunConfig& c) {
  command.add_option("--device", c.device, "auto, cpu, cuda, cuda:1 or cuda:0@32 (32 multiprocessors of it)")
      ->capture_default_str()
      ->group("Execution");
  command.add_option("--threads", c.threads, "0 = all")->capture_default_str()->group("Execution");
  command.add_option("--precision", c.precision, "f32; on a GPU also tf32 (matrix products) or bf16 (wide values in memory, too)")
      ->capture_default_str()
      ->group("Execution");
  command.add_option("--mode", c.mode, "full: every epoch is one step over the whole graph")
      ->capture_default_str()
      ->group("Execution");
  command
      .add_option("--plan", c.plan,
                  "auto (searched), off (rules only), vertex, edge, tensor, a partition table such as\n"
                  "dst-id=1,edge-id=32, or a plan file")
      ->capture_default_str()
      ->group("Execution");
  command.add_flag("--deterministic", c.deterministic, "the same bits on any machine: plans by rules, not by timing")
      ->group("Execution");
  command.add_flag("!--no-plan-cache", c.plan_cache, "search anew, and do not keep the plan")->group("Execution");
  command
      .add_option_function<std::string>(
          "--memory-limit", [&c](const std::string& text) { c.memory_limit = parse_size(text); },
          "most memory a run may use, e.g. 6G; default: what is free")
      ->group("Execution");
}

void add_planned_epochs(CLI::App& command, RunConfig& c) {
  command.add_option("--epochs", c.epochs, "length of the run: what a search may cost")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group("Execution");
}

void add_talk_options(CLI::App& command) {
  command.add_flag_callback(
      "--quiet,-q", [] { set_log_level(LogLevel::quiet); }, "say nothing but results");
  command.add_flag_callback(
      "--verbose,-v", [] { set_log_level(LogLevel::verbose); }, "say more");
}

void apply_execution(const RunConfig& c) {
  if (c.threads < 0) throw UserError("--threads", "must not be negative");
  if (c.threads > 0) set_num_threads(c.threads);
  choose_device(c.device, c.precision);
  check_plan(c.plan);
  if (c.mode != "full") throw UserError("--mode", "'" + c.mode + "' is not available in this build", "use full");
}

GemmType gemm_precision(const std::string& precision) {
  if (precision == "f32") return GemmType::f32;
  if (precision == "tf32") return GemmType::tf32;
  if (precision == "bf16") return GemmType::bf16;
  throw UserError("--precision", "'" + precision + "' means nothing", "use f32, tf32 or bf16");
}

Dataset open_data(const RunConfig& c) {
  const double start = now_seconds();
  Dataset dataset = load_dataset(c.data, c.load);
  log_info(fmt::format("{}: {} vertices, {} edges, {} features, {} classes ({})", dataset.name,
                       human_count(dataset.num_nodes()), human_count(dataset.graph.num_edges()),
                       human_count(dataset.num_features()), human_count(dataset.num_classes),
                       human_seconds(now_seconds() - start)));
  return dataset;
}

void show_session(const Session& session) {
  for (const std::string& note : session.notes()) log_info("note: " + note);
  if (!session.planning().source.empty()) log_info("plan " + how_found(session.planning()));
  std::string bill = memory_text(session.memory());
  bill.pop_back();
  log_info("memory:\n" + bill);
}

Dfg written_dfg(const Session& session) {
  ModelOptions options = session.config().model;
  options.training = true;
  Dfg dfg = build_model(options);
  differentiate(dfg);
  return dfg;
}

std::string how_found(const PlanAnswer& answer) {
  if (answer.source == "searched") {
    return fmt::format("searched in {}, {} kernels timed", human_seconds(answer.search.seconds),
                       answer.search.samples.size());
  }
  if (answer.source == "cached") return "from the cache";
  if (answer.source == "rules") return "found by rules";
  return answer.source == "file" ? "from a file" : "as asked";
}

std::string json_number(double value) {
  return std::isfinite(value) && value >= 0 ? fmt::format("{:.6g}", value) : "null";
}

}  // namespace nacre::cli
