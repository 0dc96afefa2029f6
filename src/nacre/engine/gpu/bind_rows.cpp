// Binds row programs on a GPU.
#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/engine/gpu/edge_order.h"
#include "nacre/engine/gpu/function_key.h"
#include "nacre/engine/gpu/gpu_pairs.h"
#include "nacre/engine/gpu/row_binding.h"
#include "nacre/plan/epilogue.h"
#include "nacre/plan/operands.h"
#include "nacre/plan/variants/reductions.h"
#include "nacre/plan/variants/rows.h"
#include "nacre/plan/variants/sums.h"

namespace nacre {
namespace {

GpuRows& rows_view(const GpuKernel& g) {
  // A sum without weights does not need the edges of the entries.
  const bool edges = g.kernel.kind != KernelKind::spmm || operands<SpmmOperands>(g.kernel).weight >= 0;
  return g.context.rows(g.graph(), g.kernel.direction, edges);
}

cuda::EdgeSide side_of(const GpuKernel& g, const GpuRows& rows) {
  cuda::EdgeSide side;
  side.rows_at_dst = rows_at_dst(rows.direction);
  side.edge_ids = rows.listed;
  side.row_vertex = rows.row_vertex != nullptr;
  side.long_offsets = rows.long_offsets;
  side.mean_degree = mean_row(g);
  return side;
}

int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

// ---- Reductions.

// Returns the rows that the reduction walks. With `blocks` > 1, the vertices that an spmm reads are
// divided into this many blocks, and the rows are cut where they come to the next block
// (row_cut.h).
ReduceRows reduce_rows(const GpuKernel& g, const cuda::ReduceSpec& spec, int blocks = 1) {
  GpuRows& view = rows_view(g);
  RowFacts facts = row_facts(g.planned());
  facts.shortest = cuda::reduce_shortest_piece(spec);
  const auto taken = g.take<LongRows>(long_sum_variants(), facts);
  const int64_t longest = taken.way == LongRows::apart ? taken.limit : INT32_MAX;
  const RowSpan range = g.kernel.rows.of(view.rows);
  const std::string key = fmt::format("{} {} {} {} {}", view.name, longest, blocks, range.begin, range.end);
  ReduceRows rows = g.context.once<ReduceRows>(key, [&] {
    ReduceRows r;
    r.row_vertex = view.row_vertex;
    if (blocks > 1) {
      const Space read = g.node(operands<SpmmOperands>(g.kernel).x).type.space;
      const Blocks& graphs = g.executor.blocks();
      const SourceBlocks sources{graphs.rows(read), graphs.ids(read), blocks};
      place_cut(g.context, key, cut_by_sources(g.context.host_rows(view), sources, longest, range), r);
      return r;
    }
    r.offsets = g.context.offsets(view);
    r.first_row = range.begin;
    r.num_rows = range.count();
    r.longest = longest;
    // Pieces of long rows come first, because they take longest.
    if (view.longest > longest) {
      std::vector<GpuRows::Long> list = g.context.long_rows(view, longest);
      std::erase_if(list, [&](const GpuRows::Long& row) { return row.row < range.begin || row.row >= range.end; });
      place_cut(g.context, key, cut_rows(list, longest), r);
    }
    return r;
  });
  if (spec.side.edge_ids) rows.edge_id = g.context.edge_ids(view);
  return rows;
}

const uint32_t* spmm_columns(const GpuKernel& g) {
  const Space from = g.node(operands<SpmmOperands>(g.kernel).x).type.space;
  const Direction d = g.kernel.direction;
  if (!from.is_pair() || (d != Direction::by_dst && d != Direction::by_src)) return g.context.columns(rows_view(g));
  const End end = from.kind == SpaceKind::pair_src ? End::src : End::dst;
  return static_cast<const uint32_t*>(
      g.context.resident(g.context.host_views().pair_columns(g.graph(), d, end), g.graph().num_edges() * 4));
}

SpmmWeights weights_of(const GpuKernel& g) {
  if (g.kernel.kind != KernelKind::spmm) return SpmmWeights::as_they_lie;
  return g.variant<SpmmWeights>(spmm_weight_variants(), spmm_facts(g.planned()));
}

int64_t ordered_bytes(const GpuKernel& g) { return aligned(g.graph().num_edges() * g.kernel.heads * 4); }

KeptOrder order_of(const GpuKernel& g) {
  const cpu::RowView& view = g.context.host_rows(rows_view(g));
  return {view.edge_id, view.row_ptr[view.rows], fmt::format("weights {}", static_cast<const void*>(&view))};
}

// Returns the bytes of the workspace for weights in the order of the walk. Weights that are kept in
// that order for all steps have memory of their own, which is made here.
int64_t weight_bytes(const GpuKernel& g) {
  const SpmmWeights way = weights_of(g);
  if (way == SpmmWeights::in_order_of_walk) return ordered_bytes(g);
  if (way == SpmmWeights::kept_in_order_of_walk) kept_edges(g, operands<SpmmOperands>(g.kernel).weight, order_of(g));
  return 0;
}

// Calls `use` with the reduction of the kernel and returns its result. The program of the reduction
// lives only until `use` returns.
template <class F>
auto with_reduction(const GpuKernel& g, const F& use) {
  if (g.kernel.kind == KernelKind::reduce) {
    cuda::ReduceSpec spec = reduce_spec(g.planned(), g.kernel.program, g.kernel.value);
    spec.side = side_of(g, rows_view(g));
    ReduceRows rows = reduce_rows(g, spec);
    rows.col = g.context.columns(rows_view(g));
    return use(Reduction{g, spec, rows, {}});
  }
  const SpmmFacts facts = spmm_facts(g.planned());
  const ColumnTiles tiles = column_tiles(facts, g.variant<SpmmTiles>(spmm_tile_variants(), facts));
  int blocks = 1;
  if (g.context.traits().part.shares_cache())
    blocks = source_blocks(g.variant<int>(spmm_source_variants(), SourceFacts{facts, tiles}));
  const SummedProgram summed = summed_program(g.planned(), tiles.width);
  cuda::ReduceSpec spec = spmm_spec(g.planned(), summed, tiles);
  const bool rows_at_dst = spec.side.rows_at_dst;
  spec.side = side_of(g, rows_view(g));
  spec.side.rows_at_dst = rows_at_dst;
  // The edge of an entry is only needed to find its weight.
  if (weights_of(g) != SpmmWeights::as_they_lie || operands<SpmmOperands>(g.kernel).weight < 0)
    spec.side.edge_ids = false;
  ReduceRows rows = reduce_rows(g, spec, blocks);
  rows.col = spmm_columns(g);
  return use(Reduction{g, spec, rows, {}});
}

// Returns a value that the tail stores and in whose memory the rows of a tiled sum can wait for the
// tail; -1 if there is none.
NodeRef landing_of(const Reduction& r) {
  const NodeRef to = find_landing(r.g.kernel.tail);
  return to >= 0 && !r.g.narrow(to) ? to : -1;
}

// Returns the bytes of workspace for the rows of a tiled sum (f32) which wait there for the tail.
// The result is 0 unless only the tail reads these rows and no value that the tail stores can hold
// them.
int64_t hidden_bytes(const Reduction& r) {
  const GpuKernel& g = r.g;
  const bool hidden = r.spec.tiles > 1 && !g.kernel.tail.empty() && !g.stored(g.kernel.root) && landing_of(r) < 0;
  return hidden ? aligned(g.rows(g.kernel.root) * g.width(g.kernel.root) * 4) : 0;
}

int64_t copy_bytes(const Reduction& r) {
  if (r.spec.tile_pitch == 0) return 0;
  return r.g.rows(operands<SpmmOperands>(r.g.kernel).x) * r.spec.tiles * r.spec.tile_pitch * 4;
}

// Returns the step that copies the gathered rows tile by tile, so that each tile begins with a
// memory line.
Step copy_tiles(const Reduction& r, float* to) {
  const GpuKernel& g = r.g;
  const cuda::ReduceSpec& spec = r.spec;
  const NodeRef x = operands<SpmmOperands>(g.kernel).x;
  const int64_t width = spec.program->widths[0];
  StepList steps(g.context, nullptr, false);
  for (int tile = 0; tile < spec.tiles; ++tile) {
    RowCopy copy{{width, false, {1, spec.row_width}, {1, spec.tiles * spec.tile_pitch}}};
    copy.x = static_cast<const float*>(g.pointer(x)) + cuda::tile_column(spec, tile);
    copy.out = to + tile * spec.tile_pitch;
    copy.count = g.rows(x);
    add_copy(steps, copy);
  }
  return steps.finish(nullptr);
}

Step bind_rows_reduction(Reduction r, void* workspace) {
  const GpuKernel& g = r.g;
  const int64_t hidden = hidden_bytes(r);
  char* copied = static_cast<char*>(workspace) + hidden;
  char* weights = copied + copy_bytes(r);
  char* rest = weights + weight_bytes(g);
  Step first;
  if (g.kernel.kind == KernelKind::spmm) {
    for (const NodeRef o : r.spec.program->operands) r.operands.push_back(g.pointer(o));
  }
  if (copy_bytes(r) > 0) {
    first = copy_tiles(r, reinterpret_cast<float*>(copied));
    r.operands[0] = copied;
  }
  if (const SpmmWeights way = weights_of(g); way != SpmmWeights::as_they_lie) {
    void* ordered = weights;
    const NodeRef value = operands<SpmmOperands>(g.kernel).weight;
    if (way == SpmmWeights::kept_in_order_of_walk) {
      ordered = kept_edges(g, value, order_of(g)).memory.get();
      first = then(first, order_kept_edges(g, value, order_of(g)));
    } else {
      first = then(first, order_edges(g, value, g.context.edge_ids(rows_view(g)), g.graph().num_edges(), ordered));
    }
    r.operands[1] = ordered;
  }
  if (r.spec.tiles == 1 || g.kernel.tail.empty()) return then(first, bind_reduce(r, rest));
  const NodeRef to = g.stored(g.kernel.root) ? g.kernel.root : landing_of(r);
  const RowsAt rows = hidden > 0 ? RowsAt{workspace, false} : RowsAt{g.pointer(to), g.narrow(to)};
  const RowSpan range = g.kernel.rows.of(g.rows(g.kernel.root));
  const int64_t skipped = range.begin * g.width(g.kernel.root) * (rows.narrow ? 2 : 4);
  const RowsAt those{static_cast<char*>(rows.memory) + skipped, rows.narrow};
  return then(then(first, bind_reduce(r, rest, rows.memory)),
              bind_tail(g, g.kernel.tail, those, range.begin, range.count()));
}

// ---- Softmax.

struct RowOrder {
  const uint32_t* rows = nullptr;
  int64_t count = 0;
};

// Returns the rows of more than `longest` entries if `long_ones`, and otherwise all other rows.
RowOrder rows_by_length(const GpuKernel& g, GpuRows& rows, int64_t longest, bool long_ones) {
  g.context.offsets(rows);
  std::vector<GpuRows::Long> list;
  if (rows.longest > longest) list = g.context.long_rows(rows, longest);
  const RowSpan range = g.kernel.rows.of(rows.rows);
  std::erase_if(list, [&](const GpuRows::Long& row) { return row.row < range.begin || row.row >= range.end; });
  const auto count = static_cast<int64_t>(list.size());
  RowOrder order;
  order.count = long_ones ? count : range.count() - count;
  const std::string key = fmt::format("rows {} {} {} {} {}", rows.name, long_ones, longest, range.begin, range.end);
  order.rows = static_cast<const uint32_t*>(g.context.filled(key, order.count * 4, [&](void* to) {
    auto* out = static_cast<uint32_t*>(to);
    auto next = list.begin();
    for (int64_t r = range.begin; r < range.end; ++r) {
      const bool is_long = next != list.end() && next->row == r;
      if (is_long) ++next;
      if (is_long == long_ones) *out++ = static_cast<uint32_t>(r);
    }
  }));
  return order;
}

const GpuFunction& softmax_function(const GpuKernel& g, int64_t degree, bool long_ones) {
  const bool gradient = g.kernel.kind == KernelKind::softmax_grad;
  const FunctionKey key = FunctionKey(gradient ? "softmax gradient" : "softmax")
                              .add(g.kernel.program)
                              .add(g.kernel.value)
                              .add(degree)
                              .add(long_ones);
  return g.context.compiler().function(key.bytes(), [&] {
    return gradient ? cuda::softmax_grad_source(g.kernel.program, g.kernel.value, degree, long_ones)
                    : cuda::softmax_source(g.kernel.program, g.kernel.value, degree, long_ones);
  });
}

Step bind_softmax(const GpuKernel& g) {
  GpuRows& rows = rows_view(g);
  const int64_t degree = mean_row(g);
  const auto taken = g.take<LongRows>(long_softmax_variants(), row_facts(g.planned()));
  const int64_t longest = taken.way == LongRows::apart ? taken.limit : INT64_MAX;
  const bool gradient = g.kernel.kind == KernelKind::softmax_grad;
  Step all;
  for (const bool long_ones : {true, false}) {
    const RowOrder order = rows_by_length(g, rows, longest, long_ones);
    if (order.count == 0) continue;
    const GpuFunction& function = softmax_function(g, degree, long_ones);
    cuda::LaunchParams params(cuda::SoftmaxParams{.row_ptr = g.context.row_ptr(rows),
                                                  .order = order.rows,
                                                  .count = order.count,
                                                  .col = g.context.columns(rows),
                                                  .edge_type = edge_types(g, g.kernel.program),
                                                  .step = g.context.step(),
                                                  .out = g.pointer(g.kernel.root)});
    if (gradient) params.then(cuda::SoftmaxGradParams{.y = g.pointer(operands<SoftmaxGradOperands>(g.kernel).y)});
    params.operands(operands_of(g, g.kernel.program));
    all = then(all, g.context.launch(function, blocks_for(order.count, function), params));
  }
  return all ? all : [] {};
}

// ---- Sums over all rows.

// Returns the number of blocks of a sum over all rows. It is enough to fill a large device, and the
// same on every device, because the bits of the sum depend on it.
int64_t sum_blocks(int64_t rows, const GpuFunction& function) {
  return std::clamp<int64_t>(blocks_for(rows, function), 1, 1024);
}

const GpuFunction& column_sum_function(const GpuKernel& g) {
  const FunctionKey key = FunctionKey("column sum").add(g.kernel.program).add(g.kernel.value);
  return g.context.compiler().function(key.bytes(),
                                       [&] { return cuda::column_sum_source(g.kernel.program, g.kernel.value); });
}

int64_t summed_rows(const GpuKernel& g) { return g.rows(g.node(g.kernel.root).inputs[0]); }

Step bind_column_sum(const GpuKernel& g, void* workspace) {
  const GpuFunction& sum = column_sum_function(g);
  const int64_t rows = summed_rows(g);
  const int64_t blocks = sum_blocks(rows, sum);
  const EdgeEnds edges = g.kernel.program.domain.kind == SpaceKind::edge ? edge_ends(g) : EdgeEnds{};
  cuda::LaunchParams params(cuda::ColumnSumParams{.count = rows,
                                                  .col = edges.src,
                                                  .edge_dst = edges.dst,
                                                  .edge_type = edges.type,
                                                  .step = g.context.step(),
                                                  .partials = workspace});
  params.operands(operands_of(g, g.kernel.program));
  const int64_t width = g.width(g.kernel.root);
  const GpuFunction& total = g.context.compiler().function(FunctionKey("column total").add(width).bytes(),
                                                           [&] { return cuda::column_total_source(width); });
  const cuda::ColumnTotalParams of_total = {.blocks = blocks, .partials = workspace, .out = g.pointer(g.kernel.root)};
  return then(g.context.launch(sum, blocks, params), g.context.launch(total, width, of_total));
}

KernelNeeds needs(const GpuKernel& g) {
  KernelNeeds n;
  switch (g.kernel.kind) {
    case KernelKind::map:
    case KernelKind::map_edges:
      return n;
    case KernelKind::column_sum: {
      n.workspace_bytes = sum_blocks(summed_rows(g), column_sum_function(g)) * g.width(g.kernel.root) * 4;
      return n;
    }
    case KernelKind::reduce:
    case KernelKind::spmm:
      n.workspace_bytes = with_reduction(g, [](const Reduction& r) {
        return hidden_bytes(r) + copy_bytes(r) + weight_bytes(r.g) + reduce_workspace(r);
      });
      return n;
    default:
      g.context.row_ptr(rows_view(g));
      g.context.columns(rows_view(g));
      return n;
  }
}

Step bind(const GpuKernel& g, void* workspace) {
  const Kernel& k = g.kernel;
  switch (k.kind) {
    case KernelKind::map: {
      const GpuFunction& function = map_function(g.context, k.program);
      const RowSpan range = k.rows.of(g.rows(k.root));
      cuda::LaunchParams params(
          cuda::MapParams{.count = range.count(), .first = range.begin, .step = g.context.step()});
      params.operands(operands_of(g, k.program));
      return g.context.launch(function, blocks_for(range.count(), function), params);
    }
    case KernelKind::map_edges: {
      const GpuFunction& function = g.context.compiler().function(FunctionKey("map edges").add(k.program).bytes(),
                                                                  [&] { return cuda::map_edges_source(k.program); });
      const EdgeEnds edges = edge_ends(g);
      // row_ptr is read only if the kernel computes a part of the rows, because the host does not
      // have the row_ptr of a batch that was drawn on the device.
      const Array<int64_t>& ptr = g.graph().row_ptr();
      const int64_t first = k.rows.all() ? 0 : ptr[k.rows.begin];
      const int64_t count = k.rows.all() ? g.graph().num_edges() : ptr[k.rows.end] - first;
      cuda::LaunchParams params(cuda::MapEdgesParams{.count = count,
                                                     .first = first,
                                                     .col = edges.src,
                                                     .edge_dst = edges.dst,
                                                     .edge_type = edges.type,
                                                     .step = g.context.step()});
      params.operands(operands_of(g, k.program));
      return g.context.launch(function, blocks_for(count, function), params);
    }
    case KernelKind::reduce:
    case KernelKind::spmm:
      return with_reduction(g, [&](const Reduction& r) { return bind_rows_reduction(r, workspace); });
    case KernelKind::column_sum:
      return bind_column_sum(g, workspace);
    default:
      return bind_softmax(g);
  }
}

}  // namespace

const GpuFamily kGpuRows = {needs, bind};

}  // namespace nacre
