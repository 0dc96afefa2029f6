// Texts in a converted file that say how it was made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/data/convert/convert.h"

namespace nacre {

// Returns the name of the data set in the file `path`: "cit-Patents" for "data/cit-Patents.txt.gz".
std::string data_set_name(const std::string& path);
// Returns the source and the options of a conversion as one JSON object, which is kept in the
// converted file.
std::string conversion_json(const std::string& source, const ConvertOptions& options);

std::string unused_note(int64_t unused, int64_t vertices);
std::string loops_note(int64_t loops_added);
// Adds a note if features are stored in another type than f32.
void add_type_note(const ConvertOptions& options, bool has_features, std::vector<std::string>& notes);

}  // namespace nacre
