// Whether a conversion stays within the memory it was given, told before it begins.
#pragma once

#include <string>

#include "nacre/data/convert/convert.h"
#include "nacre/data/formats/builder.h"

namespace nacre {

// Of a set that streams: what belongs to its vertices, and features that cannot be read row by row. Throws UserError.
void check_set(const DatasetBuilder& set, const std::string& source, const ConvertOptions& options);
// Of a source that is read as a whole: by the size of its files, as they are when inflated. Throws UserError.
void check_whole(const std::string& source, const ConvertOptions& options);

}  // namespace nacre
