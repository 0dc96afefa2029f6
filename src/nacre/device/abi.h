// The border between the program and the CUDA plug-in. Both are built from the same sources by the same compiler: C++
// objects cross it. The number changes with every change of device.h, so that a library left from another build is
// refused and not called.
#pragma once

#include "nacre/device/device.h"

namespace nacre {

inline constexpr int kDeviceAbi = 5;

// The one symbol of the plug-in: extern "C" DevicePlugin* nacre_cuda_plugin(int abi). Null for any number but its own.
// The object lives as long as the process.
using DevicePluginEntry = DevicePlugin* (*)(int abi);
inline constexpr const char* kDevicePluginEntry = "nacre_cuda_plugin";
inline constexpr const char* kDevicePluginFile = "libnacre_cuda.so";

}  // namespace nacre
