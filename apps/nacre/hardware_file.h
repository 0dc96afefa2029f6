// Reads described hardware from a TOML file (docs/many_devices.md), for nacre simulate.
#pragma once

#include <string>

#include "nacre/cost/hardware.h"

namespace nacre::cli {

// Returns the hardware that `text` names: a TOML file, or a name of cost/hardware.h. Throws a
// UserError that names the file and the line if the description is wrong.
Hardware read_hardware(const std::string& text);

}  // namespace nacre::cli
