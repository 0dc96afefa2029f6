// Reads settings from files (--config). Such a file is a TOML file whose keys are the names of
// options, or the config.json of a run, which repeats that run. docs/configuration.md describes
// both.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "command.h"

namespace nacre::cli {

struct FileSettings {
  // Words of the command line that stand for the settings. They must come before everything that
  // the user typed.
  std::vector<std::string> words;
  std::set<std::string> of_runs;  // options that only the config.json of a run sets
};

// Returns the settings of the files that `arguments` name with --config; each key is an option of
// `command`. Throws UserError, which names the file, the line if it is known, and the setting that
// was probably meant.
FileSettings settings_of_files(const CLI::App& command, const std::vector<std::string>& arguments);

// Returns `arguments` for a program that replaces this one. A pipe that settings_of_files() has
// read is empty, so --config then names a file in memory that has the same text and stays open.
// Throws RuntimeError if no such file can be made.
std::vector<std::string> with_pipes_kept(std::vector<std::string> arguments);

}  // namespace nacre::cli
