// Checks right before a large allocation that there is room for it.
#pragma once

#include <cstdint>
#include <string>

#include "nacre/train/config.h"

namespace nacre {

// Throws UserError naming `what` if the process may not hold `bytes` more than it holds now. Does
// nothing for programs that do not count their own memory (RunConfig::program_bytes is 0).
void require_room(const RunConfig& config, int64_t bytes, const std::string& what);

}  // namespace nacre
