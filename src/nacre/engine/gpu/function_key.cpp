#include "nacre/engine/gpu/function_key.h"

namespace nacre {

// This assertion fails if one of these structs gets another member. The member must then be added
// to the keys below.
static_assert(sizeof(Micro) == 56 && sizeof(Space) == 16 && sizeof(cuda::EdgeSide) == 16 &&
              sizeof(cuda::ReduceSpec) == 72);

FunctionKey& FunctionKey::add(const RowProgram& program) {
  add(program.domain.kind).add(program.numbered).add(program.stores_apart).add(program.operands.size());
  for (size_t i = 0; i < program.operands.size(); ++i) add(program.is_narrow(static_cast<int>(i)));
  add(program.widths.size());
  for (const int64_t width : program.widths) add(width);
  add(program.code.size());
  for (const Micro& m : program.code) {
    add(m.op).add(m.out).add(m.a).add(m.b).add(m.operand).add(m.a_repeat).add(m.b_repeat);
    add(m.a_part).add(m.b_part).add(m.begin).add(m.alpha).add(m.salt);
  }
  return *this;
}

FunctionKey& FunctionKey::add(const cuda::ReduceSpec& spec) {
  add(*spec.program).add(spec.value).add(spec.reduce).add(spec.store).add(spec.narrow_out).add(spec.argmax);
  add(spec.tail != nullptr);
  if (spec.tail != nullptr) add(*spec.tail);
  const cuda::EdgeSide& side = spec.side;
  add(side.rows_at_dst).add(side.edge_ids).add(side.row_vertex).add(side.long_offsets).add(side.mean_degree);
  return add(spec.tiles).add(spec.row_width).add(spec.tile_pitch).add(spec.batch).add(spec.min_blocks);
}

}  // namespace nacre
