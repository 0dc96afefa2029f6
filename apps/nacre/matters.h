// Which option matters when: one table for all commands. An option that was asked for and would
// have no effect is refused, if possible before the data are read.
#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "nacre/data/dataset.h"
#include "nacre/train/config.h"

namespace nacre::cli {

enum class DataKind { unknown, nodes, pairs };  // pairs: users and items, for recommenders

// What a command line is about, as far as it is known.
struct Situation {
  const RunConfig* config = nullptr;
  std::vector<std::string> models;  // several where a benchmark compares them
  bool gpu = false;
  DataKind data = DataKind::unknown;
  bool typed = false;        // the graph has edge types of its own
  bool features = false;     // the nodes are known to be of one kind, with features of the data
  bool validated = true;     // the data have a validation split
  bool keeps_run = true;     // there is a run folder
  bool reads_format = true;  // --format is that of the data, not of what is written
};

// `config` must live as long as the answer. Throws UserError where the device is not here.
Situation situation_of(const RunConfig& config);
// As much as file headers and names tell without reading the data.
DataKind glance_at(const RunConfig& config);
// The same situation once the data are read.
Situation with_data(Situation situation, const Dataset& dataset);

// For commands that know their data from a run: throws UserError where an option says how to read
// data that were not named.
void refuse_without_data(const Command& command);
// Throws UserError naming the first option of `command` that was given and has no effect.
void refuse_idle(const Command& command, const Situation& situation);

}  // namespace nacre::cli
