// Translates CUDA source to C++ that the host's compiler accepts after cuda_shim.h: shared memory
// and asm statements become calls.
#pragma once

#include <string>

namespace nacre::emulator {

// Returns the translated source. Throws InternalError that names the kernel if it uses an
// instruction that is not emulated.
std::string translate(const std::string& source, const std::string& name, int arch);

}  // namespace nacre::emulator
