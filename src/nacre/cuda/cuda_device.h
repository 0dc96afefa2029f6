// device.h on CUDA: one class over the parts beside it.
#pragma once

#include <memory>

#include "nacre/device/device.h"

namespace nacre::cuda {

std::unique_ptr<Device> open_device(int index, int multiprocessors);

}  // namespace nacre::cuda
