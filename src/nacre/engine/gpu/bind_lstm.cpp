// Binds LSTMs over neighbours on a GPU. The forward pass is one launch over all rows, the longest
// first. The backward pass takes the rows in runs whose steps fit a workspace. It runs each run
// forward again and keeps gates and states, then walks back over the steps. From the gradients of
// the gates it adds up dz (rows grouped by source) and dw (a matrix product over all steps of the
// run).
#include <fmt/format.h>

#include <algorithm>

#include "nacre/engine/gpu/lstm_sequences.h"
#include "nacre/engine/gpu/step_list.h"
#include "nacre/kernel/cuda/lstm.h"
#include "nacre/kernel/cuda/typed.h"
#include "nacre/plan/operands.h"
#include "nacre/plan/variants/lstm.h"

namespace nacre {
namespace {

constexpr int64_t kFloat = sizeof(float);

struct Lstm {
  const Graph& graph;
  cuda::LstmShape shape;
  int64_t hidden;
  const float* z;
  const float* w;
  std::string key;  // begins the keys of what is made for the graph
};

Lstm lstm_of(const GpuKernel& k, NodeRef z, NodeRef w) {
  const int64_t hidden = k.width(z) / 4;
  const bool on_edges = k.node(z).type.space.kind == SpaceKind::edge;
  const bool in_tiles = k.variant<LstmWay>(lstm_variants(), lstm_facts(k.planned())) == LstmWay::tiles;
  return {k.graph(),
          {hidden, in_tiles, on_edges, k.context.device().info().shared_bytes},
          hidden,
          static_cast<const float*>(k.pointer(z)),
          static_cast<const float*>(k.pointer(w)),
          fmt::format("sequences {} {}", static_cast<const void*>(k.graph().row_ptr().data()),
                      static_cast<const void*>(k.graph().col_idx().data()))};
}

int64_t blocks_of(int64_t units, int64_t per_block) { return (units + per_block - 1) / per_block; }

const SequenceOrder& order_of(GpuContext& context, const Lstm& l) {
  return context.once<SequenceOrder>(l.key, [&] { return order_sequences(l.graph); });
}

// Points to the arrays of a SequenceOrder in device memory.
struct LstmRows {
  const uint32_t* order = nullptr;
  const int64_t* entry = nullptr;
  const int64_t* row_ptr = nullptr;
  const uint32_t* col = nullptr;
};

LstmRows rows_of(GpuContext& context, const Lstm& l, const SequenceOrder& order) {
  return {context.made(l.key + " order", order.row), context.made(l.key + " entry", order.entry),
          context.resident(l.graph.row_ptr()), l.shape.on_edges ? nullptr : context.resident(l.graph.col_idx())};
}

struct Kept {
  float* gates = nullptr;
  float* h = nullptr;
  float* c = nullptr;
};

// Names the rows [first, first + count) of the order.
struct Run {
  int64_t first, count;
};

// The kernel writes through `gates`, which clang-tidy does not see.
// NOLINTNEXTLINE(readability-non-const-parameter)
cuda::LstmRunParams params_of(const float* w, const LstmRows& rows, const Run& run, float* gates) {
  return {.w = w,
          .order = rows.order,
          .row_ptr = rows.row_ptr,
          .entry = rows.entry,
          .gates = gates,
          .first = run.first,
          .count = run.count};
}

// Adds the steps of the forward pass over a run. If `out` is null, the pass keeps the values that a
// backward pass needs. The kernel writes through `out`, which clang-tidy does not see.
// NOLINTNEXTLINE(readability-non-const-parameter)
void add_forward(StepList& steps, const Lstm& l, const LstmRows& rows, const Run& run, const Kept& kept, float* out) {
  const int64_t blocks = blocks_of(run.count, cuda::lstm_rows_of_block(l.shape, false));
  steps.launch(cuda::lstm_forward(l.shape, out == nullptr), blocks, [&] {
    return cuda::LaunchParams(params_of(l.w, rows, run, kept.gates))
        .then(cuda::LstmForwardParams{.z = l.z, .col = rows.col, .h_before = kept.h, .c_before = kept.c, .out = out});
  });
}

void add_lstm(const GpuKernel& k, StepList& steps) {
  if (steps.sizing()) return;
  const auto in = operands<LstmOperands>(k.kernel);
  const Lstm l = lstm_of(k, in.z, in.weight);
  const SequenceOrder& order = order_of(k.context, l);
  auto* out = static_cast<float*>(k.pointer(k.kernel.root));
  steps.zero(out, l.graph.num_dst() * l.hidden * kFloat);  // rows without neighbours
  add_forward(steps, l, rows_of(k.context, l, order), {0, static_cast<int64_t>(order.row.size())}, {}, out);
}

std::string key_of_sums(const Lstm& l, const std::vector<int64_t>& borders, int64_t longest) {
  return fmt::format("{} sums of {} {}", l.key, borders.size() < 2 ? 0 : borders[1], longest);
}

const SequenceItems& sums_of(GpuContext& context, const Lstm& l, const std::vector<int64_t>& borders, int64_t longest) {
  return context.once<SequenceItems>(key_of_sums(l, borders, longest), [&] {
    return cut_sums(sums_of_sources(l.graph, order_of(context, l), borders), longest);
  });
}

// Holds the parameters of add_to_sources(), which adds the rows of the entries of a run to the rows
// of their sources.
struct AddRows {
  const SequenceItems* sums;
  std::string key;
  const float* gates;
  float* partials;
  float* dz;
  int64_t width;
};
void add_to_sources(GpuContext& context, StepList& steps, const AddRows& args, size_t run) {
  const cuda::Source source = cuda::add_rows(args.width);
  const auto launch = [&](const std::vector<cuda::Segment>& items, const std::vector<int64_t>& run_ptr, bool pieces) {
    const int64_t first = run_ptr[run], count = run_ptr[run + 1] - first;
    steps.launch(source, blocks_of(count, cuda::add_rows_of_block()), [&] {
      return cuda::AddRowsParams{
          .from = pieces ? args.partials : args.gates,
          .items = context.made(args.key + (pieces ? " pieces" : " items"), items) + first,
          .rows = pieces ? nullptr : context.made(args.key + " entry", args.sums->entry),
          .partials = args.partials,
          .to = args.dz,
          .count = count,
      };
    });
  };
  launch(args.sums->items, args.sums->item_run, false);
  launch(args.sums->pieces, args.sums->piece_run, true);
}

GemmShape product_of(const GpuKernel& k, int64_t hidden) {
  GemmShape shape;
  shape.m = hidden;
  shape.n = 4 * hidden;
  shape.transpose_a = true;
  shape.lda = hidden;
  shape.ldb = 4 * hidden;
  shape.ldc = 4 * hidden;
  const GemmType type = k.context.options().precision;
  shape.type = type == GemmType::bf16 ? GemmType::tf32 : type;
  return shape;
}

struct Grads {
  const float* g;
  bool want_z, want_w;
  float* dz;
  float* dw;
};

Grads grads_of(const GpuKernel& k) {
  const bool root_is_z = k.node(k.kernel.root).op == Op::lstm_grad_z;
  const NodeRef z = root_is_z ? k.kernel.root : k.kernel.second;
  const NodeRef w = root_is_z ? k.kernel.second : k.kernel.root;
  return {static_cast<const float*>(k.pointer(operands<LstmGradOperands>(k.kernel).gradient)), z >= 0, w >= 0,
          static_cast<float*>(k.pointer(z)), static_cast<float*>(k.pointer(w))};
}

void add_lstm_grad(const GpuKernel& k, StepList& steps) {
  const auto in = operands<LstmGradOperands>(k.kernel);
  const Lstm l = lstm_of(k, in.z, in.weight);
  const Grads grads = grads_of(k);
  const int64_t h = l.hidden;
  const SequenceOrder& order = order_of(k.context, l);
  const LstmFacts facts = lstm_facts(k.planned());
  const std::vector<int64_t> borders = cut_sequences(order, rows_of_chunk(k, lstm_chunks(facts, k.context.traits())));
  const auto long_sums = k.take<LongSources>(long_source_variants(), facts);
  const int64_t longest = long_sums.way == LongSources::in_pieces ? long_sums.limit : INT64_MAX;
  steps.time_products(product_timing(k));
  const int64_t entries = longest_run(order, borders);
  Kept kept;
  kept.gates = steps.carve.floats(entries * 4 * h);
  kept.h = steps.carve.floats(entries * h);
  kept.c = steps.carve.floats(entries * h);
  const bool by_source = grads.want_z && !l.shape.on_edges;
  AddRows sums = {nullptr, key_of_sums(l, borders, longest), kept.gates, nullptr, grads.dz, 4 * h};
  if (by_source) {
    sums.sums = &sums_of(k.context, l, borders, longest);
    sums.partials = steps.carve.floats(sums.sums->num_partials * 4 * h);
  }
  const float* w = l.w;
  if (l.shape.in_tiles) {
    float* transposed = steps.carve.floats(4 * h * h);
    const cuda::Source turn = cuda::arrange_weights(cuda::Arrange::split, h, 4 * h, 1, false);
    steps.launch(turn, blocks_of(4 * h * h, turn.threads),
                 [&] { return cuda::ArrangeWeightsParams{.from = l.w, .to = transposed}; });
    w = transposed;
  }
  // If dz has a row for each edge, every row is written by one entry, so dz needs no zeros.
  if (by_source) steps.zero(grads.dz, l.graph.num_src() * 4 * h * kFloat);
  if (grads.want_w && entries == 0) steps.zero(grads.dw, 4 * h * h * kFloat);
  const LstmRows rows = steps.sizing() ? LstmRows{} : rows_of(k.context, l, order);
  GemmShape product = product_of(k, h);
  cuda::LstmShape shape = l.shape;
  shape.on_edges = l.shape.on_edges && grads.want_z;
  for (size_t c = 0; c + 1 < borders.size(); ++c) {
    const int64_t first = borders[c], count = borders[c + 1] - first;
    add_forward(steps, l, rows, {first, count}, kept, nullptr);
    steps.launch(cuda::lstm_backward(shape), blocks_of(count, cuda::lstm_rows_of_block(shape, true)), [&] {
      return cuda::LaunchParams(params_of(w, rows, {first, count}, kept.gates))
          .then(cuda::LstmBackwardParams{.g = grads.g, .c_before = kept.c, .dz = grads.dz});
    });
    if (by_source) add_to_sources(k.context, steps, sums, c);
    product.k = order.entry[borders[c + 1]] - order.entry[first];
    product.beta = c == 0 ? 0.0f : 1.0f;
    if (grads.want_w) steps.product(product, {kept.h, kept.gates, grads.dw, nullptr});
  }
}

void add_steps(const GpuKernel& k, StepList& steps) {
  if (k.kernel.kind == KernelKind::lstm) return add_lstm(k, steps);
  add_lstm_grad(k, steps);
}

KernelNeeds lstm_needs(const GpuKernel& k) {
  StepList steps(k.context, nullptr, true);
  add_steps(k, steps);
  return {0, steps.bytes()};
}

Step bind_lstm(const GpuKernel& k, void* workspace) {
  StepList steps(k.context, workspace, false);
  add_steps(k, steps);
  return steps.finish(workspace);
}

}  // namespace

const GpuFamily kGpuLstm = {lstm_needs, bind_lstm};

}  // namespace nacre
