// Functions of the driver that the CUDA runtime does not offer. The plug-in does not link
// libcuda.so.1, so that it can be opened and can compile kernels on a machine without a driver. The
// runtime looks the functions up at the first use.
#pragma once

#include "nacre/cuda/status.h"

namespace nacre::cuda {

struct Driver {
  decltype(&cuGetErrorString) error_string = nullptr;
  decltype(&cuCtxGetCurrent) context_current = nullptr;
  decltype(&cuCtxPushCurrent) context_push = nullptr;
  decltype(&cuCtxPopCurrent) context_pop = nullptr;
  decltype(&cuLibraryLoadData) library_load = nullptr;
  decltype(&cuLibraryUnload) library_unload = nullptr;
  decltype(&cuLibraryGetKernel) library_kernel = nullptr;
  decltype(&cuKernelGetFunction) kernel_function = nullptr;
  decltype(&cuKernelGetAttribute) kernel_attribute = nullptr;
  decltype(&cuKernelSetAttribute) set_kernel_attribute = nullptr;
  decltype(&cuLaunchKernel) launch = nullptr;
  decltype(&cuOccupancyMaxActiveBlocksPerMultiprocessor) occupancy = nullptr;
  // Functions for green contexts. They are null if the driver has no green contexts.
  decltype(&cuDeviceGetDevResource) device_resource = nullptr;
  decltype(&cuDevSmResourceSplitByCount) split_resource = nullptr;
  decltype(&cuDevResourceGenerateDesc) describe_resource = nullptr;
  decltype(&cuGreenCtxCreate) green_create = nullptr;
  decltype(&cuGreenCtxDestroy) green_destroy = nullptr;
  decltype(&cuCtxFromGreenCtx) green_context = nullptr;
  decltype(&cuGreenCtxStreamCreate) green_stream = nullptr;
};

// Returns the functions. Throws InternalError if a function is missing that every driver for CUDA
// 13 has.
const Driver& driver();

}  // namespace nacre::cuda
