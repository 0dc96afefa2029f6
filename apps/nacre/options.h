// Options several commands share, written straight into a RunConfig.
#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "nacre/device/device.h"
#include "nacre/train/session.h"
#include "nacre/train/trainer.h"

namespace nacre::cli {

// Every group of options adds itself to a command and fills `config` when the command line is
// parsed.
void add_data_options(Command command, RunConfig& config, bool required);
void add_model_options(Command command, RunConfig& config);
void add_training_options(Command command, RunConfig& config);
void add_execution_options(Command command, RunConfig& config);
// --batch-size, --fanout and how batches are sampled and scheduled.
void add_batch_options(Command command, RunConfig& config);
// --sampler; throws UserError.
void set_sampler(const std::string& name, SampleOptions& options);
// --epochs for commands that plan and do not train: how long a run the search may reckon with.
void add_planned_epochs(Command command, RunConfig& config);

// --quiet, --verbose
void add_talk_options(Command command);

// "GPU:1" as "cuda:1": how devices are written here.
std::string device_name(const std::string& text);
// "6G", "512M", "1048576" as bytes; throws UserError naming the option.
int64_t parse_size(const std::string& option, const std::string& text);
// Loads the data with progress and notes.
Dataset open_data(const RunConfig& config);
// Applies threads; checks device, precision and mode.
void apply_execution(const RunConfig& config);
// --precision as the device layer knows it; throws UserError.
GemmType gemm_precision(const std::string& precision);
// The notes of a session, how its plan was found and what it takes of a GPU's memory, for people.
void show_session(const VertexModel& session);
// The model of a session with its gradient, before any planning.
Dfg written_dfg(const Session& session);
// "searched in 1.2 s, 14 kernels timed", "from the cache", …
std::string how_found(const PlanAnswer& answer);
// How an interrupted run is continued; nothing for others.
void say_interrupted(const TrainResult& result, const std::string& folder);
// "a,b,c"; of an empty text nothing, and parts may be empty.
std::vector<std::string> split_list(const std::string& text, char at = ',');
// NaN and -1 (no such split) become null.
std::string json_number(double value);
// The same for people: "none".
std::string score_text(double value);
// A line about results: on stdout, or on stderr where stdout is to hold JSON alone.
void say_line(bool json, const std::string& line);

}  // namespace nacre::cli
