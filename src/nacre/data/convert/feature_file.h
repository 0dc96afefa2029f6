// Feature files that are read row by row, whatever their size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nacre/data/native_writer.h"

namespace nacre {

// A .npy matrix of f16, f32 or f64 in C order, or a headerless file of f32 rows (.bin or .raw), whose width follows
// from its size and the number of vertices. Nothing for other files, which are read whole. Throws UserError when the
// rows do not fit the vertices.
std::optional<native::RowSource> open_feature_rows(const std::string& path, int64_t num_nodes);
bool has_feature_rows(const std::string& path);

}  // namespace nacre
