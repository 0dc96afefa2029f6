// The border between the program and the CUDA plug-in: plain C, so that the program starts on machines without CUDA.
// The program opens libnacre_cuda.so from its own folder (or ../lib) at run time.
#pragma once

#include <stdint.h>  // NOLINT(modernize-deprecated-headers): a C header

#define NACRE_CUDA_ABI 1

// NOLINTBEGIN(modernize-use-using): a C header
typedef struct {
  char name[256];
  int64_t memory_bytes;
  int64_t free_bytes;
  int32_t multiprocessors;
  int32_t compute_major;
  int32_t compute_minor;
  int32_t clock_mhz;
  int64_t l2_bytes;
} NacreCudaDevice;
// NOLINTEND(modernize-use-using)

#ifdef __cplusplus
extern "C" {
#endif

// NACRE_CUDA_ABI of the plug-in; a program refuses any other number than its own.
int32_t nacre_cuda_abi(void);

// Fills up to `capacity` devices and returns how many there are, or -1 with a reason in `error` (256 bytes).
int32_t nacre_cuda_devices(NacreCudaDevice* devices, int32_t capacity, char* error);

#ifdef __cplusplus
}
#endif
