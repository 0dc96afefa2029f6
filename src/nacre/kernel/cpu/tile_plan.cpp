#include "nacre/kernel/cpu/tile_plan.h"

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/gemm.h"

namespace nacre::cpu {
namespace {

constexpr int64_t kTileFloats = 16 << 10;  // 64 KiB: scratch and indices of a tile
constexpr int64_t kMaxTileRows = 1024;
constexpr int64_t kMinTileRows = 4;
// Floats of a tile if rows are multiplied by matrices. Such a tile is larger, so that each read of
// a matrix serves more rows; it takes half of a second-level cache beside the matrix.
constexpr int64_t kProductTileFloats = 64 << 10;
constexpr int64_t kProductStep = 48;  // whole register tiles of the GEMM, and a multiple of 16
constexpr int64_t kIndexFloats = 2;   // for each row: the row's own end of each edge, and the type
// Gathered rows shorter than this are copied together, so that elementwise micro-ops run over the
// whole tile at once.
constexpr int64_t kCopyWidth = 16;

bool is_load(MicroOp op) { return op <= MicroOp::root; }
bool is_elementwise(MicroOp op) { return op >= MicroOp::add && op <= MicroOp::dropout; }

class Planner {
 public:
  Planner(const BoundProgram& program, TilePlan& plan) : bound_(program), code_(program.program->code), plan_(plan) {
    count_uses();
  }

  void run() {
    // The floats of each row that are not in the tile's scratch but are read more than once. Tiles
    // are small enough that they stay in cache, too.
    int64_t reread = 0;
    for (size_t i = 0; i < code_.size(); ++i) {
      const Micro& m = code_[i];
      note_inputs(m);
      if (m.out < 0) continue;
      place(i);
      if (plan_.home[m.out] == TilePlan::alias && uses_[m.out] > 1 && m.op != MicroOp::load_row0)
        reread += width(m.out);
    }
    const int64_t per_row = plan_.row_floats + reread + kIndexFloats;
    plan_.products = plan_.options.packed || has_products(*bound_.program);
    const int64_t fit = (plan_.products ? kProductTileFloats : kTileFloats) / per_row;
    const int64_t rows = std::clamp(fit, kMinTileRows, plan_.products ? kMaxProductRows : kMaxTileRows);
    // Multiples of 16 keep every register in scratch aligned.
    const int64_t step = plan_.products && rows >= kProductStep ? kProductStep : 16;
    plan_.rows = rows >= step ? rows / step * step : rows;
  }

 private:
  int64_t width(int r) const { return bound_.program->widths[r]; }
  void* memory(const Micro& m) const { return bound_.operands.empty() ? nullptr : bound_.operands[m.operand]; }

  void count_uses() {
    uses_.fill(0);
    last_use_.fill(-1);
    multiplied_.fill(false);
    const auto use = [&](int r, int at) {
      if (r < 0) return;
      ++uses_[r];
      last_use_[r] = at;
    };
    for (size_t i = 0; i < code_.size(); ++i) {
      use(code_[i].a, static_cast<int>(i));
      use(code_[i].b, static_cast<int>(i));
      if (is_product(code_[i].op)) multiplied_[code_[i].a] = true;
    }
    for (const int kept : {plan_.options.keep, plan_.options.also_keep}) {
      use(kept, static_cast<int>(code_.size()));
      if (kept >= 0 && plan_.options.packed) multiplied_[kept] = true;
    }
  }

  void note_inputs(const Micro& m) {
    plan_.uses_src |= m.op == MicroOp::load_src;
    plan_.uses_dst |= m.op == MicroOp::load_dst || m.op == MicroOp::take_max;
    plan_.uses_type |= m.op == MicroOp::load_type || is_typed_product(m.op);
  }

  void place(size_t at) {
    const Micro& m = code_[at];
    if (is_load(m.op)) {
      if (loads_in_place(m)) {
        plan_.home[m.out] = TilePlan::alias;
        return;
      }
    } else if (float* target = direct_target(m.out)) {
      plan_.home[m.out] = TilePlan::direct;
      plan_.target[m.out] = target;
      return;
    }
    plan_.home[m.out] = TilePlan::scratch;
    if (is_elementwise(m.op)) {
      if (take_over(m.a, m.a_repeat, m.out, at) || take_over(m.b, m.b_repeat, m.out, at)) return;
    }
    allocate(m.out, static_cast<int>(at));
  }

  bool loads_in_place(const Micro& m) const {
    switch (m.op) {
      case MicroOp::load:
        if (!plan_.options.consecutive) return width(m.out) >= kCopyWidth && !multiplied_[m.out];
        return bound_.operands.empty() || !is_stored(memory(m));
      case MicroOp::root:
        return true;
      default:
        return width(m.out) >= kCopyWidth && !multiplied_[m.out];
    }
  }

  bool is_stored(const void* p) const {
    if (p == plan_.options.keep_to) return true;
    return std::any_of(code_.begin(), code_.end(),
                       [&](const Micro& m) { return m.op == MicroOp::store && memory(m) == p; });
  }

