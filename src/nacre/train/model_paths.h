// This file finds the file of a run's model again.
#pragma once

#include <string>

namespace nacre {

// Returns `text`, which names a model in a file as PATH:MODEL, with the path that found_again()
// (config.h) finds for the file. `folder` is the folder in which the run was started.
std::string model_file_again(const std::string& text, const std::string& folder);

}  // namespace nacre
