#include <algorithm>
#include <array>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/gemm.h"
#include "nacre/kernel/cpu/gtask_tiles.h"

namespace nacre::cpu {
namespace {

// The gTasks are cut into shares, and each share has one partial sum. There are as many shares as
// the workspace may hold, but few enough that adding up their sums takes little time.
constexpr int64_t kWorkspaceFloats = 16 << 20;
constexpr int64_t kMaxShares = 16;

struct Problem {
  const GTaskView& view;
  const RowProgram& program;
  int x, g;
  bool typed;

  int64_t width(int reg) const { return program.widths[reg]; }
  int64_t matrix() const { return width(x) * width(g); }
  int64_t matrices() const { return typed ? view.num_types : 1; }
  int64_t shares() const {
    const int64_t fit = kWorkspaceFloats / std::max<int64_t>(1, matrices() * matrix());
    return std::clamp<int64_t>(std::min<int64_t>(fit, static_cast<int64_t>(view.units.size())), 1, kMaxShares);
  }
};

struct Workspace {
  float* packed = nullptr;
  // The sums of the shares 1, 2, …; the sum of share 0 is computed in the result itself.
  float* sums = nullptr;
};

Workspace carve(const Problem& problem, Carve& memory) {
  Workspace ws;
  const int64_t packed = gtask_packed_floats(problem.view, problem.program);
  if (packed > 0) ws.packed = memory.take(packed);
  ws.sums = memory.take((problem.shares() - 1) * problem.matrices() * problem.matrix());
  return ws;
}

// Returns a tile with its rows ordered by type, which gives long products.
class TypeSort {
 public:
  Tile operator()(Tile tile) {
    if (tile.type == nullptr || std::is_sorted(tile.type, tile.type + tile.rows)) return tile;
    NACRE_CHECK(tile.rows <= kMaxProductRows, "the tile has too many rows to be sorted");
    const auto rows = static_cast<size_t>(tile.rows);
    for (size_t i = 0; i < rows; ++i) order_[i] = uint64_t{tile.type[i]} << 32 | i;
    std::sort(order_.begin(), order_.begin() + tile.rows);
    for (size_t i = 0; i < rows; ++i) {
      const size_t from = order_[i] & 0xFFFFFFFF;
      position_[i] = tile.position != nullptr ? tile.position[from] : static_cast<uint32_t>(tile.first) + from;
      src_[i] = tile.src[from];
      dst_[i] = tile.dst[from];
      type_[i] = static_cast<uint32_t>(order_[i] >> 32);
    }
    tile.position = position_.data();
    tile.src = src_.data();
    tile.dst = dst_.data();
    tile.type = type_.data();
    return tile;
  }

 private:
  template <class T>
  using PerRow = std::array<T, kMaxProductRows>;
  PerRow<uint64_t> order_;
  PerRow<uint32_t> position_, src_, dst_, type_;
};

// Adds xᵀ·g of one tile, with one product for each run of equal types.
void add_tile(const Problem& problem, const TileRunner& runner, const Tile& tile, float* dw) {
  const Rows& x = runner.value(problem.x);
  const Rows& g = runner.value(problem.g);
  const uint32_t* type = problem.typed ? tile.type : nullptr;
  for (int64_t r = 0; r < tile.rows;) {
    const int64_t t = type == nullptr ? 0 : type[r];
    int64_t end = type == nullptr ? tile.rows : r + 1;
    while (end < tile.rows && type[end] == t) ++end;
    gemm_tile_tn(end - r, g.width, x.width, x.base + r * x.width, x.width, g.base + r * g.width, g.width,
                 dw + t * problem.matrix(), g.width, 1.0f);
    r = end;
  }
}

}  // namespace

int64_t gtask_weight_grad_workspace(const GTaskView& view, const RowProgram& program, int x, int g, bool typed) {
  Carve count(nullptr);
  carve({view, program, x, g, typed}, count);
  return count.used() * static_cast<int64_t>(sizeof(float));
}

void gtask_weight_grad(const GTaskWeightGradArgs& args) {
  const Problem problem = {*args.view, *args.program.program, args.x, args.g, args.typed};
  Carve memory(static_cast<float*>(args.workspace));
  const Workspace ws = carve(problem, memory);
  NACRE_CHECK(memory.used() == 0 || args.workspace != nullptr, "a kernel over gTasks was given no workspace");
  PlanOptions options;
  options.keep = args.x;
  options.also_keep = args.g;
  options.packed = true;
  // For typed gradients, the rows of a tile are ordered by type. This is not done if the program
  // itself has products, because these take the rows in the order of the gTasks.
  const bool sort = args.typed && !has_products(problem.program);
  options.consecutive = args.view->edge.empty() && !sort;
  TilePlan plan = make_tile_plan(args.program, options);
  plan.uses_type |= args.typed;
  if (ws.packed != nullptr) pack_matrices(plan, args.view->num_types, ws.packed);
  const int64_t floats = gtask_scratch_floats(problem.program, nullptr);
  const int64_t shares = problem.shares();
  const int64_t size = problem.matrices() * problem.matrix();
  const auto units = static_cast<int64_t>(args.view->units.size());
  parallel_tasks(shares, [&](int64_t share) {
    float* dw = share == 0 ? args.dw : ws.sums + (share - 1) * size;
    std::fill_n(dw, size, 0.0f);
    TileRunner runner(plan, thread_scratch(args.scratch, floats));
    TypeSort by_type;
    for (int64_t u = units * share / shares; u < units * (share + 1) / shares; ++u) {
      for_gtask_tiles(*args.view, args.view->units[u], runner, [&](const Tile& entries) {
        const Tile tile = sort ? by_type(entries) : entries;
        runner.run(tile);
        add_tile(problem, runner, tile, dw);
      });
    }
  });
  parallel_for(size, 2048, [&](int64_t begin, int64_t end) {
    for (int64_t share = 1; share < shares; ++share) {
      const float* term = ws.sums + (share - 1) * size;
      for (int64_t i = begin; i < end; ++i) args.dw[i] += term[i];
    }
  });
}

}  // namespace nacre::cpu
