// The conversion that never holds its source in memory.
#pragma once

#include <optional>
#include <string>

#include "nacre/data/convert/convert.h"

namespace nacre {

// Text edge lists, .npy arrays of edges and layouts that can be opened without reading them; nothing for others.
std::optional<ConvertReport> stream_convert(const std::string& source, const std::string& path,
                                            const ConvertOptions& options);

}  // namespace nacre
