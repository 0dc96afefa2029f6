// The names of the precisions of matrix products (--precision), in one place for all that reads or
// writes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nacre/device/device.h"

namespace nacre {

std::string_view precision_name(GemmType type);
// Returns the names of all precisions, the exact one first.
std::vector<std::string> precision_names();
// Returns the precision of that name; throws a UserError about --precision if there is none.
GemmType parse_precision(std::string_view name);

}  // namespace nacre
