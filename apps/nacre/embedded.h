// Parses settings for programs that embed the commands, such as the Python package. The settings
// are given as the words of a command line, so that they have the same names, meanings, checks and
// error messages.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "nacre/data/dataset.h"
#include "nacre/train/config.h"
#include "train_command.h"

namespace nacre::cli {

// Holds the parsed command line of one command.
class ParsedWords {
 public:
  // `add` adds the options of the command `name`; parsing stores the settings in the variables of
  // these options. Throws UserError if the words are wrong.
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

// Says whether the command reads the data, or the program has already made or read them.
enum class DataAre { to_be_read, in_memory };

// Holds the settings of nacre train. Options that only a terminal needs (--json, --quiet,
// --verbose, --seeds, --no-checkpoint) are refused as unknown.
class TrainRequest {
 public:
  // Parses and checks the settings, and applies the number of threads. Throws UserError if a
  // setting is wrong, or if the data are in memory and an option says how data are read.
  TrainRequest(const std::vector<std::string>& words, DataAre data);

  TrainCommand& settings() { return *settings_; }
  // Throws UserError if settings do not fit the data or have no effect on them.
  void check_data(const Dataset& dataset) const;

 private:
  std::unique_ptr<TrainCommand> settings_;
  ParsedWords words_;
  Situation situation_;
};

// Holds the settings of reading data (docs/data.md): --data and the other data options.
struct DataRequest {
  DataRequest(const std::vector<std::string>& words, DataAre data);
  RunConfig config;  // only `data` and `load` are set
};

// Holds the settings of a sampler: the mini-batch options of nacre train, --seed and --layers.
struct SampleRequest {
  explicit SampleRequest(const std::vector<std::string>& words);
  RunConfig config;  // only `batch_size` and `sampling` are set
};

// Throws UserError if an option of `command` says how data are read. The data are already in
// memory, so the option would have no effect.
void refuse_reading(const Command& command);

// Holds a data set that the program has read or made, and the name and the settings that it was
// read with.
struct OpenedData {
  const Dataset& dataset;
  std::string spec;
  LoadOptions load;
};

// Holds the texts that nacre plan shows.
struct PlanTexts {
  std::string summary;  // a few lines about the plan, for people
  std::string details;  // every kernel and the memory of a run, for people
  std::string json;     // contents of the plan file
};
// Plans a run and returns the texts. `words` are options of nacre plan. Throws UserError if they
// are wrong.
PlanTexts plan_texts(const std::vector<std::string>& words, const OpenedData& data);

// Returns what `nacre COMMAND --help` prints about the options of "train", "load", "graph" or
// "sampler".
std::string options_text(const std::string& command);
// Returns the long names of the options of a command as in options_text(), for example "--epochs".
std::vector<std::string> option_names(const std::string& command);
// Returns the long names of the options that take no value, of a command as in options_text(), for
// example "--deterministic".
std::vector<std::string> flag_names(const std::string& command);

}  // namespace nacre::cli
