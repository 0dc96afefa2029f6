#include "nacre/cuda/plugin.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>

namespace {

int32_t fail(cudaError_t code, char* error) {
  std::snprintf(error, 256, "%s", cudaGetErrorString(code));
  return -1;
}

cudaError_t describe(int index, NacreCudaDevice& out) {
  cudaDeviceProp properties{};
  if (const cudaError_t e = cudaGetDeviceProperties(&properties, index); e != cudaSuccess) return e;
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  if (const cudaError_t e = cudaSetDevice(index); e != cudaSuccess) return e;
  if (const cudaError_t e = cudaMemGetInfo(&free_bytes, &total_bytes); e != cudaSuccess) return e;
  int clock_khz = 0;
  if (const cudaError_t e = cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, index); e != cudaSuccess) return e;
  std::snprintf(out.name, sizeof out.name, "%s", properties.name);
  out.memory_bytes = static_cast<int64_t>(total_bytes);
  out.free_bytes = static_cast<int64_t>(free_bytes);
  out.multiprocessors = properties.multiProcessorCount;
  out.compute_major = properties.major;
  out.compute_minor = properties.minor;
  out.clock_mhz = clock_khz / 1000;
  out.l2_bytes = properties.l2CacheSize;
  return cudaSuccess;
}

}  // namespace

int32_t nacre_cuda_abi() { return NACRE_CUDA_ABI; }

int32_t nacre_cuda_devices(NacreCudaDevice* devices, int32_t capacity, char* error) {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found == cudaErrorNoDevice) return 0;
  if (found != cudaSuccess) return fail(found, error);
  for (int i = 0; i < std::min<int>(count, capacity); ++i) {
    if (const cudaError_t e = describe(i, devices[i]); e != cudaSuccess) return fail(e, error);
  }
  return count;
}
