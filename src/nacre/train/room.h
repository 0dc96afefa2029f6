// Checks right before a large allocation that there is room for it.
#pragma once

#include <cstdint>
#include <string>

#include "nacre/train/config.h"

namespace nacre {

// Throws UserError naming `what` and the remedy, by default a smaller model or graph, if the
// process may not hold `bytes` more than it holds now; mapped files count as if they were read.
// Does nothing for programs that do not count their own memory (RunConfig::program_bytes is 0).
void require_room(const RunConfig& config, int64_t bytes, const std::string& what, const std::string& remedy = "");

// Returns whether require_room() would accept this many bytes.
bool has_room(const RunConfig& config, int64_t bytes);

}  // namespace nacre
