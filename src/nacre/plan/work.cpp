#include "nacre/plan/work.h"

#include <algorithm>
#include <cmath>

#include "nacre/plan/narrow.h"
#include "nacre/plan/operands.h"

namespace nacre {
namespace {

class Counter {
 public:
  Counter(const Kernel& k, const Plan& plan, RowsOf rows, int64_t cache)
      : k_(k), plan_(plan), dfg_(plan.dfg), rows_(rows), cache_(static_cast<double>(cache)) {}

  Work run() {
    w_.kind = kernel_name(k_.kind);
    w_[Feature::constant] = 1;
    count_kind();
    for (const RowProgram* p : {&k_.program, &k_.tail}) count_program(*p);
    for (const NodeRef v : k_.writes) w_[Feature::stream_bytes] += bytes(v);
    return w_;
  }

 private:
  double rows(NodeRef i) const { return rows_(dfg_[i].type.space); }
  double width(NodeRef i) const { return static_cast<double>(dfg_[i].type.row_size()); }
  bool narrow(NodeRef i) const { return plan_.is_narrow(i); }
  double bytes(NodeRef i) const {
    return rows(i) * width(i) * static_cast<double>(dtype_size(narrow(i) ? DType::bf16 : dfg_[i].type.dtype));
  }

  void stream(NodeRef i) {
    if (i >= 0) w_[Feature::stream_bytes] += bytes(i);
  }
  // Counts `count` rows of the memory of node i, which are read in no order.
  void gather(NodeRef i, double count) {
    const double total = count * width(i) * (narrow(i) ? 2 : 4);
    const double near = std::min(1.0, cache_ / std::max(1.0, bytes(i)));
    w_[Feature::near_bytes] += total * near;
    w_[Feature::far_bytes] += total * (1 - near);
  }
  void product(double count, const Dims& w) {
    w_[Feature::flops] += 2 * count * static_cast<double>(w[0]) * static_cast<double>(w[1]);
  }

  int layer() const { return walked_layer(dfg_, k_); }
  double edges() const { return rows_(Space::edge(layer())); }
  double pairs() const {
    const bool dst = k_.direction == Direction::by_dst;
    return rows_(dst ? Space::pair_dst(layer()) : Space::pair_src(layer()));
  }
  void walk_edges() {
    w_[Feature::edges] += edges();
    w_[Feature::stream_bytes] += edges() * 4;
  }

  void count_sums() {
    const auto in = operands<SpmmOperands>(k_);
    const bool of_pairs = k_.direction == Direction::pairs_of_dst || k_.direction == Direction::pairs_of_src;
    const double entries = of_pairs ? rows(in.x) : edges();
    w_[Feature::edges] += entries;
    w_[Feature::stream_bytes] += entries * 4;
    gather(in.x, entries);
    stream(in.weight);
    w_[Feature::vector_flops] += (in.own < 0 ? 1 : 2) * entries * width(k_.root);
    stream(in.own);
  }

