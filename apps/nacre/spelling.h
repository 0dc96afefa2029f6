// People come from several tools: options may be written with underscores, and a few names from PyG and DGL are
// understood.
#pragma once

#include <string>
#include <vector>

namespace nacre::cli {

// The arguments after the program's name, in reverse order as CLI11 takes them.
std::vector<std::string> spelled_our_way(int argc, char** argv);

}  // namespace nacre::cli
