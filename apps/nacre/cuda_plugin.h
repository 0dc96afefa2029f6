// Opens the CUDA plug-in, if there is one.
#pragma once

#include <string>
#include <vector>

#include "nacre/cuda/plugin.h"

namespace nacre::cli {

struct CudaDevices {
  std::vector<NacreCudaDevice> list;
  std::string reason;  // why the list is empty
};
CudaDevices find_cuda_devices();

}  // namespace nacre::cli
