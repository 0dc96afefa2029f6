// Translates the spellings of other tools: options may be written with underscores, and a few names
// from PyG and DGL are understood.
#pragma once

#include <string>
#include <vector>

namespace nacre::cli {

std::vector<std::string> spelled_our_way(std::vector<std::string> arguments);

}  // namespace nacre::cli
