#include "nacre/kernel/cpu/gtask_tiles.h"

namespace nacre::cpu {
namespace {

// Packing a matrix pays if it is multiplied by at least this many rows on average.
constexpr int64_t kPackRows = 16;

}  // namespace

int64_t gtask_packed_floats(const GTaskView& view, const RowProgram& program) {
  return view.num_edges() < kPackRows * view.num_types ? 0 : packed_floats(program, view.num_types);
}

Tile gtask_tile(const GTaskView& view, TileRunner& runner, int64_t begin, int64_t end) {
  Tile tile;
  tile.first = begin;
  tile.rows = end - begin;
  if (!view.edge.empty()) tile.position = view.edge.data() + begin;
  tile.src = view.src.data() + begin;
  tile.dst = view.dst.data() + begin;
  const Graph& graph = view.tasks->graph;
  if (runner.plan().uses_type && graph.typed()) {
    const uint16_t* types = graph.edge_type().data();
    uint32_t* index = runner.type_index();
    for (int64_t i = 0; i < tile.rows; ++i) index[i] = types[tile.position != nullptr ? tile.position[i] : begin + i];
    tile.type = index;
  }
  return tile;
}

}  // namespace nacre::cpu
