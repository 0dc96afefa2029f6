// Says with one table for all commands which option has an effect in which situation. An option
// that was given but would have no effect is refused, if possible before the data are read.
#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "nacre/data/dataset.h"
#include "nacre/train/config.h"

namespace nacre::cli {

enum class DataKind { unknown, nodes, pairs };  // pairs: users and items, for recommenders

// Holds what is known about a command line when its options are checked.
struct Situation {
  const RunConfig* config = nullptr;
  std::vector<std::string> models;  // several if a benchmark compares them
  bool gpu = false;
  std::string precision;  // as in RunConfig, also for a GPU that is not there
  bool launched = false;  // whether MPI has started several processes
  // Whether MPI has started several processes whose devices --devices does not name.
  bool processes = false;
  DataKind data = DataKind::unknown;
  bool typed = false;  // the graph has edge types of its own
  // Whether all nodes are known to be of one kind and to have features in the data.
  bool features = false;
  bool validated = true;  // whether the data have a validation split
  bool keeps_run = true;  // whether the run writes a run folder
  // Whether the command trains on the devices of --devices; refuse_idle() sets this.
  bool takes_devices = false;
  bool reads_format = true;  // whether --format describes the data that are read, not what is
                             // written
};

// Returns the situation of a run; `config` must live as long as the result. Throws UserError if the
// device is not available.
Situation situation_of(const RunConfig& config);
// Returns the kind of data, as far as file names and headers tell it without reading the data.
DataKind glance_at(const RunConfig& config);
// Returns the situation with what is known once the data are read.
Situation with_data(Situation situation, const Dataset& dataset);

// Checks a command that takes its data from a run if the user names no data. Throws UserError if an
// option says how to read data although the user has named none.
void refuse_without_data(const Command& command);
// Throws UserError if an option of `command` was given and has no effect. The error names the first
// such option.
void refuse_idle(const Command& command, const Situation& situation);

}  // namespace nacre::cli
