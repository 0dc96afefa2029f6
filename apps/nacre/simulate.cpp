// Defines nacre simulate, which predicts training on hardware that is described and need not exist.
#include "nacre/train/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.h"
#include "hardware_file.h"
#include "matters.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/base/parallel.h"
#include "nacre/base/warnings.h"
#include "nacre/data/twin_plan.h"
#include "options.h"
#include "simulate_report.h"

namespace nacre::cli {
namespace {

// If a twin has more than kMostNodes nodes, its work is counted on a smaller twin with about
// kSampleNodes nodes.
constexpr int64_t kSampleNodes = 600'000;
constexpr int64_t kMostNodes = 5'000'000;
constexpr int kMostSimulated = kMostParts;

struct SimulateCommand {
  RunConfig config;
  std::string hardware;
  std::vector<int> ranks;  // numbers of devices to simulate; if empty: 1, 2, 4, …
  // Fraction of a twin on which work is counted (--count-on); 0 if the command chooses it.
  double fraction = 0;
  bool json = false;
};

std::vector<int> parse_ranks(const std::string& text) {
  std::vector<int> ranks;
  for (const std::string& part : split_list(text)) {
    int count = 0;
    const char* end = part.data() + part.size();
    const auto [rest, error] = std::from_chars(part.data(), end, count);
    if (error != std::errc() || rest != end || count < 1 || count > kMostSimulated)
      throw UserError("--ranks", "'" + part + "' is not a number of devices",
                      fmt::format("write for example 1,2,4,8; at most {}", kMostSimulated));
    ranks.push_back(count);
  }
  if (ranks.empty()) throw UserError("--ranks", "names no number of devices", "write for example 1,2,4,8");
  return ranks;
}

std::vector<int> usual_ranks(const Hardware& hardware) {
  std::vector<int> ranks;
  const int most = std::min(hardware.most_ranks(), kMostSimulated);
  for (int count = 1; count < most; count *= 2) ranks.push_back(count);
  ranks.push_back(most);
  return ranks;
}

// Holds the data that work is counted on.
struct CountedData {
  Dataset dataset;
  // Number of nodes of the simulated data set that one node of `dataset` stands for. An edge of
  // `dataset` stands for the same number of edges.
  double scale = 1;
  int64_t nodes = 0, edges = 0;  // size of the data set that is simulated
};

// Gives a data set that has no features a matrix of zeros with `columns` columns. The pages of the
// zeros take no memory as long as nobody writes to them.
void add_columns(int64_t columns, Dataset& dataset) {
  const int64_t nodes = dataset.num_nodes();
  const std::shared_ptr<void> zeros(std::calloc(static_cast<size_t>(nodes * columns), sizeof(float)), std::free);
  if (!zeros) throw std::bad_alloc();
  dataset.features = Tensor(DType::f32, {nodes, columns}, zeros, zeros.get());
}

// Returns the data that work is counted on. Twins are made without features, because only the
// number of their columns counts. A small twin stands for a large one.
CountedData counted_data(SimulateCommand& c) {
  CountedData counted;
  RunConfig& config = c.config;
  const bool twin = config.data.starts_with("twin:");
  if (!twin && c.fraction > 0)
    throw UserError("--count-on", "is for twins, but the data are read from files", "leave it out");
  if (!twin || !config.load.features_file.empty()) {
    if (c.fraction > 0)
      throw UserError("--count-on", "makes a smaller twin, for which there is no features file",
                      "leave --features or --count-on out");
    counted.dataset = open_data(config);
    counted.nodes = counted.dataset.num_nodes();
    counted.edges = counted.dataset.graph.num_edges();
    return counted;
  }
  const std::string name = config.data.substr(5);
  const TwinPlan whole = plan_twin(name, config.load.seed);
  if (!whole.spec->kinds.empty())
    throw UserError(config.data, "has several kinds of nodes, which cannot be simulated yet", "use another twin");
  double fraction = c.fraction;
  if (fraction == 0 && whole.num_nodes > kMostNodes)
    fraction = static_cast<double>(kSampleNodes) / static_cast<double>(whole.num_nodes);
  RunConfig small = config;
  small.load.features_file = "learned";
  if (fraction > 0 && fraction < 1)
    small.data = fmt::format("twin:{}@{:.6g}", whole.spec->name, whole.scale * fraction);
  counted.dataset = open_data(small);
  counted.dataset.notes.pop_back();  // removes the note on learned features
  add_columns(whole.spec->num_features, counted.dataset);
  counted.scale = small.data == config.data
                      ? 1
                      : static_cast<double>(whole.num_nodes) / static_cast<double>(counted.dataset.num_nodes());
  counted.nodes = whole.num_nodes;
  counted.edges = std::llround(static_cast<double>(counted.dataset.graph.num_edges()) * counted.scale);
  config.normalize_features = "none";
  return counted;
}

void check(const SimulateCommand& c, const Command& command, const Hardware& hardware) {
  const auto is_gpu = [](const DescribedDevice& device) { return device.gpu; };
  const bool gpu = std::any_of(hardware.devices.begin(), hardware.devices.end(), is_gpu);
  if (!gpu && c.config.precision != "f32")
    throw UserError("--precision", "'" + c.config.precision + "' needs a GPU, and " + hardware.name + " has none",
                    "use f32");
  if (!c.config.ranks.shares.empty()) {
    const size_t shares = c.config.ranks.shares.size();
    if (c.ranks.size() != 1 || shares != static_cast<size_t>(c.ranks[0]))
      throw UserError(
          "--shares",
          fmt::format("has {}, which is not the number of devices", counted(static_cast<int64_t>(shares), "number")),
          fmt::format("add --ranks {} and no other number, or leave --shares out", shares));
  }
  const std::string& rule = c.config.ranks.share_rule;
  if (rule != kAutomaticShares && rule != "uniform")
    throw UserError("--shares " + rule, "needs devices that are there, but simulated devices are only described",
                    "use auto, uniform or numbers");
  check_plan(c.config);
  Situation situation;
  situation.config = &c.config;
  situation.models = {c.config.model.model};
  situation.precision = c.config.precision;
  situation.gpu = gpu;
  situation.data = glance_at(c.config);
  refuse_idle(command, situation);
}

void run_simulate(SimulateCommand& c, const Command& command) {
  const Hardware hardware = read_hardware(c.hardware);
  check(c, command, hardware);
  if (c.ranks.empty()) c.ranks = usual_ranks(hardware);
  const int most = *std::max_element(c.ranks.begin(), c.ranks.end());
  if (most > hardware.most_ranks())
    throw UserError(
        "--ranks",
        fmt::format("{} devices are more than the {} devices of {}", most, hardware.most_ranks(), hardware.name),
        "give fewer, or describe more machines");
  if (c.config.threads > 0) set_num_threads(c.config.threads);
  CountedData counted = counted_data(c);
  SimulationReport report;
  report.data = c.config.data;
  report.counted_on = counted.dataset.name;
  report.nodes = counted.nodes;
  report.edges = counted.edges;
  report.scale = counted.scale;
  report.hardware = hardware;
  Simulator simulator(std::move(counted.dataset), c.config, hardware, counted.scale);
  report.model = simulator.data().config.model;
  for (const std::string& note : simulator.data().notes) log_note(note);
  for (const int ranks : c.ranks) {
    const double start = now_seconds();
    std::vector<double> shares = c.config.ranks.shares;
    if (c.config.ranks.share_rule == "uniform") shares.assign(static_cast<size_t>(ranks), 1);
    report.runs.push_back(simulator.run(ranks, std::move(shares)));
    log_info(fmt::format("{} simulated in {}", counted_devices(ranks), human_seconds(now_seconds() - start)));
  }
  fmt::print("{}", c.json ? simulation_json(report) + "\n" : simulation_text(report));
}

}  // namespace

void add_simulate(Command app) {
  Command command = app.add_subcommand(
      "simulate", "predict training on hardware that is described: epoch time, memory and communication");
  const auto c = std::make_shared<SimulateCommand>();
  add_data_options(command, c->config, true);
  add_model_options(command, c->config);
  add_execution_options(command, c->config);
  command.without({"--device", "--mode", "--reorder", "--deterministic", "--no-plan-cache", "--memory-limit"});
  add_rank_options(command, c->config);
  command.without({"--devices", "--comm", "--comm-timeout"});
  add_talk_options(command);
  command
      .add_option("--hardware", c->hardware,
                  "a TOML file that describes devices and links, or " + listed(hardware_names()))
      .required();
  command.add_call(
      "--ranks", [c](const std::string& text) { c->ranks = parse_ranks(text); },
      "numbers of devices, for example 1,2,4,8; default: 1, 2, 4, … up to all that are described");
  command
      .add_option(
          "--count-on", c->fraction,
          "count the work on this fraction of a twin, and multiply; default: 1 for a twin of up to 5 million nodes")
      .between(1e-9, 1.0);
  command.add_flag("--json", c->json, "print one JSON object instead of text");
  command.callback([c, command] { run_simulate(*c, command); });
}

}  // namespace nacre::cli
