// Cuts the entries of a unit into tiles, for all kernels over gTasks.
#pragma once

#include <algorithm>

#include "nacre/kernel/cpu/carve.h"
#include "nacre/kernel/cpu/gtask_view.h"
#include "nacre/kernel/cpu/tile_runner.h"

namespace nacre::cpu {

// Returns the number of floats that the program's matrices take when packed for the GEMM; 0 if they
// are used too rarely for packing to pay.
int64_t gtask_packed_floats(const GTaskView& view, const RowProgram& program);

// Returns the tile of entries [begin, end), which are at most as many as a tile of the runner
// holds.
Tile gtask_tile(const GTaskView& view, TileRunner& runner, int64_t begin, int64_t end);

// Calls body(tile) for the entries of the unit in order. If the program multiplies, no tile crosses
// the border of a piece, because a product works on the rows of one gTask. If it does not multiply,
// borders do not matter.
template <class F>
void for_gtask_tiles(const GTaskView& view, const GTaskView::Unit& unit, TileRunner& runner, const F& body) {
  constexpr int64_t step = 12;  // number of rows of the GEMM's register tile
  const bool pieces = has_products(*runner.plan().program->program);
  const int64_t most = runner.tile_rows();
  for (int64_t p = unit.piece_begin; p < unit.piece_end; p = pieces ? p + 1 : unit.piece_end) {
    const int64_t begin = view.piece_ptr[p];
    const int64_t end = view.piece_ptr[pieces ? p + 1 : unit.piece_end];
    // The tiles get equal shares of the rows, because a short last tile would multiply slowly.
    const int64_t tiles = (end - begin + most - 1) / most;
    const int64_t share = pieces ? ((end - begin + tiles - 1) / tiles + step - 1) / step * step : most;
    const int64_t rows = std::min(most, share);
    for (int64_t e = begin; e < end; e += rows) body(gtask_tile(view, runner, e, std::min(end, e + rows)));
  }
}

}  // namespace nacre::cpu
