// nacre train --resume RUN: everything else is in the run's own folder.
#pragma once

#include <string>
#include <vector>

namespace nacre::cli {

// `arguments` of nacre train. A folder behind --resume becomes --checkpoint FOLDER and --config
// FOLDER/config.json, so that what is typed besides still wins. Throws UserError when the folder
// holds no run.
std::vector<std::string> with_resumed_run(const std::vector<std::string>& arguments);

}  // namespace nacre::cli
