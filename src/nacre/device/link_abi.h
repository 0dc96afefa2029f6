// The interface between the program and the plug-in that links GPUs. C++ objects cross this border,
// so both sides must be built from the same sources by the same compiler. kLinkAbi changes with
// every change of link.h, so that a library from another build is refused instead of called.
#pragma once

#include "nacre/device/link.h"

namespace nacre {

inline constexpr int kLinkAbi = 1;

// The plug-in has one symbol: extern "C" LinkPlugin* nacre_link_plugin(int abi). The function
// returns null if `abi` is not the number that the plug-in was built with, and throws UserError if
// there is no NCCL. The object lives as long as the process.
using LinkPluginEntry = LinkPlugin* (*)(int abi);
inline constexpr const char* kLinkPluginEntry = "nacre_link_plugin";
inline constexpr const char* kLinkPluginFile = "libnacre_nccl.so";

}  // namespace nacre