  void count_kind() {
    const Node& root = dfg_[k_.root];
    w_[Feature::rows] += rows(k_.root);
    switch (k_.kind) {
      case KernelKind::spmm:
        return count_sums();
      case KernelKind::matmul: {
        const auto in = operands<ProductOperands>(k_);
        stream(in.x);
        product(rows(in.x), dfg_[in.weight].type.dims);
        return;
      }
      case KernelKind::weight_grad: {
        const auto in = operands<WeightGradOperands>(k_);
        stream(in.x);
        stream(in.gradient);
        product(rows(in.x), root.type.dims);
        return;
      }
      case KernelKind::typed_reduce: {
        const auto in = operands<TypedReduceOperands>(k_);
        if (dfg_[in.x].type.space.is_pair()) {
          stream(in.x);
          // Only plans for a GPU keep sums over pairs. The products are added up in registers, so
          // no bytes are counted for them.
          product(pairs() / nominal_gpu().in_place_products, dfg_[in.weight].type.dims);
          return;
        }
        walk_edges();
        gather(in.x, edges());
        stream(in.scale);
        product(pairs(), dfg_[in.weight].type.dims);
        w_[Feature::tasks] += pairs();
        return;
      }
      case KernelKind::typed_weight_grad: {
        const auto in = operands<TypedWeightGradOperands>(k_);
        walk_edges();
        const bool dst = k_.direction == Direction::by_dst;
        gather(dst ? in.x : in.gradient, edges());
        gather(dst ? in.gradient : in.x, pairs());
        stream(in.scale);
        product(pairs(), root.type.dims);
        return;
      }
      case KernelKind::typed_rows: {
        const auto in = operands<ProductOperands>(k_);
        read_rows(in.x, rows(k_.root));
        product(rows(k_.root), dfg_[in.weight].type.dims);
        return;
      }
      case KernelKind::typed_rows_grad: {
        const auto in = operands<WeightGradOperands>(k_);
        const double count = rows(root.inputs[0]);
        read_rows(in.x, count);
        read_rows(in.gradient, count);
        product(count, root.type.dims);
        return;
      }
      case KernelKind::lstm:
      case KernelKind::lstm_grad:
        return count_sequences();
      case KernelKind::lstm_gates_grad:
        return count_kept_sequences();
      case KernelKind::gtask_grad:
        walk_edges();
        product(edges(), root.type.dims);
        w_[Feature::tasks] += tasks();
        return;
      case KernelKind::gtask:
        walk_edges();
        w_[Feature::tasks] += tasks();
        // Counts the partial rows, which are written and read again.
        w_[Feature::near_bytes] += 2 * edges() * width(k_.root) * 4;
        return;
      case KernelKind::softmax_grad:
        stream(operands<SoftmaxGradOperands>(k_).y);
        [[fallthrough]];
      case KernelKind::softmax:
        w_[Feature::vector_flops] += 6 * edges() * width(k_.root);
        return walk_edges();
      case KernelKind::reduce:
      case KernelKind::map_edges:
        return walk_edges();
      case KernelKind::column_sum:
        if (k_.program.domain.kind == SpaceKind::edge) walk_edges();
        return;
      case KernelKind::exchange:
        return count_exchange();
      default:
        for (const NodeRef a : k_.args) stream(a);
    }
  }

  // Counts the rows that come from other ranks as rows that lie far away. A rank gets as many rows
  // for its halo as it gives back in an exchange_add.
  void count_exchange() {
    const Node& root = dfg_[k_.root];
    const NodeRef x = root.inputs[0];
    stream(x);
    const double more = std::abs(rows(k_.root) - rows(x));
    double far = more * width(x);
    if (root.op == Op::all_reduce) far = rows(x) * width(x);
    if (root.op == Op::to_columns) far = more * static_cast<double>(root.ints[2]);
    if (root.op == Op::to_rows) far = rows(k_.root) * (width(k_.root) - static_cast<double>(root.ints[2]));
    w_[Feature::far_bytes] += far * (k_.travel_bytes > 0 ? k_.travel_bytes : stored_bytes(plan_, k_));
  }

  // Rows of a vertex value that are read by pair are gathered; rows of the pairs themselves come in
  // order.
  void read_rows(NodeRef i, double count) {
    if (dfg_[i].type.space.on_vertices()) {
      gather(i, count);
    } else {
      stream(i);
    }
  }

  // Returns an estimate of the number of gTasks of a table. It is made from the exact(k) entries of
  // the table, without partitioning.
  double tasks() const {
    const auto cut = [&](Location l, Attribute a, double values) {
      const Restriction& r = k_.table.at(l, a);
      return r.kind == Restriction::exact ? values / static_cast<double>(r.k) : 1.0;
    };
    const double by_type = cut(Location::edge, Attribute::type, rows_(Space::type()));
    const double by_dst = cut(Location::dst, Attribute::id, rows_(Space::vertex(layer() + 1)));
    const double by_src = cut(Location::src, Attribute::id, rows_(Space::halo(layer())));
    const double by_edge = cut(Location::edge, Attribute::id, edges());
    return std::min(edges(), std::max(by_edge, by_type * by_dst * by_src));
  }

