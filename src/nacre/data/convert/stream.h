// The conversion that never holds its source in memory.
#pragma once

#include <string>

#include "nacre/data/convert/convert.h"

namespace nacre {

// True for text edge lists, .npy arrays of edges and layouts that can be opened without reading them.
bool can_stream(const std::string& source, const ConvertOptions& options);
ConvertReport stream_convert(const std::string& source, const std::string& path, const ConvertOptions& options);

}  // namespace nacre
