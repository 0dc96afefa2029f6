// Makes nacre train --resume RUN take all settings from the folder of the run.
#pragma once

#include <string>
#include <vector>

namespace nacre::cli {

// Returns the `arguments` of nacre train with --resume FOLDER replaced by --checkpoint FOLDER and
// --config FOLDER/config.json, so that options on the command line still win. Throws UserError if
// the folder holds no run.
std::vector<std::string> with_resumed_run(const std::vector<std::string>& arguments);

}  // namespace nacre::cli