  void count_sequences() {
    const bool grad = k_.kind == KernelKind::lstm_grad;
    const NodeRef z = grad ? operands<LstmGradOperands>(k_).z : operands<LstmOperands>(k_).z;
    const Dims& w = dfg_[sequence_weight(k_)].type.dims;
    walk_edges();
    product((grad ? 3.0 : 1.0) * edges(), w);
    if (dfg_[z].type.space.on_vertices()) {
      gather(z, (grad ? 3.0 : 1.0) * edges());
    } else {
      w_[Feature::stream_bytes] += (grad ? 3.0 : 1.0) * bytes(z);
    }
    w_[Feature::vector_flops] += (grad ? 40.0 : 16.0) * edges() * static_cast<double>(w[0]);
    count_steps();
  }

  void count_kept_sequences() {
    const Dims& w = dfg_[sequence_weight(k_)].type.dims;
    walk_edges();
    product(edges(), w);
    stream(operands<LstmGatesGradOperands>(k_).gates);
    w_[Feature::vector_flops] += 24.0 * edges() * static_cast<double>(w[0]);
    count_steps();
  }

  void count_steps() {
    const Restriction& batch = k_.table.at(Location::dst, Attribute::id);
    w_[Feature::steps] += edges() / static_cast<double>(batch.kind == Restriction::exact ? batch.k : 128);
  }

  void count_program(const RowProgram& p) {
    if (p.empty()) return;
    const double count = rows_(p.domain);
    for (const Micro& m : p.code) {
      const double out = m.out < 0 ? 0 : static_cast<double>(p.widths[m.out]);
      const NodeRef operand = m.operand < 0 ? -1 : p.operands[m.operand];
      switch (m.op) {
        case MicroOp::load:
          w_[Feature::stream_bytes] += count * out * (narrow(operand) ? 2 : 4);
          break;
        case MicroOp::load_src:
        case MicroOp::load_dst:
          // Edges that follow each other share the vertex at the end where they are reduced, so the
          // row of that vertex is read once.
          if ((m.op == MicroOp::load_dst) == rows_at_dst(k_.direction)) {
            stream(operand);
          } else {
            gather(operand, count);
          }
          break;
        case MicroOp::gemm:
        case MicroOp::gemm_t:
        case MicroOp::typed_gemm:
        case MicroOp::typed_gemm_t:
          // The operations are counted by the widths of the registers, because the operand may own
          // the memory under another shape.
          w_[Feature::flops] += 2 * count * out * static_cast<double>(p.widths[m.a]) /
                                (k_.kind == KernelKind::typed_reduce ? nominal_gpu().in_place_products : 1);
          break;
        case MicroOp::store:
        case MicroOp::root:
        case MicroOp::load_row0:
        case MicroOp::load_type:
          break;
        default:
          w_[Feature::vector_flops] += count * std::max(out, m.a < 0 ? 0.0 : static_cast<double>(p.widths[m.a]));
      }
    }
  }

  const Kernel& k_;
  const Plan& plan_;
  const Dfg& dfg_;
  RowsOf rows_;
  double cache_;
  Work w_;
};

}  // namespace

Work kernel_work(const Kernel& kernel, const Plan& plan, const Blocks& blocks, int64_t cache_bytes) {
  return kernel_work(
      kernel, plan, [&](Space space) { return static_cast<double>(blocks.rows(space)); }, cache_bytes);
}

Work kernel_work(const Kernel& kernel, const Plan& plan, RowsOf rows, int64_t cache_bytes) {
  return Counter(kernel, plan, rows, cache_bytes).run();
}

}  // namespace nacre
