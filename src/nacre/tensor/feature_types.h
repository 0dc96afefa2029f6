// The types that features are stored in, and the names that options accept for them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nacre/base/names.h"
#include "nacre/tensor/dtype.h"

namespace nacre {

// Returns the names of the types that features are stored in: f32, bf16 and f16.
std::vector<std::string> feature_type_names();

// Returns the type of features with this name. Throws a UserError that names `option` if there is
// none.
DType parse_feature_type(const std::string& option, std::string_view name);

// Returns the names that other programs use for f32, bf16 and f16, for example "float32".
std::vector<Synonym> float_synonyms();

}  // namespace nacre
