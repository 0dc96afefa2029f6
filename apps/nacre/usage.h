// Prepares for CLI11 what the user typed: `nacre help train`, names of commands in any capitals,
// settings from files. Commands and options that do not exist are refused here, with the name that
// was probably meant.
#pragma once

#include <string>
#include <vector>

#include "command.h"

namespace nacre::cli {

// Returns the arguments for CLI11. `arguments` come without the program's name. Throws UserError if
// a command or option does not exist, or if a settings file is wrong.
std::vector<std::string> understood(CLI::App& app, std::vector<std::string> arguments);

// Returns CLI11's message about arguments that it cannot parse, in words for users.
std::string complaint(const std::string& of_parser);

}  // namespace nacre::cli
