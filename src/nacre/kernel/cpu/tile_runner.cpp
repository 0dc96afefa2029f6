#include "nacre/kernel/cpu/tile_runner.h"

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/dfg/random.h"
#include "nacre/kernel/cpu/gemm.h"

namespace nacre::cpu {

TileRunner::TileRunner(const TilePlan& plan, float* scratch)
    : plan_(plan),
      program_(*plan.program->program),
      functions_(micro_functions()),
      segments_(segment_functions()),
      scratch_(scratch),
      index_(reinterpret_cast<uint32_t*>(scratch + plan.rows * plan.row_floats)) {}

void TileRunner::run(const Tile& tile) {
  for (const Micro& m : program_.code) {
    if (m.op <= MicroOp::root) {
      load(m, tile);
    } else if (m.op == MicroOp::store) {
      store(m, tile);
    } else if (is_product(m.op)) {
      multiply(m, tile);
    } else {
      compute(m, tile);
    }
  }
  const PlanOptions& options = plan_.options;
  if (options.keep_to == nullptr || plan_.home[options.keep] == TilePlan::direct) return;
  const Rows& kept = value(options.keep);
  segments_.copy(kept, tile.rows, options.keep_to + tile.first * kept.width);
}

void TileRunner::run_rows(int64_t begin, int64_t end, const float* root) {
  for (int64_t first = begin; first < end; first += plan_.rows) {
    Tile tile;
    tile.first = first;
    tile.rows = std::min(plan_.rows, end - first);
    tile.root = root;
    run(tile);
    if (root != nullptr) root += tile.rows * root_width(program_);
  }
}

void TileRunner::load(const Micro& m, const Tile& tile) {
  Rows& out = registers_[m.out];
  const int64_t width = program_.widths[m.out];
  const auto* base = m.op == MicroOp::root ? tile.root : static_cast<const float*>(plan_.program->operands[m.operand]);
  out = {base, nullptr, width, width};
  switch (m.op) {
    case MicroOp::load:
      if (tile.position != nullptr) {
        out.index = tile.position;
      } else {
        out.base += tile.first * width;
      }
      break;
    case MicroOp::load_src:
      out.index = tile.src;
      break;
    case MicroOp::load_dst:
      out.index = tile.dst;
      break;
    case MicroOp::load_type:
      out.index = tile.type;
      if (tile.type == nullptr) out.stride = 0;  // an untyped graph has one type
      break;
    case MicroOp::load_row0:
      out.stride = 0;
      break;
    default:
      break;
  }
  if (plan_.home[m.out] == TilePlan::alias) return;
  float* to = output(m.out, tile);
  segments_.copy(out, tile.rows, to);
  out = {to, nullptr, width, width};
}

void TileRunner::store(const Micro& m, const Tile& tile) {
  const Rows& from = registers_[m.a];
  auto* to = static_cast<float*>(plan_.program->operands[m.operand]);
  if (plan_.home[m.a] == TilePlan::direct && plan_.target[m.a] == to) return;
  if (tile.position != nullptr) {
    segments_.scatter(from, tile.rows, tile.position, to);
  } else {
    segments_.copy(from, tile.rows, to + tile.first * from.width);
  }
}

void TileRunner::compute(const Micro& m, const Tile& tile) {
  MicroCall call;
  call.micro = &m;
  call.rows = tile.rows;
  if (m.a >= 0) call.a = registers_[m.a];
  if (m.b >= 0) call.b = registers_[m.b];
  call.out_width = program_.widths[m.out];
  call.out = output(m.out, tile);
  call.first_position = tile.first;
  call.position = tile.position;
  call.dst = tile.dst;
  if (m.operand >= 0) call.operand = plan_.program->operands[m.operand];
  if (m.op == MicroOp::dropout) {
    const StepContext& step = *plan_.program->step;
    const DropoutStream stream(step.seed, m.salt, step.step);
    call.key = stream.key;
    call.step = stream.step;
  }
  if (m.op == MicroOp::dropout && plan_.program->ids != nullptr) {
    drop(call, plan_.program->ids);
  } else {
    functions_[static_cast<size_t>(m.op)](call);
  }
  registers_[m.out] = {call.out, nullptr, call.out_width, call.out_width};
}

// Runs dropout, a few rows at a time, with draws that depend on the numbers of the rows in the
// whole graph instead of their positions.
void TileRunner::drop(MicroCall call, const uint32_t* ids) const {
  constexpr int64_t kChunk = 64;
  std::array<uint32_t, kChunk> numbers;
  const MicroCall whole = call;
  for (int64_t begin = 0; begin < whole.rows; begin += kChunk) {
    call.rows = std::min(kChunk, whole.rows - begin);
    for (int64_t i = 0; i < call.rows; ++i) {
      const int64_t row = begin + i;
      numbers[i] = ids[whole.position != nullptr ? int64_t{whole.position[row]} : whole.first_position + row];
    }
    call.position = numbers.data();
    call.out = whole.out + begin * whole.out_width;
    if (whole.a.index != nullptr) {
      call.a.index = whole.a.index + begin;
    } else {
      call.a.base = whole.a.base + begin * whole.a.stride;
    }
    functions_[static_cast<size_t>(MicroOp::dropout)](call);
  }
}

// Multiplies the rows of a tile. Each run of rows of the same type is one product.
void TileRunner::multiply(const Micro& m, const Tile& tile) {
  const Rows& a = registers_[m.a];
  NACRE_CHECK(a.packed(), "the rows of the product's operand are not packed");
  const int64_t k = a.width;
  const int64_t n = program_.widths[m.out];
  const auto* matrices = static_cast<const float*>(plan_.program->operands[m.operand]);
  const float* packed = plan_.packed[m.out];
  const int64_t packed_size = packed == nullptr ? 0 : gemm_packed_size(n, k);
  float* out = output(m.out, tile);
  const uint32_t* type = is_typed_product(m.op) ? tile.type : nullptr;
  for (int64_t r = 0; r < tile.rows;) {
    const int64_t t = type == nullptr ? 0 : type[r];
    int64_t end = type == nullptr ? tile.rows : r + 1;
    while (end < tile.rows && type[end] == t) ++end;
    const float* in = a.base + r * k;
    if (packed != nullptr) {
      gemm_tile_packed(end - r, n, k, in, k, packed + t * packed_size, out + r * n, n);
    } else if (is_transposed_product(m.op)) {
      gemm_tile_nt(end - r, n, k, in, k, matrices + t * k * n, k, out + r * n, n);
    } else {
      gemm_tile_nn(end - r, n, k, in, k, matrices + t * k * n, n, out + r * n, n);
    }
    r = end;
  }
  registers_[m.out] = {out, nullptr, n, n};
}

float* TileRunner::output(int reg, const Tile& tile) {
  if (plan_.home[reg] == TilePlan::direct) {
    return plan_.target[reg] + tile.first * program_.widths[reg];
  }
  return scratch_ + plan_.rows * plan_.offset[reg];
}

int64_t root_width(const RowProgram& program) {
  for (const Micro& m : program.code) {
    if (m.op == MicroOp::root) return program.widths[m.out];
  }
  return 0;
}

Tile EdgeTiles::tile(int64_t begin, int64_t end) {
  const TilePlan& plan = runner_.plan();
  const bool by_dst = rows_at_dst(view_.direction);
  Tile tile;
  tile.first = begin;
  tile.rows = end - begin;
  if (view_.edge_id != nullptr) tile.position = view_.edge_id + begin;
  (by_dst ? tile.src : tile.dst) = view_.col + begin;
  if (by_dst ? plan.uses_dst : plan.uses_src) {
    uint32_t* index = runner_.row_index();
    for (int64_t e = begin; e < end;) {
      while (view_.row_ptr[row_ + 1] <= e) ++row_;
      const int64_t stop = std::min(end, view_.row_ptr[row_ + 1]);
      const auto vertex = view_.row_vertex != nullptr ? view_.row_vertex[row_] : static_cast<uint32_t>(row_);
      std::fill(index + (e - begin), index + (stop - begin), vertex);
      e = stop;
    }
    (by_dst ? tile.dst : tile.src) = index;
  }
  if (plan.uses_type && view_.graph.typed()) {
    const uint16_t* types = view_.graph.edge_type().data();
    uint32_t* index = runner_.type_index();
    for (int64_t i = 0; i < tile.rows; ++i) index[i] = types[tile.position != nullptr ? tile.position[i] : begin + i];
    tile.type = index;
  }
  return tile;
}

float* thread_scratch(const Scratch& scratch, int64_t floats) {
  NACRE_CHECK(scratch.data != nullptr && scratch.per_thread >= floats, "the scratch memory of the kernel is too small");
  return scratch.data + thread_index() * scratch.per_thread;
}

}  // namespace nacre::cpu
