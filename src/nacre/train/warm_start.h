// Starts training with the weights of another run.
#pragma once

#include <string>

#include "nacre/train/parameters.h"

namespace nacre {

// Returns whether a run has left a checkpoint in this folder.
bool has_checkpoint(const std::string& folder);

// Returns the bytes of the file that warm_start() reads. Throws UserError if there is none.
int64_t warm_start_bytes(const std::string& from);

// Copies weights by name from a run folder (its final weights, or those of its newest checkpoint)
// or from a .safetensors file. Throws UserError, which names some of them, if names or shapes do
// not fit. With `partial`, parameters that do not fit are left as they are, as long as at least one
// fits. Returns how many parameters were set.
int warm_start(const std::string& from, bool partial, Parameters& parameters);

}  // namespace nacre
