// Implements device.h without a GPU.
#pragma once

#include <memory>

#include "nacre/device/device.h"

namespace nacre::emulator {

DeviceInfo describe_device();
std::unique_ptr<Device> open_device(int multiprocessors);

}  // namespace nacre::emulator
