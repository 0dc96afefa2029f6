// CUDA source to machine code, by NVRTC. Needs no device and no driver.
#pragma once

#include <string>

namespace nacre::cuda {

// An image for compute capability `arch` (90: sm_90) only. `name` stands for the file in messages. Sources may include
// nothing but what NVRTC has built in: no CUDA header is looked for on the machine.
std::string compile(const std::string& source, const std::string& name, int arch);

std::string compiler_version();  // "NVRTC 13.0"

}  // namespace nacre::cuda
