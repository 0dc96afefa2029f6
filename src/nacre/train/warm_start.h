// Training that begins with the weights of another run.
#pragma once

#include <string>

#include "nacre/train/parameters.h"

namespace nacre {

// Whether a run in this folder has left a checkpoint.
bool has_checkpoint(const std::string& folder);

// Bytes of the file that warm_start() reads. Throws UserError if there is none.
int64_t warm_start_bytes(const std::string& from);

// Copies weights by name from a run folder (its final weights, or those of its newest checkpoint) or a .safetensors
// file. Names or shapes that do not fit are refused (UserError, naming some of them); where `partial` is set they are
// left as they are, as long as any fits. Returns how many of the parameters were set.
int warm_start(const std::string& from, bool partial, Parameters& parameters);

}  // namespace nacre
