// Implements Device (device/device.h) with CUDA.
#pragma once

#include <memory>

#include "nacre/device/device.h"

namespace nacre::cuda {

std::unique_ptr<Device> open_device(int index, int multiprocessors);

}  // namespace nacre::cuda
