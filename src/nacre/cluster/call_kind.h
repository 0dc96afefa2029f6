// Names the kinds of calls that ranks make together.
#pragma once

#include <cstdint>

namespace nacre {

enum class CallKind : uint8_t { exchange, all_reduce, gather };
const char* name_of(CallKind kind);

}  // namespace nacre
