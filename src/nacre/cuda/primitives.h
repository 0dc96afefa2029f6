// Device code that is compiled with the plug-in: algorithms of CUB, copies of a few bytes by value,
// and the part of a product that cuBLASLt does not do. As in CUB, a call with temporary.memory null
// only sets temporary.bytes to the size of the temporary memory that it needs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace nacre::cuda {

struct TemporaryMemory {
  void* memory = nullptr;
  size_t bytes = 0;
};

// Buffers of a stable sort by the low `bits` bits of the keys. keys and values have two buffers
// each, between which the sort moves the data. `in_first` says whether the result is in keys[0] and
// values[0].
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

// Computes out[i] = Σ in[0 … i] for n values.
cudaError_t inclusive_sum(TemporaryMemory& temporary, const uint32_t* in, int64_t* out, int64_t n, cudaStream_t stream);

// Writes the positions of the flags that are not 0 to `out`, in ascending order, and the number of
// these positions to *count in device memory.
cudaError_t positions_of(TemporaryMemory& temporary, const uint8_t* flags, uint32_t* out, int64_t* count, int64_t n,
                         cudaStream_t stream);

// Holds a few bytes that are passed by value with a launch.
struct FewBytes {
  unsigned char value[64];
  int count = 0;
};
cudaError_t write_few(void* to, const FewBytes& bytes, cudaStream_t stream);

// Describes c = act(scale · c + bias) for `batch` row-major matrices. If scale is 0, c is not read.
struct FinishProduct {
  void* c = nullptr;
  bool bf16 = false;
  int64_t m = 0, n = 0, ldc = 0;
  int64_t batch = 1, stride = 0;
  float scale = 1;
  const float* bias = nullptr;  // n values, or null if there is none
  bool relu = false;
};
cudaError_t finish_product(const FinishProduct& work, cudaStream_t stream);

}  // namespace nacre::cuda
