#include "embedded.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "options.h"
#include "usage.h"

namespace nacre::cli {
namespace {

// Lists the options of reading that have no meaning for data in memory.
const std::vector<std::string>& reading_options() {
  static const std::vector<std::string> names = {"--data", "--format", "--num-nodes", "--data-seed"};
  return names;
}

const std::vector<std::string>& data_options() {
  static const std::vector<std::string> names = {"--format",    "--features",   "--labels",
                                                 "--splits",    "--split",      "--split-seed",
                                                 "--num-nodes", "--undirected", "--ignore-edge-weights",
                                                 "--data-seed"};
  return names;
}

void add_embedded_train(Command command, TrainCommand& settings) {
  add_train_options(command, settings);
  command.without({"--json", "--quiet", "--verbose", "--seeds", "--no-checkpoint"});
}

void add_reading(Command command, RunConfig& config, DataAre data) {
  add_data_options(command, config, data == DataAre::to_be_read);
  if (data == DataAre::in_memory) command.without(reading_options());
}

void add_sampling(Command command, RunConfig& config) {
  add_batch_options(command, config);
  command.without({"--prefetch", "--features-on", "--host-budget", "--pack", "--pack-folder", "--feature-budget",
                   "--placement", "--cache", "--locality", "--host-rows", "--feature-type", "--sample-on",
                   "--no-subtasks", "--no-relax", "--no-stream", "--shuffle", "--staleness", "--schedule"});
  command.add_option("--seed", config.sampling.seed, "seed of the samples and of the order of nodes");
  command.add_option("--layers", config.sampling.layers, "number of blocks; default: one for each number of --fanout")
      .not_negative();
}

// Defines the options of a command, so that their names and help texts can be listed. Nothing is
// parsed with them.
struct Described {
  explicit Described(const std::string& command) {
    app.set_help_flag();
    if (command == "train") {
      add_embedded_train(app, train);
    } else if (command == "sampler") {
      add_sampling(app, config);
    } else {
      add_reading(app, config, command == "graph" ? DataAre::in_memory : DataAre::to_be_read);
    }
  }
  CLI::App app{"", "nacre"};
  TrainCommand train;
  RunConfig config;
};

ParsedWords parse_train(const std::vector<std::string>& words, TrainCommand& settings) {
  return {"train", words, [&](Command command) { add_embedded_train(command, settings); }};
}

}  // namespace

ParsedWords::ParsedWords(const std::string& name) : name_(name), app_(std::make_unique<CLI::App>("", "nacre")) {
  app_->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app_->add_subcommand(name);
}

ParsedWords::~ParsedWords() = default;
ParsedWords::ParsedWords(ParsedWords&&) noexcept = default;

Command ParsedWords::command() const { return {*app_->get_subcommand(name_)}; }

void ParsedWords::parse(const std::vector<std::string>& words) {
  app_->get_subcommand(name_)->set_help_flag();
  std::vector<std::string> arguments = {name_};
  arguments.insert(arguments.end(), words.begin(), words.end());
  arguments = understood(*app_, std::move(arguments));
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes the arguments in reverse
  try {
    app_->parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    throw UserError("", complaint(error.what()));
  }
}

void refuse_reading(const Command& command) {
  for (const std::string& option : data_options()) {
    if (command.given(option))
      throw UserError(option, "says how data are read, but the graph is already there",
                      "give it when the graph is made or loaded");
  }
}

TrainRequest::TrainRequest(const std::vector<std::string>& words, DataAre data)
    : settings_(std::make_unique<TrainCommand>()), words_(parse_train(words, *settings_)) {
  const Command command = words_.command();
  if (data == DataAre::in_memory) refuse_reading(command);
  situation_ = checked_situation(*settings_, command);
}

void TrainRequest::check_data(const Dataset& dataset) const {
  refuse_idle(words_.command(), with_data(situation_, dataset));
}

DataRequest::DataRequest(const std::vector<std::string>& words, DataAre data) {
  const std::string name = data == DataAre::in_memory ? "graph" : "load";
  const ParsedWords parsed(name, words, [&](Command command) { add_reading(command, config, data); });
}

SampleRequest::SampleRequest(const std::vector<std::string>& words) {
  const ParsedWords parsed("sampler", words, [&](Command command) { add_sampling(command, config); });
}

std::string options_text(const std::string& command) { return Described(command).app.help(); }

namespace {

// Returns the long names of all options of a command, or of those that take no value.
std::vector<std::string> long_names(const std::string& command, bool flags_only) {
  const Described described(command);
  std::vector<std::string> names;
  for (const CLI::Option* option : described.app.get_options()) {
    if (flags_only && option->get_items_expected_max() > 0) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

std::vector<std::string> option_names(const std::string& command) { return long_names(command, false); }

std::vector<std::string> flag_names(const std::string& command) { return long_names(command, true); }

}  // namespace nacre::cli