  // Returns the memory that register r can be computed into: keep_to for the kept register,
  // otherwise that of its first store. Returns null if there is none, or if another operand of the
  // program uses the same memory.
  float* direct_target(int r) const {
    if (!plan_.options.consecutive || bound_.operands.empty()) return nullptr;
    void* target = r == plan_.options.keep ? plan_.options.keep_to : nullptr;
    for (size_t i = 0; i < code_.size() && target == nullptr; ++i) {
      if (code_[i].op == MicroOp::store && code_[i].a == r) target = memory(code_[i]);
    }
    if (target == nullptr) return nullptr;
    int owners = target == plan_.options.keep_to ? 1 : 0;
    for (const Micro& m : code_) owners += m.operand >= 0 && memory(m) == target ? 1 : 0;
    return owners == 1 ? static_cast<float*>(target) : nullptr;
  }

  // Gives register `out` the place of register `from` in scratch if `from` is read for the last
  // time at instruction `at`. Returns whether it did.
  bool take_over(int from, int repeat, int out, size_t at) {
    if (from < 0 || repeat != 1 || width(from) != width(out)) return false;
    if (plan_.home[from] != TilePlan::scratch || last_use_[from] != static_cast<int>(at)) return false;
    plan_.offset[out] = plan_.offset[from];
    in_scratch_[num_in_scratch_++] = out;
    return true;
  }

  // Gives register `out` the first free place in scratch at instruction `at`. Operands that are
  // read for the last time there still need their places.
  void allocate(int out, int at) {
    const int64_t need = width(out);
    int64_t offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (int i = 0; i < num_in_scratch_; ++i) {
        const int r = in_scratch_[i];
        if (last_use_[r] < at) continue;
        if (offset < plan_.offset[r] + width(r) && plan_.offset[r] < offset + need) {
          offset = plan_.offset[r] + width(r);
          moved = true;
        }
      }
    }
    plan_.offset[out] = static_cast<int32_t>(offset);
    plan_.row_floats = std::max(plan_.row_floats, offset + need);
    in_scratch_[num_in_scratch_++] = out;
  }

  const BoundProgram& bound_;
  const std::vector<Micro>& code_;
  TilePlan& plan_;
  std::array<int, kMaxRegisters> uses_, last_use_;
  std::array<bool, kMaxRegisters> multiplied_;  // registers that must be packed rows
  std::array<int, kMaxRegisters> in_scratch_;   // registers in scratch, in the order of the code
  int num_in_scratch_ = 0;
};

}  // namespace

TilePlan make_tile_plan(const BoundProgram& program, const PlanOptions& options) {
  NACRE_CHECK(program.program->widths.size() <= kMaxRegisters, "the program has too many registers");
  TilePlan plan;
  plan.program = &program;
  plan.options = options;
  Planner(program, plan).run();
  return plan;
}

int64_t tile_rows(const RowProgram& program) {
  BoundProgram bound;
  bound.program = &program;
  return make_tile_plan(bound).rows;
}

namespace {

// Returns enough floats for any choice of homes and any tile size, whatever the operands are: at
// worst every register lies in scratch.
int64_t floats_for(const RowProgram& program, int64_t tile_floats) {
  int64_t all = kIndexFloats, widest = 0;
  for (const int64_t w : program.widths) {
    all += w;
    widest = std::max(widest, w);
  }
  return std::max(tile_floats, kMinTileRows * all) + 2 * widest + 16;
}

struct Matrix {
  int64_t k, n;  // sizes of the product: `a` has k columns, `out` has n
  int64_t count;
};
Matrix matrix_of(const RowProgram& program, const Micro& m, int types) {
  return {program.widths[m.a], program.widths[m.out], is_typed_product(m.op) ? types : 1};
}

}  // namespace

int64_t scratch_floats(const RowProgram& program) {
  return floats_for(program, has_products(program) ? kProductTileFloats : kTileFloats);
}

int64_t product_scratch_floats(const RowProgram& program) { return floats_for(program, kProductTileFloats); }

int64_t packed_floats(const RowProgram& program, int types) {
  int64_t floats = 0;
  for (const Micro& m : program.code) {
    if (!is_product(m.op)) continue;
    const Matrix matrix = matrix_of(program, m, types);
    floats += matrix.count * gemm_packed_size(matrix.n, matrix.k);
  }
  return floats;
}

void pack_matrices(TilePlan& plan, int types, float* to) {
  for (const Micro& m : plan.program->program->code) {
    if (!is_product(m.op)) continue;
    const Matrix matrix = matrix_of(*plan.program->program, m, types);
    const auto* from = static_cast<const float*>(plan.program->operands[m.operand]);
    const int64_t size = gemm_packed_size(matrix.n, matrix.k);
    const bool transposed = is_transposed_product(m.op);
    parallel_tasks(matrix.count, [&](int64_t t) {
      const float* w = from + t * matrix.k * matrix.n;
      if (transposed) {
        gemm_pack_nt(matrix.n, matrix.k, w, matrix.k, to + t * size);
      } else {
        gemm_pack_nn(matrix.n, matrix.k, w, matrix.n, to + t * size);
      }
    });
    plan.packed[m.out] = to;
    to += matrix.count * size;
  }
}

}  // namespace nacre::cpu
