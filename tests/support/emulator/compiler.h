// The host's C++ compiler in the place of NVRTC: an image is the bytes of a shared library.
#pragma once

#include <string>

namespace nacre::emulator {

std::string compile(const std::string& source, const std::string& name, int arch);
// Changes with the compiler, the shim and the way it is called.
std::string compiler_version();

}  // namespace nacre::emulator
