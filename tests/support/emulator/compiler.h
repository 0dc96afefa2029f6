// Uses the C++ compiler of the host instead of NVRTC. An image is the bytes of a shared library.
#pragma once

#include <string>

namespace nacre::emulator {

std::string compile(const std::string& source, const std::string& name, int arch);
// The text changes with the compiler, the shim and the way it is called.
std::string compiler_version();

}  // namespace nacre::emulator
