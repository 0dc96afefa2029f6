// Checks before a conversion begins that it stays within the memory it was given.
#pragma once

#include <string>

#include "nacre/data/convert/convert.h"
#include "nacre/data/formats/builder.h"

namespace nacre {

// Checks a set whose edges stream, so that only its labels and splits, and features that cannot be
// read row by row, take memory. Throws UserError if these do not fit, or if the set and the options
// contradict each other.
void check_set(const DatasetBuilder& set, const std::string& source, const ConvertOptions& options);
// Checks a source that is read as a whole, by the inflated size of its files. Throws UserError if
// it does not fit.
void check_whole(const std::string& source, const ConvertOptions& options);

}  // namespace nacre
