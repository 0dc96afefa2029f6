// Room for one large allocation more, asked for right before it is made.
#pragma once

#include <cstdint>
#include <string>

#include "nacre/train/config.h"

namespace nacre {

// Throws UserError naming `what` where `bytes` more than the process holds now are more than it may
// hold. Only of programs that count themselves (RunConfig::program_bytes).
void require_room(const RunConfig& config, int64_t bytes, const std::string& what);

}  // namespace nacre
