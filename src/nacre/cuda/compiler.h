// Compiles CUDA source to machine code with NVRTC. This needs no device and no driver.
#pragma once

#include <string>

namespace nacre::cuda {

// Returns an image for compute capability `arch` (90 for sm_90) only. Messages of the compiler show
// `name` as the name of the file. Sources may include only what is built into NVRTC, because no
// CUDA headers are searched for on the machine.
std::string compile(const std::string& source, const std::string& name, int arch);

std::string compiler_version();  // returns for example "NVRTC 13.0"

}  // namespace nacre::cuda
