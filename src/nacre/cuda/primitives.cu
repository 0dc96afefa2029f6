#include "nacre/cuda/primitives.h"

#include <cuda_bf16.h>

#include <thrust/iterator/counting_iterator.h>
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <cuda/std/functional>

namespace nacre::cuda {
namespace {

template <class Key>
cudaError_t sort(TemporaryMemory& temporary, SortBuffers<Key>& buffers, int64_t n, int bits, cudaStream_t stream) {
  cub::DoubleBuffer<Key> keys(buffers.keys[0], buffers.keys[1]);
  cub::DoubleBuffer<uint32_t> values(buffers.values[0], buffers.values[1]);
  const cudaError_t code =
      cub::DeviceRadixSort::SortPairs(temporary.memory, temporary.bytes, keys, values, n, 0, bits, stream);
  buffers.in_first = keys.selector == 0;
  return code;
}

struct IsSet {
  const uint8_t* flags;
  __device__ bool operator()(uint32_t i) const { return flags[i] != 0; }
};

__global__ void write_bytes(unsigned char* to, FewBytes bytes) {
  const auto i = static_cast<int>(threadIdx.x);
  if (i < bytes.count) to[i] = bytes.value[i];
}

__device__ float read(const float* c, int64_t i) { return c[i]; }
__device__ float read(const __nv_bfloat16* c, int64_t i) { return __bfloat162float(c[i]); }
__device__ void write(float* c, int64_t i, float value) { c[i] = value; }
__device__ void write(__nv_bfloat16* c, int64_t i, float value) { c[i] = __float2bfloat16(value); }

// Computes what FinishProduct describes. The threads of a block form a tile of rows and columns:
// threads with neighbouring threadIdx.x have neighbouring columns, and threadIdx.y counts rows.
template <class Element>
__global__ void finish(FinishProduct work) {
  auto* c = static_cast<Element*>(work.c);
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < work.batch * work.m;
       row += int64_t{gridDim.x} * blockDim.y) {
    const int64_t first = work.batch == 1 ? row * work.ldc : row / work.m * work.stride + row % work.m * work.ldc;
    for (int64_t column = threadIdx.x; column < work.n; column += blockDim.x) {
      const int64_t at = first + column;
      float value = work.scale == 0 ? 0.0F : work.scale * read(c, at);
      if (work.bias != nullptr) value += work.bias[column];
      // max() would turn a NaN into 0, so a comparison is used.
      if (work.relu && value < 0) value = 0;
      write(c, at, value);
    }
  }
}

}  // namespace

cudaError_t sort_pairs(TemporaryMemory& temporary, SortBuffers<uint32_t>& buffers, int64_t n, int bits,
                       cudaStream_t stream) {
  return sort(temporary, buffers, n, bits, stream);
}

cudaError_t sort_pairs(TemporaryMemory& temporary, SortBuffers<uint64_t>& buffers, int64_t n, int bits,
                       cudaStream_t stream) {
  return sort(temporary, buffers, n, bits, stream);
}

cudaError_t inclusive_sum(TemporaryMemory& temporary, const uint32_t* in, int64_t* out, int64_t n,
                          cudaStream_t stream) {
  // CUB adds in the type of the initial value plus an element. int64_t{0} makes the sums 64 bits
  // wide; InclusiveSum would add in the 32 bits of the input and could overflow.
  return cub::DeviceScan::InclusiveScanInit(temporary.memory, temporary.bytes, in, out, ::cuda::std::plus<>{},
                                            int64_t{0}, n, stream);
}

cudaError_t positions_of(TemporaryMemory& temporary, const uint8_t* flags, uint32_t* out, int64_t* count, int64_t n,
                         cudaStream_t stream) {
  return cub::DeviceSelect::If(temporary.memory, temporary.bytes, thrust::counting_iterator<uint32_t>(0), out, count, n,
                               IsSet{flags}, stream);
}

cudaError_t write_few(void* to, const FewBytes& bytes, cudaStream_t stream) {
  write_bytes<<<1, sizeof bytes.value, 0, stream>>>(static_cast<unsigned char*>(to), bytes);
  return cudaGetLastError();
}

cudaError_t finish_product(const FinishProduct& work, cudaStream_t stream) {
  const int64_t rows = work.batch * work.m;
  if (rows * work.n == 0) return cudaSuccess;
  unsigned columns = 32;
  while (columns < 256 && columns < work.n) columns *= 2;
  const dim3 block(columns, 256 / columns);
  const auto blocks = static_cast<unsigned>(std::min<int64_t>((rows + block.y - 1) / block.y, 16384));
  if (work.bf16) {
    finish<__nv_bfloat16><<<blocks, block, 0, stream>>>(work);
  } else {
    finish<float><<<blocks, block, 0, stream>>>(work);
  }
  return cudaGetLastError();
}

}  // namespace nacre::cuda
