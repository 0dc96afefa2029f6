// Writes the source of the kernel with which a device keeps rows of a batch that load_rows() has
// loaded: it stores them in seats, in the format of the buffer that load_rows() reads.
#pragma once

#include "nacre/kernel/cuda/load_rows.h"

namespace nacre::cuda {

// `rows` are f32 without gaps, as load_rows() writes them. `seats` is the address of the first
// seat; the other seats follow at the distance of RowFormat::stride().
NACRE_PARAMS(KeepRowsParams, (const float* __restrict__, rows), (const u32* __restrict__, from),
             (const u32* __restrict__, to), (u64, seats), (i64, count));
// Stores row from[i] of `rows` in seat to[i], with the bits that it was loaded from. Seats must be
// distinct. The kernel may be launched with any number of blocks.
Source keep_rows(const RowFormat& format);
// Returns the number of blocks that keep `multiprocessors` busy with keeping `count` rows.
int64_t keep_blocks(const RowFormat& format, int64_t count, int multiprocessors);

}  // namespace nacre::cuda
