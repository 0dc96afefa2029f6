// Prepares what was typed for CLI11: `nacre help train`, names of commands in any capitals,
// settings from files. Commands and options that do not exist are refused here, with the name that
// was probably meant.
#pragma once

#include <string>
#include <vector>

#include "command.h"

namespace nacre::cli {

// Returns the arguments for CLI11. `arguments` come without the program's name. Throws UserError.
std::vector<std::string> understood(CLI::App& app, std::vector<std::string> arguments);

// Returns what CLI11 says about arguments that it cannot parse, in words that do not speak of its
// own types.
std::string complaint(const std::string& of_parser);

}  // namespace nacre::cli
