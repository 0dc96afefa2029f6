// Device code that is compiled with the plug-in: CUB's device-wide algorithms, a few bytes by value, and what a product
// needs beside cuBLASLt. CUB's way: with `temporary` null the call only says in `bytes` how much temporary memory it
// wants.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace nacre::cuda {

struct TemporaryMemory {
  void* memory = nullptr;
  size_t bytes = 0;
};

// Stable, by the low `bits` bits. Sorts from one half of each pair of buffers to the other and back; `in_first` says
// where the result is.
template <class Key>
struct SortBuffers {
  Key* keys[2];
  uint32_t* values[2];
  bool in_first = true;
};
cudaError_t sort_pairs(TemporaryMemory& temporary, SortBuffers<uint32_t>& buffers, int64_t n, int bits,
                       cudaStream_t stream);
cudaError_t sort_pairs(TemporaryMemory& temporary, SortBuffers<uint64_t>& buffers, int64_t n, int bits,
                       cudaStream_t stream);

// out[i] = Σ in[0 … i], n values.
cudaError_t inclusive_sum(TemporaryMemory& temporary, const uint32_t* in, int64_t* out, int64_t n, cudaStream_t stream);

// Positions of flags that are not 0, ascending; their number to *count, in device memory.
cudaError_t positions_of(TemporaryMemory& temporary, const uint8_t* flags, uint32_t* out, int64_t* count, int64_t n,
                         cudaStream_t stream);

// Bytes that travel with a launch.
struct FewBytes {
  unsigned char value[64];
  int count = 0;
};
cudaError_t write_few(void* to, const FewBytes& bytes, cudaStream_t stream);

// c = act(scale · c + bias) for `batch` row-major matrices. scale = 0 does not read c.
struct FinishProduct {
  void* c = nullptr;
  bool bf16 = false;
  int64_t m = 0, n = 0, ldc = 0;
  int64_t batch = 1, stride = 0;
  float scale = 1;
  const float* bias = nullptr;  // n values, or null
  bool relu = false;
};
cudaError_t finish_product(const FinishProduct& work, cudaStream_t stream);

}  // namespace nacre::cuda
