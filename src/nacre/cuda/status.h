// Turns failures of CUDA calls into exceptions.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "nacre/base/error.h"

namespace nacre::cuda {

std::string describe(cudaError_t code);
std::string describe(CUresult code);

inline bool failed(cudaError_t code) { return code != cudaSuccess; }
inline bool failed(CUresult code) { return code != CUDA_SUCCESS; }

// Throws InternalError with the call and the reason if a call fails. Clears the error that the
// runtime remembers, so that a later call does not report it again.
#define NACRE_CUDA(call)                                                                                               \
  do {                                                                                                                 \
    if (const auto nacre_code = (call); ::nacre::cuda::failed(nacre_code)) {                                           \
      cudaGetLastError();                                                                                              \
      throw ::nacre::InternalError(__FILE__, __LINE__, std::string(#call ": ") + ::nacre::cuda::describe(nacre_code)); \
    }                                                                                                                  \
  } while (0)

}  // namespace nacre::cuda
