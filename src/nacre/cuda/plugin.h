// The border between the program and the CUDA plug-in: C linkage and plain structures, so that the program starts on
// machines without CUDA. The program opens libnacre_cuda.so from its own folder (or ../lib) at run time.
#pragma once

#include <cstdint>

#define NACRE_CUDA_ABI 1

struct NacreCudaDevice {
  char name[256];
  int64_t memory_bytes;
  int64_t free_bytes;
  int32_t multiprocessors;
  int32_t compute_major;
  int32_t compute_minor;
  int32_t clock_mhz;
  int64_t l2_bytes;
};

extern "C" {

// NACRE_CUDA_ABI of the plug-in; a program refuses any other number than its own.
int32_t nacre_cuda_abi();

// Fills up to `capacity` devices and returns how many there are, or -1 with a reason in `error` (256 bytes).
int32_t nacre_cuda_devices(NacreCudaDevice* devices, int32_t capacity, char* error);

}  // extern "C"
