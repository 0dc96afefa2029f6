// The interface between the program and the CUDA plug-in. C++ objects cross this border, so both
// sides must be built from the same sources by the same compiler. kDeviceAbi changes with every
// change of device.h, so that a library from another build is refused instead of called.
#pragma once

#include "nacre/device/device.h"

namespace nacre {

inline constexpr int kDeviceAbi = 8;

// The plug-in has one symbol: extern "C" DevicePlugin* nacre_cuda_plugin(int abi). The function
// returns null if `abi` is not the number that the plug-in was built with. The object lives as long
// as the process.
using DevicePluginEntry = DevicePlugin* (*)(int abi);
inline constexpr const char* kDevicePluginEntry = "nacre_cuda_plugin";
inline constexpr const char* kDevicePluginFile = "libnacre_cuda.so";

}  // namespace nacre
