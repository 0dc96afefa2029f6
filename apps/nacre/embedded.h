// Settings for programs that embed the commands, such as the Python package. They are given as the
// words of a command line, so that they have the same names, meanings, checks and error messages.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "nacre/data/dataset.h"
#include "nacre/train/config.h"
#include "train_command.h"

namespace nacre::cli {

// The command line of one command, which has been parsed.
class ParsedWords {
 public:
  // `add` adds the options of the command `name` and keeps the settings. Throws UserError.
  template <class Add>
  ParsedWords(const std::string& name, const std::vector<std::string>& words, const Add& add) : ParsedWords(name) {
    add(command());
    parse(words);
  }
  ~ParsedWords();
  ParsedWords(ParsedWords&&) noexcept;
  ParsedWords& operator=(ParsedWords&&) = delete;

  Command command() const;

 private:
  explicit ParsedWords(const std::string& name);
  void parse(const std::vector<std::string>& words);

  std::string name_;
  std::unique_ptr<CLI::App> app_;
};

// Whether the data are read by the command, or were made or read by the program before.
enum class DataAre { to_be_read, in_memory };

// The settings of nacre train. Options that only a terminal needs (--json, --quiet, --verbose,
// --seeds, --no-checkpoint) are unknown.
class TrainRequest {
 public:
  // Checks the settings and applies the number of threads. If the data are in memory, options that
  // say how data are read are refused. Throws UserError.
  TrainRequest(const std::vector<std::string>& words, DataAre data);

  TrainCommand& settings() { return *settings_; }
  // Throws UserError if settings do not fit the data or have no effect on them.
  void check_data(const Dataset& dataset) const;

 private:
  std::unique_ptr<TrainCommand> settings_;
  ParsedWords words_;
  Situation situation_;
};

// The settings of reading data (docs/data.md): those of --data and the other data options.
struct DataRequest {
  DataRequest(const std::vector<std::string>& words, DataAre data);
  RunConfig config;  // only `data` and `load` are set
};

// The settings of a sampler: the mini-batch options of nacre train, and --seed and --layers.
struct SampleRequest {
  explicit SampleRequest(const std::vector<std::string>& words);
  RunConfig config;  // only `batch_size` and `sampling` are set
};

// Throws UserError if an option of `command` says how data are read; they are already in memory.
void refuse_reading(const Command& command);

// A data set that the program holds, and how it was named and read.
struct OpenedData {
  const Dataset& dataset;
  std::string spec;
  LoadOptions load;
};

// What nacre plan shows.
struct PlanTexts {
  std::string summary;  // a few lines for people
  std::string details;  // every kernel, and the memory of a run
  std::string json;     // the plan file
};
// Plans a run; the words are options of nacre plan. Throws UserError.
PlanTexts plan_texts(const std::vector<std::string>& words, const OpenedData& data);

// Returns what `nacre COMMAND --help` prints about the options of "train", "load", "graph" or
// "sampler".
std::string options_text(const std::string& command);
// Returns the long names of these options, for example "--epochs".
std::vector<std::string> option_names(const std::string& command);

}  // namespace nacre::cli
