#include "nacre/engine/gpu/row_binding.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/engine/gpu/function_key.h"
#include "nacre/plan/variants/rows.h"
#include "nacre/plan/variants/sums.h"

namespace nacre {
namespace {

Step launch_reduce(const Reduction& r, const cuda::ReduceSpec& spec, void* workspace, void* rows_to) {
  const GpuKernel& g = r.g;
  const bool argmax_only = g.node(g.kernel.root).op == Op::index_argmax;
  void* out = argmax_only ? nullptr : rows_to != nullptr ? rows_to : g.pointer(g.kernel.root);
  void* argmax = argmax_only ? g.pointer(g.kernel.root) : spec.argmax ? g.pointer(g.kernel.second) : nullptr;
  // The counters are zeros before and after every launch, so all launches can share them.
  const std::vector<int32_t> zeros(spec.tiles * r.rows.num_partials);
  auto* counters = const_cast<int32_t*>(g.context.made(fmt::format("counters {}", zeros.size()), zeros));
  const GpuFunction& function =
      g.context.compiler().function(FunctionKey("reduce").add(spec).bytes(), [&] { return cuda::reduce_source(spec); });
  cuda::LaunchParams params(cuda::ReduceParams{.segments = r.rows.segments,
                                               .listed = r.rows.num_segments,
                                               .first_row = r.rows.first_row,
                                               .offsets = r.rows.offsets,
                                               .longest = r.rows.longest,
                                               .count = r.rows.count(),
                                               .split_rows = r.rows.split_rows,
                                               .counters = counters,
                                               .col = r.rows.col,
                                               .edge_id = r.rows.edge_id,
                                               .edge_type = edge_types(g, *spec.program),
                                               .row_vertex = r.rows.row_vertex,
                                               .step = g.context.step(),
                                               .out = out,
                                               .argmax = argmax,
                                               .partials = workspace,
                                               .num_partials = r.rows.num_partials});
  params.operands(r.operands.empty() ? operands_of(g, *spec.program) : r.operands);
  if (spec.tail != nullptr) params.operands(operands_of(g, *spec.tail));
  return g.context.launch(function, blocks_for(r.rows.count() * spec.tiles, function), params);
}

// Returns the specification of the reduction, changed as the variant `shape` says.
cuda::ReduceSpec shaped(const Reduction& r, RowShape shape) {
  cuda::ReduceSpec spec = r.spec;
  if (shape == RowShape::more_warps) {
    spec.batch = cuda::reduce_batch(r.spec) / 2;
    spec.min_blocks = 8;
  }
  return spec;
}

RowShape shape_of(const Reduction& r, void* workspace, void* out) {
  const GpuKernel& g = r.g;
  RowShapeFacts facts = row_shape_facts(g.planned());
  facts.batch = cuda::reduce_batch(r.spec);
  const std::string key = fmt::format("reduce {} {} {} {} {} {} {} {}", static_cast<const void*>(r.rows.segments),
                                      r.rows.offsets, g.width(g.kernel.root), r.spec.program->code.size(),
                                      r.spec.tail != nullptr, r.spec.tiles, r.spec.side.edge_ids, facts.batch);
  return g.timed_variant<RowShape>(row_shape_variants(), facts, key,
                                   [&](RowShape shape) { return launch_reduce(r, shaped(r, shape), workspace, out); });
}

}  // namespace

int64_t mean_row(const GpuKernel& g) {
  const auto taken = g.take<RowThreads>(row_thread_variants(), row_facts(g.planned()));
  return taken.way == RowThreads::for_mean_row ? taken.limit : 1;
}

const GpuFunction& map_function(GpuContext& context, const RowProgram& program) {
  return context.compiler().function(FunctionKey("map").add(program).bytes(),
                                     [&] { return cuda::map_source(program); });
}

std::vector<void*> operands_of(const GpuKernel& g, const RowProgram& program) {
  std::vector<void*> list;
  for (const NodeRef o : program.operands) list.push_back(g.pointer(o));
  return list;
}

const uint16_t* edge_types(const GpuKernel& g, const RowProgram& program) {
  const bool read = std::any_of(program.code.begin(), program.code.end(),
                                [](const Micro& m) { return m.op == MicroOp::load_type || is_typed_product(m.op); });
  return read && g.graph().typed() ? g.context.resident(g.graph().edge_type()) : nullptr;
}

EdgeEnds edge_ends(const GpuKernel& g) {
  const auto& code = g.kernel.program.code;
  const bool src = std::any_of(code.begin(), code.end(), [](const Micro& m) { return m.op == MicroOp::load_src; });
  const bool dst = std::any_of(code.begin(), code.end(),
                               [](const Micro& m) { return m.op == MicroOp::load_dst || m.op == MicroOp::take_max; });
  return {src ? g.context.resident(g.graph().col_idx()) : nullptr, dst ? g.context.edge_dst(g.graph()) : nullptr,
          edge_types(g, g.kernel.program)};
}

void place_cut(GpuContext& context, const std::string& key, const RowCut& cut, ReduceRows& rows) {
  rows.segments = context.made("segments " + key, cut.segments);
  rows.num_segments = static_cast<int64_t>(cut.segments.size());
  rows.split_rows = context.made("pieces " + key, cut.split);
  rows.num_partials = cut.partials;
}

// Returns the bytes for the sums of pieces. A maximum takes twice the bytes, because its position
// is stored as well.
int64_t reduce_workspace(const Reduction& r) {
  const int64_t width = r.spec.program->widths[r.spec.value];
  return r.rows.num_partials * r.spec.tiles * width * 4 * (r.spec.reduce == ReduceOp::max ? 2 : 1);
}

Step bind_reduce(const Reduction& r, void* workspace, void* out) {
  return launch_reduce(r, shaped(r, shape_of(r, workspace, out)), workspace, out);
}

RowProgram tail_over_memory(const RowProgram& tail, NodeRef root, bool narrow) {
  RowProgram p = tail;
  const auto operand = static_cast<int>(p.operands.size());
  p.narrow.resize(p.operands.size());
  p.operands.push_back(root);
  p.narrow.push_back(narrow ? 1 : 0);
  for (Micro& m : p.code) {
    if (m.op != MicroOp::root) continue;
    m.op = MicroOp::load;
    m.operand = operand;
  }
  return p;
}

Step bind_tail(const GpuKernel& g, const RowProgram& tail, const RowsAt& rows, int64_t first, int64_t count) {
  const RowProgram program = tail_over_memory(tail, g.kernel.root, rows.narrow);
  const GpuFunction& function = map_function(g.context, program);
  std::vector<void*> operands = operands_of(g, program);
  // The operand is the address at which row 0 would lie. It may be outside of the memory, so it is
  // computed as a number and not as a pointer.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  operands.back() = reinterpret_cast<void*>(reinterpret_cast<intptr_t>(rows.memory) -
                                            first * g.width(g.kernel.root) * (rows.narrow ? 2 : 4));
  cuda::LaunchParams params(cuda::MapParams{.count = count, .first = first, .step = g.context.step()});
  params.operands(operands);
  return g.context.launch(function, blocks_for(count, function), params);
}

}  // namespace nacre
