// Declares the options of nacre train, and the checks that need no data. The Python package uses
// them, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command.h"
#include "matters.h"
#include "nacre/train/recommend.h"
#include "nacre/train/trainer.h"
#include "nacre/train/vertex_model.h"

namespace nacre {
class MpiRanks;
}  // namespace nacre

namespace nacre::cli {

struct TrainCommand {
  RunConfig config;
  RecommendOptions recommend;  // options for data of users and items
  TrainerOptions trainer;
  std::string config_file;  // the value of --config, which is read before the command line is
                            // parsed
  bool no_checkpoint = false;
  bool json = false;
  bool init_partial = false;
  std::vector<uint64_t> seeds;  // the seeds of --seeds; empty: one run
  std::string trace;
  MpiRanks* processes = nullptr;  // the processes that MPI has started; null if it has started none
};

// Adds all options of nacre train to `command`; `c` must outlive it.
void add_train_options(Command command, TrainCommand& c);

// Applies the number of threads, and returns what is known before the data are read. Throws
// UserError if settings are wrong, do not fit together or have no effect.
Situation checked_situation(TrainCommand& c, const Command& command);

// Returns the bytes of the checkpoint that the run continues from, or of the weights that it begins
// with.
int64_t loaded_bytes(const TrainCommand& c);

// Loads the weights of --init, if the option is given, unless the run continues from its own
// checkpoint.
void take_first_weights(const TrainCommand& c, VertexModel& session);

// Returns what the session of the run must be able to do. `first_plan` is the plan file of an
// earlier run that differs only in its seed; empty if there is none.
SessionNeeds needs_of(const TrainCommand& c, const std::string& first_plan);

}  // namespace nacre::cli
