// Writes the source of the kernel with which a device loads the feature rows of a batch (contract
// row DP4). The kernel reads each row from the device's own memory, from the memory of a peer
// device, or from page-locked memory of the host over the link.
#pragma once

#include "nacre/kernel/cuda/params.h"
#include "nacre/tensor/dtype.h"

namespace nacre::cuda {

// Says how rows lie in the buffers that are read: they have f32, bf16 or f16 values, and every row
// begins at a multiple of 16 bytes.
struct RowFormat {
  DType type = DType::f32;
  int64_t width = 0;  // number of values of a row

  int64_t bytes() const { return width * dtype_size(type); }  // bytes of the values of a row
  // Returns the bytes from one row to the next. Rows begin at whole lines of 128 bytes where that
  // takes little memory.
  int64_t stride() const;
};

// Says how the rows of a batch are found.
enum class RowPlaces : uint8_t {
  by_vertex,        // all rows are in buffer 0, at the numbers of their vertices
  in_order,         // all rows are in buffer 0, in the order of the batch
  by_tables,        // the tables `holder` and `position` say where each row is
  gathered,         // as by_tables, but rows in buffer 0 are at `gathered`, a list of the batch
  cached,           // `gathered` has the number of each row in buffer 1; rows that have none are in
                    // buffer 0, at the numbers of their vertices
  cached_gathered,  // as cached, but rows in buffer 0 are at the numbers in `gathered`
};

// The bit of an entry of `gathered` that says that the row is in buffer 0, if rows are cached.
constexpr uint32_t kNotCached = uint32_t{1} << 31;

// Buffer 0 is at `base`: memory of the host, or rows of this batch that came from host memory.
// Buffer d, the memory of a device, is at buffers[d - 1]. For each vertex, `holder` has the number
// of the buffer and `position` the number of the row in it.
NACRE_PARAMS(LoadRowsParams, (u64, base), (const u64* __restrict__, buffers), (const u8* __restrict__, holder),
             (const u32* __restrict__, position), (const u32* __restrict__, ids), (const u32* __restrict__, gathered),
             (float* __restrict__, out), (i64, rows));
// Writes the row of vertex ids[i] to row i of `out`, as f32 without gaps. The kernel may be
// launched with any number of blocks.
Source load_rows(const RowFormat& format, RowPlaces places);
// Returns the number of blocks that keep `multiprocessors` busy with loading and leave room for
// kernels that compute at the same time.
int64_t load_blocks(const RowFormat& format, int64_t rows, int multiprocessors);

}  // namespace nacre::cuda
