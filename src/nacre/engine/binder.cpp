#include "nacre/engine/binder.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/engine/copy_plan.h"
#include "nacre/kernel/cpu/gemm.h"
#include "nacre/kernel/cpu/loss.h"
#include "nacre/kernel/ref/ref_op.h"
#include "nacre/plan/operands.h"

namespace nacre {
namespace {

constexpr int64_t kFloat = sizeof(float);

// Returns the floats of a packed matrix, rounded up so that what follows it begins a cache line.
int64_t packed_floats(int64_t n, int64_t k) { return (cpu::gemm_packed_size(n, k) + 15) / 16 * 16; }

// The tail runs after this many rows of sums (kPairSumRows) or of a product (matmul_block_rows()).
// These rows must then still be in the second-level cache.
constexpr int64_t kPairSumRows = 64;
int64_t matmul_block_rows(int64_t width) { return std::clamp<int64_t>(65536 / std::max<int64_t>(1, width), 16, 512); }

}  // namespace

float* Binder::stored_root(const Kernel& k) const { return ex_.plan().stored[k.root] ? f32(k.root) : nullptr; }

const Graph& Binder::graph(const Kernel& k) const { return ex_.blocks().layer(walked_layer(ex_.plan().dfg, k)); }

NodeRef Binder::gates_of(const Kernel& k) const { return node(k.root).op == Op::lstm_gates ? k.root : k.second; }

std::shared_ptr<const cpu::LstmView> Binder::lstm_view(const Kernel& k) const {
  cpu::LstmOptions options;
  const Restriction& batch = k.table.at(Location::dst, Attribute::id);
  if (batch.kind == Restriction::exact) options.batch_rows = batch.k;
  const bool kept = k.kind == KernelKind::lstm_gates_grad;
  const NodeRef z = kept                         ? node(operands<LstmGatesGradOperands>(k).gates).inputs[0]
                    : k.kind == KernelKind::lstm ? operands<LstmOperands>(k).z
                                                 : operands<LstmGradOperands>(k).z;
  options.on_edges = node(z).type.space.kind == SpaceKind::edge;
  options.one_pass = kept || (k.kind == KernelKind::lstm && gates_of(k) >= 0);
  options.pad = !ex_.plan().options.split_outliers;
  return views_.lstm(graph(k), options);
}

std::shared_ptr<const cpu::GTaskView> Binder::gtask_view(const Kernel& k) const {
  const auto& code = k.program.code;
  const auto has = [&](bool (*what)(MicroOp)) {
    return std::any_of(code.begin(), code.end(), [&](const Micro& m) { return what(m.op); });
  };
  cpu::GTaskOptions options;
  options.direction = k.direction;
  options.width = k.kind == KernelKind::gtask ? width(k.root) : 1;
  // Outliers are treated apart only if there are products, because pooling small gTasks makes
  // products longer. A program without products would only lose the order of its rows.
  options.split_outliers = ex_.plan().options.split_outliers && (k.kind == KernelKind::gtask_grad || has(is_product));
  options.by_type = has(is_typed_product) || node(k.root).op == Op::typed_weight_grad;
  return views_.gtasks(graph(k), k.table, options);
}

std::shared_ptr<const cpu::RowsByType> Binder::by_type(const Kernel& k) const {
  const Space space =
      k.kind == KernelKind::typed_rows ? node(k.root).type.space : node(node(k.root).inputs[0]).type.space;
  return views_.by_type(graph(k), space.kind);
}

// Returns the vertex of each pair, by which a kernel over pairs gathers the rows of vertices; null
// if the operand does not live at vertices.
const uint32_t* Binder::pair_gather(const Kernel& k, NodeRef arg) const {
  if (!node(arg).type.space.on_vertices()) return nullptr;
  const Space pairs =
      k.kind == KernelKind::typed_rows ? node(k.root).type.space : node(node(k.root).inputs[0]).type.space;
  return graph(k).pairs(pairs.kind == SpaceKind::pair_src ? End::src : End::dst).vertex.data();
}

std::shared_ptr<const cpu::RowView> Binder::rows_view(const Kernel& k) const {
  return views_.rows(graph(k), k.direction, ex_.plan().options.split_outliers, k.rows);
}

cpu::BoundProgram Binder::bound(const RowProgram& program) const {
  cpu::BoundProgram b;
  b.ids = ex_.blocks().ids(program.domain).ids;
  b.program = &program;
  b.step = &step_;
  for (const NodeRef o : program.operands) b.operands.push_back(ex_.pointer(o));
  return b;
}

KernelNeeds Binder::needs(const Kernel& k) const {
  const Node& root = node(k.root);
  const RowProgram* tail = k.tail.empty() ? nullptr : &k.tail;
  switch (k.kind) {
    case KernelKind::map:
    case KernelKind::map_edges:
    case KernelKind::softmax:
    case KernelKind::softmax_grad:
      // Views are built here, while memory is being planned, because their size is part of the
      // bill.
      if (k.kind != KernelKind::map) rows_view(k);
      return {cpu::scratch_floats(k.program), 0};
    case KernelKind::column_sum:
      if (k.program.domain.kind == SpaceKind::edge) rows_view(k);
      return {cpu::scratch_floats(k.program), cpu::column_sum_workspace(rows(root.inputs[0]), width(k.root)) * kFloat};
    case KernelKind::reduce: {
      const auto view = rows_view(k);
      // A maximum takes twice the space, because its position is stored as well.
      const int64_t per_piece = k.reduce_op == ReduceOp::max ? 2 : 1;
      return {cpu::reduce_scratch_floats(*view, k.program, k.value, tail),
              view->num_partials * width(k.root) * per_piece * kFloat};
    }
    case KernelKind::spmm: {
      const auto view = rows_view(k);
      return {cpu::spmm_scratch_floats(*view, width(k.root), tail), view->num_partials * width(k.root) * kFloat};
    }
    case KernelKind::matmul: {
      if (tail == nullptr) return {};
      const SummedProducts sum = summed_products(ex_.plan(), k);
      const int64_t n = width(k.root);
      int64_t packed = 0;
      for (const RowFactor& f : sum.inputs) packed += packed_floats(n, width(f.x));
      return {matmul_block_rows(n) * n + cpu::scratch_floats(sum.tail), packed * kFloat};
    }
    case KernelKind::weight_grad: {
      const auto in = operands<WeightGradOperands>(k);
      return {0, cpu::gemm_tn_workspace(rows(in.x), width(in.x), width(in.gradient))};
    }
    case KernelKind::typed_reduce: {
      const auto in = operands<TypedReduceOperands>(k);
      const Dims& w = node(in.weight).type.dims;
      if (node(in.x).type.space.is_pair()) {
        const int64_t products = rows(in.x) * width(k.root);
        const int64_t of_tail = tail == nullptr ? 0 : kPairSumRows * width(k.root) + cpu::scratch_floats(*tail);
        return {std::max(cpu::typed_rows_scratch(w[0], w[1]), of_tail),
                (products + cpu::typed_rows_workspace(*by_type(k), w[0], w[1])) * kFloat};
      }
      const auto view = views_.typed(graph(k), k.direction);
      return {cpu::typed_scratch_floats(w[0], w[1]), cpu::typed_matmul_workspace(*view, w[0], w[1]) * kFloat};
    }
    case KernelKind::typed_weight_grad: {
      const auto view = views_.typed(graph(k), k.direction);
      const Dims& w = root.type.dims;
      return {cpu::typed_scratch_floats(w[0], w[1]), cpu::typed_weight_grad_workspace(*view, w[0], w[1]) * kFloat};
    }
    case KernelKind::typed_rows: {
      const Dims& w = node(operands<ProductOperands>(k).weight).type.dims;
      return {cpu::typed_rows_scratch(w[0], w[1]), cpu::typed_rows_workspace(*by_type(k), w[0], w[1]) * kFloat};
    }
    case KernelKind::typed_rows_grad: {
      const Dims& w = root.type.dims;
      return {cpu::typed_rows_scratch(w[0], w[1]), by_type(k)->num_partials * w[0] * w[1] * kFloat};
    }
    case KernelKind::gtask: {
      const auto view = gtask_view(k);
      const bool stored = root.op != Op::index_argmax && ex_.plan().stored[k.root];
      return {cpu::gtask_scratch_floats(k.program, tail),
              cpu::gtask_workspace(*view, k.program, k.value, k.reduce_op, stored)};
    }
    case KernelKind::gtask_grad:
      return {cpu::gtask_scratch_floats(k.program, nullptr),
              cpu::gtask_weight_grad_workspace(*gtask_view(k), k.program, k.value, k.second_value,
                                               root.op == Op::typed_weight_grad)};
    case KernelKind::lstm: {
      const auto view = lstm_view(k);
      const int64_t hidden = width(operands<LstmOperands>(k).z) / 4;
      return {cpu::lstm_scratch_floats(*view, hidden), cpu::lstm_forward_workspace(hidden) * kFloat};
    }
    case KernelKind::lstm_gates_grad: {
      const int64_t hidden = width(operands<LstmGatesGradOperands>(k).gradient);
      return {cpu::lstm_gates_grad_scratch(*lstm_view(k), hidden), cpu::lstm_gates_grad_workspace(hidden) * kFloat};
    }
    case KernelKind::lstm_grad: {
      const auto view = lstm_view(k);
      return {0, cpu::lstm_grad_workspace(*view, width(operands<LstmGradOperands>(k).gradient)) * kFloat};
    }
    case KernelKind::loss:
      return {0, cpu::rows_workspace(rows(operands<LossOperands>(k).x), 1) * static_cast<int64_t>(sizeof(double))};
    case KernelKind::moments: {
      const NodeRef x =
          root.op == Op::column_moments ? operands<ColumnMomentsOperands>(k).x : operands<StandardizeGradOperands>(k).x;
      return {0, cpu::rows_workspace(rows(x), 2 * width(x)) * static_cast<int64_t>(sizeof(double))};
    }
    case KernelKind::exchange:  // The executor binds these kernels.
    case KernelKind::copy:
    case KernelKind::reference:
      return {};
  }
  return {};
}

std::function<void()> Binder::bind(const Kernel& k, const cpu::Scratch& scratch, void* workspace) const {
  switch (k.kind) {
    case KernelKind::map:
      return [program = bound(k.program), range = k.rows.of(rows(k.root)), scratch] {
        cpu::map_rows(program, range, scratch);
      };
    case KernelKind::column_sum: {
      cpu::ColumnSumArgs a;
      a.program = bound(k.program);
      a.value = k.value;
      a.rows = rows(node(k.root).inputs[0]);
      a.out = f32(k.root);
      a.workspace = static_cast<float*>(workspace);
      a.scratch = scratch;
      std::shared_ptr<const cpu::RowView> view;
      if (k.program.domain.kind == SpaceKind::edge) view = rows_view(k);
      a.edges = view.get();
      return [a, view] { cpu::column_sum(a); };
    }
    case KernelKind::map_edges:
    case KernelKind::softmax:
    case KernelKind::softmax_grad:
    case KernelKind::reduce:
    case KernelKind::spmm:
      return bind_edges(k, scratch, workspace);
    case KernelKind::matmul:
      return bind_matmul(k, scratch, workspace);
    case KernelKind::weight_grad: {
      const auto in = operands<WeightGradOperands>(k);
      const float* x = f32(in.x);
      const float* g = f32(in.gradient);
      float* out = f32(k.root);
      const int64_t m = rows(in.x);
      const int64_t kk = width(in.x);
      const int64_t n = width(in.gradient);
      return [=] { cpu::gemm_tn(m, n, kk, x, kk, g, n, out, n, workspace); };
    }
    case KernelKind::typed_reduce:
    case KernelKind::typed_weight_grad:
      return bind_typed(k, scratch, workspace);
    case KernelKind::typed_rows:
    case KernelKind::typed_rows_grad:
      return bind_typed_rows(k, scratch, workspace);
    case KernelKind::gtask:
    case KernelKind::gtask_grad:
      return bind_gtask(k, scratch, workspace);
    case KernelKind::lstm:
    case KernelKind::lstm_grad:
      return bind_lstm(k, scratch, workspace);
    case KernelKind::lstm_gates_grad:
      return bind_lstm_gates_grad(k, scratch, workspace);
    case KernelKind::loss:
      return bind_loss(k, workspace);
    case KernelKind::moments:
      return bind_moments(k, workspace);
    case KernelKind::copy:
      return bind_copy(k);
    case KernelKind::exchange:
      break;
    case KernelKind::reference:
      return bind_reference(k);
  }
  return {};
}

std::function<void()> Binder::bind_edges(const Kernel& k, const cpu::Scratch& scratch, void* workspace) const {
  const auto view = rows_view(k);
  auto* partials = static_cast<float*>(workspace);
  switch (k.kind) {
    case KernelKind::map_edges:
      return [program = bound(k.program), view, scratch] { cpu::map_edges(program, *view, scratch); };
    case KernelKind::softmax: {
      const cpu::SoftmaxArgs a{view.get(), bound(k.program), k.value, f32(k.root), scratch};
      return [a, view] { cpu::edge_softmax(a); };
    }
    case KernelKind::softmax_grad: {
      const float* y = f32(operands<SoftmaxGradOperands>(k).y);
      const cpu::SoftmaxGradArgs a{view.get(), bound(k.program), k.value, y, f32(k.root), scratch};
      return [a, view] { cpu::edge_softmax_grad(a); };
    }
    case KernelKind::reduce: {
      cpu::ReduceArgs a;
      a.view = view.get();
      a.program = bound(k.program);
      a.value = k.value;
      a.reduce = k.reduce_op;
      const bool argmax_only = node(k.root).op == Op::index_argmax;
      a.out = argmax_only ? nullptr : stored_root(k);
      a.argmax = static_cast<int32_t*>(argmax_only ? ex_.pointer(k.root) : ex_.pointer(k.second));
      if (!k.tail.empty()) a.post = bound(k.tail);
      a.partials = partials;
      a.scratch = scratch;
      return [a, view] { cpu::reduce_rows(a); };
    }
    default: {
      const auto in = operands<SpmmOperands>(k);
      cpu::SpmmArgs a;
      a.view = view.get();
      a.x = f32(in.x);
      const Space from = node(in.x).type.space;
      const bool edges = k.direction == Direction::by_dst || k.direction == Direction::by_src;
      if (edges && from.is_pair()) {
        a.col = views_.pair_columns(graph(k), k.direction, from.kind == SpaceKind::pair_src ? End::src : End::dst);
      }
      a.weight = f32(in.weight);
      a.width = width(k.root);
      a.heads = k.heads;
      a.mean = k.reduce_op == ReduceOp::mean;
      a.own = f32(in.own);
      if (in.own >= 0) a.dots = f32(k.second);
      a.out = stored_root(k);
      if (!k.tail.empty()) a.post = bound(k.tail);
      a.partials = partials;
      a.scratch = scratch;
      return [a, view] { cpu::spmm(a); };
    }
  }
}

std::function<void()> Binder::bind_matmul(const Kernel& k, const cpu::Scratch& scratch, void* workspace) const {
  const auto in = operands<ProductOperands>(k);
  const float* x = f32(in.x);
  const float* w = f32(in.weight);
  float* out = stored_root(k);
  const RowSpan range = k.rows.of(rows(in.x));
  const int64_t m = range.count();
  const int64_t kk = width(in.x);
  const int64_t n = width(k.root);
  const bool transpose = k.transpose;
  // With and without `transpose`, w is the [K, N] matrix of the forward product, so its leading
  // dimension is its second size.
  const int64_t ldw = node(in.weight).type.dims[1];
  if (k.tail.empty()) {
    x += range.begin * kk;
    out += range.begin * n;
    if (transpose) return [=] { cpu::gemm_nt(m, n, kk, x, kk, w, ldw, out, n); };
    return [=] { cpu::gemm_nn(m, n, kk, x, kk, w, ldw, out, n); };
  }
  struct Term {
    const float* x;
    const float* w;
    int64_t k, ldw;
    bool transpose;
    float* packed;
  };
  const auto sum = std::make_shared<const SummedProducts>(summed_products(ex_.plan(), k));
  std::vector<Term> terms;
  auto* packed = static_cast<float*>(workspace);
  for (const RowFactor& f : sum->inputs) {
    terms.push_back({f32(f.x), f32(f.w), width(f.x), node(f.w).type.dims[1], f.transpose, packed});
    packed += packed_floats(n, width(f.x));
  }
  const int64_t block = matmul_block_rows(n);
  return [range, n, out, block, scratch, terms, sum, tail = bound(sum->tail)] {
    for (const Term& t : terms) {
      if (t.transpose) {
        cpu::gemm_pack_nt(n, t.k, t.w, t.ldw, t.packed);
      } else {
        cpu::gemm_pack_nn(n, t.k, t.w, t.ldw, t.packed);
      }
    }
    parallel_for(range.count(), block, [&](int64_t from, int64_t to) {
      const int64_t b = range.begin + from, e = range.begin + to;
      float* mine = scratch.data + thread_index() * scratch.per_thread;
      float* tile = out != nullptr ? out + b * n : mine;
      float beta = 0;
      for (const Term& t : terms) {
        cpu::gemm_tile_packed(e - b, n, t.k, t.x + b * t.k, t.k, t.packed, tile, n, {.beta = beta});
        beta = 1;
      }
      cpu::map_rows_serial(tail, b, e, tile, mine + block * n);
    });
  };
}

std::function<void()> Binder::bind_typed(const Kernel& k, const cpu::Scratch& scratch, void* workspace) const {
  if (k.kind == KernelKind::typed_reduce) {
    const auto in = operands<TypedReduceOperands>(k);
    if (node(in.x).type.space.is_pair()) return bind_pair_products(k, scratch, static_cast<float*>(workspace));
    const auto view = views_.typed(graph(k), k.direction);
    cpu::TypedMatmulArgs a;
    a.view = view.get();
    a.x = f32(in.x);
    a.w = f32(in.weight);
    a.scale = f32(in.scale);
    a.k = node(in.weight).type.dims[0];
    a.n = node(in.weight).type.dims[1];
    a.transpose = k.transpose;
    a.out = f32(k.root);
    a.scratch = scratch;
    a.workspace = static_cast<float*>(workspace);
    return [a, view] { cpu::typed_matmul_reduce(a); };
  }
  const auto in = operands<TypedWeightGradOperands>(k);
  const auto view = views_.typed(graph(k), k.direction);
  cpu::TypedWeightGradArgs a;
  a.view = view.get();
  a.x = f32(in.x);
  a.g = f32(in.gradient);
  a.scale = f32(in.scale);
  a.k = node(k.root).type.dims[0];
  a.n = node(k.root).type.dims[1];
  a.dw = f32(k.root);
  a.workspace = static_cast<float*>(workspace);
  a.scratch = scratch;
  return [a, view] { cpu::typed_weight_grad(a); };
}

// Returns a function that computes the products of the rows of pairs, then their sum over the pairs
// of each vertex, and then the tail.
std::function<void()> Binder::bind_pair_products(const Kernel& k, const cpu::Scratch& scratch, float* products) const {
  const auto in = operands<TypedReduceOperands>(k);
  const auto rows_of = by_type(k);
  const int64_t width_out = width(k.root);
  cpu::TypedRowsArgs a;
  a.rows = rows_of.get();
  a.x = f32(in.x);
  a.w = f32(in.weight);
  a.k = node(in.weight).type.dims[0];
  a.n = node(in.weight).type.dims[1];
  a.transpose = k.transpose;
  a.out = products;
  a.workspace = products + rows(in.x) * width_out;
  a.scratch = scratch;
  const PairIndex& pairs = graph(k).pairs(k.direction == Direction::by_dst ? End::dst : End::src);
  std::optional<cpu::BoundProgram> tail;
  if (!k.tail.empty()) tail = bound(k.tail);
  return [a, rows_of, &pairs, width_out, tail, out = stored_root(k), vertices = rows(k.root)] {
    cpu::typed_rows(a);
    parallel_for(vertices, kPairSumRows, [&](int64_t b, int64_t e) {
      float* mine = a.scratch.data + thread_index() * a.scratch.per_thread;
      float* tile = out != nullptr ? out + b * width_out : mine;
      for (int64_t v = b; v < e; ++v) {
        float* sum = tile + (v - b) * width_out;
        std::fill_n(sum, width_out, 0.0F);
        for (int64_t i = pairs.vertex_ptr[v]; i < pairs.vertex_ptr[v + 1]; ++i) {
          const float* row = a.out + static_cast<int64_t>(pairs.pair[i]) * width_out;
          for (int64_t c = 0; c < width_out; ++c) sum[c] += row[c];
        }
      }
      if (tail) cpu::map_rows_serial(*tail, b, e, tile, mine + kPairSumRows * width_out);
    });
  };
}

std::function<void()> Binder::bind_typed_rows(const Kernel& k, const cpu::Scratch& scratch, void* workspace) const {
  const auto rows_of = by_type(k);
  if (k.kind == KernelKind::typed_rows) {
    const auto in = operands<ProductOperands>(k);
    cpu::TypedRowsArgs a;
    a.rows = rows_of.get();
    a.x = f32(in.x);
    a.gather = pair_gather(k, in.x);
    a.w = f32(in.weight);
    a.k = node(in.weight).type.dims[0];
    a.n = node(in.weight).type.dims[1];
    a.transpose = k.transpose;
    a.out = f32(k.root);
    a.workspace = static_cast<float*>(workspace);
    a.scratch = scratch;
    return [a, rows_of] { cpu::typed_rows(a); };
  }
  const auto in = operands<WeightGradOperands>(k);
  cpu::TypedRowsGradArgs a;
  a.rows = rows_of.get();
  a.x = f32(in.x);
  a.gather_x = pair_gather(k, in.x);
  a.g = f32(in.gradient);
  a.gather_g = pair_gather(k, in.gradient);
  a.k = node(k.root).type.dims[0];
  a.n = node(k.root).type.dims[1];
  a.dw = f32(k.root);
  a.workspace = static_cast<float*>(workspace);
  a.scratch = scratch;
  return [a, rows_of] { cpu::typed_rows_grad(a); };
}

std::function<void()> Binder::bind_gtask(const Kernel& k, const cpu::Scratch& scratch, void* workspace) const {
  const auto view = gtask_view(k);
  if (k.kind == KernelKind::gtask_grad) {
    cpu::GTaskWeightGradArgs a;
    a.view = view.get();
    a.program = bound(k.program);
    a.x = k.value;
    a.g = k.second_value;
    a.typed = node(k.root).op == Op::typed_weight_grad;
    a.dw = f32(k.root);
    a.workspace = workspace;
    a.scratch = scratch;
    return [a, view] { cpu::gtask_weight_grad(a); };
  }
  cpu::GTaskArgs a;
  a.view = view.get();
  a.program = bound(k.program);
  a.value = k.value;
  a.reduce = k.reduce_op;
  const bool argmax_only = node(k.root).op == Op::index_argmax;
  a.out = argmax_only ? nullptr : stored_root(k);
  a.argmax = static_cast<int32_t*>(argmax_only ? ex_.pointer(k.root) : ex_.pointer(k.second));
  if (!k.tail.empty()) a.post = bound(k.tail);
  a.workspace = workspace;
  a.scratch = scratch;
  return [a, view] { cpu::run_gtasks(a); };
}

std::function<void()> Binder::bind_lstm(const Kernel& k, const cpu::Scratch& scratch, void* workspace) const {
  const auto view = lstm_view(k);
  if (k.kind == KernelKind::lstm) {
    const auto in = operands<LstmOperands>(k);
    cpu::LstmArgs a;
    a.view = view.get();
    a.hidden = width(in.z) / 4;
    a.z = f32(in.z);
    a.w = f32(in.weight);
    if (const NodeRef gates = gates_of(k); gates >= 0) a.gates = f32(gates);
    if (node(k.root).op == Op::lstm) a.out = f32(k.root);
    a.scratch = scratch;
    a.workspace = static_cast<float*>(workspace);
    return [a, view] { cpu::lstm_forward(a); };
  }
  const auto in = operands<LstmGradOperands>(k);
  cpu::LstmGradArgs a;
  a.view = view.get();
  a.hidden = width(in.gradient);
  a.g = f32(in.gradient);
  a.z = f32(in.z);
  a.w = f32(in.weight);
  const bool root_is_z = node(k.root).op == Op::lstm_grad_z;
  a.dz = f32(root_is_z ? k.root : k.second);
  a.dw = f32(root_is_z ? k.second : k.root);
  a.workspace = static_cast<float*>(workspace);
  return [a, view] { cpu::lstm_backward(a); };
}

std::function<void()> Binder::bind_lstm_gates_grad(const Kernel& k, const cpu::Scratch& scratch,
                                                   void* workspace) const {
  const auto view = lstm_view(k);
  const auto in = operands<LstmGatesGradOperands>(k);
  cpu::LstmGatesGradArgs a;
  a.view = view.get();
  a.hidden = width(in.gradient);
  a.g = f32(in.gradient);
  a.gates = f32(in.gates);
  a.w = f32(in.weight);
  a.out = f32(k.root);
  if (k.second >= 0) a.states = f32(k.second);
  a.workspace = static_cast<float*>(workspace);
  a.scratch = scratch;
  return [a, view] { cpu::lstm_gates_backward(a); };
}

namespace {

void copy_listed(const ListedCopy& copy, int64_t width) {
  constexpr int64_t kChunkFloats = 1 << 16;
  const auto* from = static_cast<const float*>(copy.from);
  auto* to = static_cast<float*>(copy.to);
  const NodeId* rows = copy.rows->data();
  const int64_t chunk = std::max<int64_t>(1, kChunkFloats / std::max<int64_t>(1, width));
  parallel_for(copy.rows->size(), chunk, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t listed = rows[i];
      std::copy_n(from + (copy.spread ? i : listed) * width, width, to + (copy.spread ? listed : i) * width);
    }
  });
}

}  // namespace

