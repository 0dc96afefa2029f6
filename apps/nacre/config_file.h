// Settings from a TOML file, as if they had been typed before everything else on the command line.
#pragma once

#include <string>
#include <vector>

namespace nacre::cli {

// `arguments` (without the program's name) with the keys of every --config FILE inserted as --KEY=VALUE behind the
// command, so that whatever stands on the command line wins. Tables of the file are only for order. Throws UserError.
std::vector<std::string> with_config_files(const std::vector<std::string>& arguments);

}  // namespace nacre::cli
