// The conversion that never holds its source in memory.
#pragma once

#include <optional>
#include <string>

#include "nacre/data/convert/convert.h"

namespace nacre {

// Converts text edge lists, .npy arrays of edges, and layouts that can be opened without reading
// them. Returns nothing for other sources.
std::optional<ConvertReport> stream_convert(const std::string& source, const std::string& path,
                                            const ConvertOptions& options);

}  // namespace nacre