std::function<void()> Binder::bind_copy(const Kernel& k) const {
  const CopyPlan plan = plan_copy(ex_, k);
  return [plan] {
    constexpr int64_t kChunk = 1 << 18;
    for (const ListedCopy& copy : plan.listed) copy_listed(copy, plan.width);
    for (const CopyPart& part : plan.parts) {
      parallel_for(part.bytes, kChunk, [&](int64_t b, int64_t e) {
        std::memcpy(static_cast<char*>(part.to) + b, static_cast<const char*>(part.from) + b,
                    static_cast<size_t>(e - b));
      });
    }
    parallel_for(plan.zero_bytes, kChunk, [&](int64_t b, int64_t e) {
      std::memset(static_cast<char*>(plan.zeros) + b, 0, static_cast<size_t>(e - b));
    });
  };
}

std::function<void()> Binder::bind_reference(const Kernel& k) const {
  std::vector<ref::ConstView> inputs;
  for (const NodeRef a : k.args) inputs.push_back({ex_.pointer(a), node(a).type, rows(a)});
  const ref::View out{ex_.pointer(k.root), node(k.root).type, rows(k.root)};
  return [this_node = node(k.root), blocks = &ex_.blocks(), step = &step_, inputs, out] {
    ref::run<float>(this_node, *blocks, *step, inputs, out);
  };
}

}  // namespace nacre
