// What the kernels over gTasks share: tiles of a unit's entries.
#pragma once

#include <algorithm>

#include "nacre/kernel/cpu/carve.h"
#include "nacre/kernel/cpu/gtask_view.h"
#include "nacre/kernel/cpu/tile_runner.h"

namespace nacre::cpu {

// Floats of the program's matrices in the GEMM's order; 0 where they are used too rarely to
// rearrange them.
int64_t gtask_packed_floats(const GTaskView& view, const RowProgram& program);

// Entries [begin, end), at most a tile of the runner.
Tile gtask_tile(const GTaskView& view, TileRunner& runner, int64_t begin, int64_t end);

// Calls body(tile) for the unit's entries in order. Where the program multiplies, no tile crosses
// the border of a piece: a product's batch is the gTask's. Where it does not, borders mean nothing.
template <class F>
void for_gtask_tiles(const GTaskView& view, const GTaskView::Unit& unit, TileRunner& runner, const F& body) {
  constexpr int64_t step = 12;  // rows of the GEMM's register tile
  const bool pieces = has_products(*runner.plan().program->program);
  const int64_t most = runner.tile_rows();
  for (int64_t p = unit.piece_begin; p < unit.piece_end; p = pieces ? p + 1 : unit.piece_end) {
    const int64_t begin = view.piece_ptr[p];
    const int64_t end = view.piece_ptr[pieces ? p + 1 : unit.piece_end];
    // Equal shares: a short last tile would be a poor product.
    const int64_t tiles = (end - begin + most - 1) / most;
    const int64_t share = pieces ? ((end - begin + tiles - 1) / tiles + step - 1) / step * step : most;
    const int64_t rows = std::min(most, share);
    for (int64_t e = begin; e < end; e += rows) body(gtask_tile(view, runner, e, std::min(end, e + rows)));
  }
}

}  // namespace nacre::cpu
