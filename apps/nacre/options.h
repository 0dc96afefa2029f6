// Options that several commands share. They are written straight into a RunConfig.
#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "nacre/train/session.h"
#include "nacre/train/trainer.h"

namespace nacre::cli {

// Each of these functions adds a group of options to a command; the options fill `config` when the
// command line is parsed.
void add_data_options(Command command, RunConfig& config, bool required);
void add_model_options(Command command, RunConfig& config);
void add_training_options(Command command, RunConfig& config);
void add_execution_options(Command command, RunConfig& config);
void add_rank_options(Command command, RunConfig& config);
// Adds --disable-pass, for commands that plan training.
void add_pass_option(Command command, RunConfig& config);
// Returns the numbers of --shares. Throws UserError if the text is not a list of shares.
std::vector<double> parse_shares(const std::string& text);
// Adds --batch-size, --fanout and the options that say how batches are sampled and scheduled.
void add_batch_options(Command command, RunConfig& config);
// These functions return the names that --schedule takes besides auto, and the synonyms that it
// accepts for them.
std::vector<std::string> schedule_choices();
std::vector<Synonym> schedule_synonyms();
// Adds --features-on and the options that say where features lie. add_batch_options() calls this.
void add_feature_options(Command command, RunConfig& config);
// Sets the sampler in `options` from the value of --sampler. Throws UserError if no sampler has
// this name.
void set_sampler(const std::string& name, SampleOptions& options);
// Adds --epochs for commands that plan and do not train. There it gives the length of the run over
// which the time of a search must pay off.
void add_planned_epochs(Command command, RunConfig& config);

// Adds --quiet and --verbose.
void add_talk_options(Command command);

// Returns a device as the program writes it, for example "cuda:1" for "GPU:1".
std::string device_name(const std::string& text);
// Returns a size such as "6G", "512M" or "1048576" in bytes; throws UserError, which names the
// option.
int64_t parse_size(const std::string& option, const std::string& text);
// Reads the data and returns them. Shows progress and notes.
Dataset open_data(const RunConfig& config);
// Sets the number of threads. Throws UserError if the device, precision or mode is wrong.
void apply_execution(const RunConfig& config);
// Prints, for people, the notes of a session, how its plan was found and how much GPU memory it
// takes.
void show_session(const VertexModel& session);
// Returns the model of a session with its gradient, before any planning.
Dfg written_dfg(const Session& session);
// Returns a text such as "searched in 1.2 s, 14 kernels timed" or "from the cache".
std::string how_found(const PlanAnswer& answer);
// Says how an interrupted run can be continued. Prints nothing if the run was not interrupted.
void say_interrupted(const TrainResult& result, const std::string& folder);
// Splits "a,b,c" into its parts, which may be empty. An empty text has no parts.
std::vector<std::string> split_list(const std::string& text, char at = ',');
// Returns the number as JSON: "null" for NaN and for -1, which stands for the score of a split that
// does not exist.
std::string json_number(double value);
// Returns a score as text for people: "none" for NaN and for -1, as in json_number().
std::string score_text(double value);
// Prints a line about results on stdout, or on stderr if stdout must hold JSON alone.
void say_line(bool json, const std::string& line);

}  // namespace nacre::cli
