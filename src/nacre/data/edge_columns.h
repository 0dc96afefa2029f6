// What the columns of an edge list hold, by the names in its first line.
#pragma once

#include <cstdint>
#include <string_view>

namespace nacre {

enum class EdgeColumn : uint8_t { src, dst, weight, type, ignored };

// Common names of each column are known, in any case; `ignored` for others.
EdgeColumn edge_column_named(std::string_view name);

}  // namespace nacre
