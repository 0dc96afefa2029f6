// Uses the C++ compiler of the host instead of NVRTC. An image is the bytes of a shared library.
#pragma once

#include <string>

namespace nacre::emulator {

std::string compile(const std::string& source, const std::string& name, int arch);
// Returns a text that changes with the compiler, the shim and the way the compiler is called.
std::string compiler_version();

}  // namespace nacre::emulator
