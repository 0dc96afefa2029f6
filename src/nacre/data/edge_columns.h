// Finds out what the columns of an edge list hold, from the names in its first line.
#pragma once

#include <cstdint>
#include <string_view>

namespace nacre {

enum class EdgeColumn : uint8_t { src, dst, weight, type, ignored };

// Knows the common names of each column, in upper and lower case. Returns `ignored` for other
// names.
EdgeColumn edge_column_named(std::string_view name);

}  // namespace nacre
