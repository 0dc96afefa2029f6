// Shape inference, with one function for each family of operations. Every rule of op.h that can be
// checked without a graph is checked here.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "nacre/base/error.h"
#include "nacre/dfg/dfg.h"

namespace nacre {
namespace {

// These limits are far beyond any model, and small enough that no product or sum of sizes
// overflows.
constexpr int64_t kMaxRow = int64_t{1} << 40;
constexpr int64_t kMaxCount = int64_t{1} << 40;  // largest number of rows
constexpr int kMaxLayer = 1 << 20;

class Inference {
 public:
  Inference(const Dfg& dfg, const Node& node, NodeRef position) : node_(node) {
    require(std::isfinite(node.alpha), "alpha must be a number");
    in_.reserve(node.inputs.size());
    for (const NodeRef i : node.inputs) {
      require(i >= 0 && i < position, "an input is not a node before this one");
      in_.push_back(&dfg[i].type);
    }
    const int inputs = op_info(node.op).num_inputs;
    if (inputs == kAnyInputs) {
      require(!in_.empty(), "takes one input or more");
    } else if (static_cast<int>(in_.size()) != inputs) {
      fail("takes " + std::to_string(inputs) + " inputs");
    }
  }

  ValueType run() {
    ValueType type = infer();
    require_sane(type);
    return type;
  }

 private:
  ValueType infer() {
    switch (op_info(node_.op).op_class) {
      case OpClass::leaf:
        return leaf();
      case OpClass::indexing:
        return indexing();
      case OpClass::communication:
        return communication();
      case OpClass::neural:
        break;
    }
    if (op_info(node_.op).elementwise) return elementwise();
    switch (node_.op) {
      case Op::matmul:
      case Op::matmul_t:
      case Op::weight_grad:
      case Op::typed_matmul:
      case Op::typed_matmul_t:
      case Op::typed_weight_grad:
        return matrix();
      case Op::row_sum:
      case Op::expand:
      case Op::reshape:
      case Op::concat:
      case Op::slice:
      case Op::pad:
        return row_shape();
      case Op::join_rows:
      case Op::slice_rows:
        return counted_rows();
      default:
        return across_rows();
    }
  }

  [[noreturn]] void fail(const std::string& why) const {
    std::string text = "does not fit: " + why + "; inputs:";
    for (const ValueType* t : in_) text += " " + type_text(*t);
    throw UserError(std::string(op_info(node_.op).name), text);
  }
  // Types are inferred many times while a plan is searched, so a check that holds must not allocate
  // memory for its text.
  void require(bool condition, std::string_view why) const {
    if (!condition) fail(std::string(why));
  }
  const ValueType& in(size_t i) const { return *in_[i]; }
  void require_f32() const {
    for (const ValueType* t : in_) require(t->dtype == DType::f32, "needs f32 values");
  }
  void require_same(size_t a, size_t b) const { require(in(a) == in(b), "operands must have the same type"); }
  int layer_of_edge(size_t i) const {
    require(in(i).space.kind == SpaceKind::edge, "needs a value on edges");
    return in(i).space.layer;
  }
  bool is_scalar(const ValueType& t) const { return t.space == Space::param() && t.dims.empty(); }

  void require_sane(const ValueType& t) const {
    require(t.space.layer >= 0 && t.space.layer <= kMaxLayer, "the layer is out of range");
    require(t.space.count >= 0 && t.space.count <= kMaxCount, "the space has too many rows");
    int64_t size = 1;
    for (const int64_t d : t.dims) {
      require(d >= 1, "dims must be positive");
      require(d <= kMaxRow / size, "a row has too many elements");
      size *= d;
    }
  }

  ValueType leaf() const {
    const DType dtype = node_.type.dtype;
    require(dtype == DType::f32 || (node_.op == Op::input && (dtype == DType::i32 || dtype == DType::u8)),
            "inputs are f32, i32 or u8, other leaves f32");
    if (node_.op == Op::degree) {
      require(node_.attr == Attr::src || node_.attr == Attr::dst, "attr must be src or dst");
      require(node_.type.space.kind == SpaceKind::vertex && node_.type.dims.empty(),
              "the type must be one number for each vertex");
      require(node_.attr == Attr::src || node_.type.space.layer > 0, "v0 is the destination of no edge");
    } else if (node_.op == Op::typed_degree) {
      require(node_.type.space.kind == SpaceKind::edge && node_.type.dims.empty(),
              "the type must be one number for each edge");
    } else if (node_.op != Op::constant) {
      require(!node_.name.empty(), "a leaf needs a name");
      require(std::all_of(node_.name.begin(), node_.name.end(), [](unsigned char c) { return c > ' ' && c != '#'; }),
              "the name of a leaf has no blanks and no '#'");
    }
    return node_.type;
  }

  ValueType indexing() const {
    require(in(0).dtype == DType::f32, "needs f32 values");
    ValueType out = in(0);
    const Space from = out.space;
    switch (node_.op) {
      case Op::index:
        out.space = index_target(from);
        return out;
      case Op::index_add:
        out.space = index_add_target(from);
        return out;
      case Op::index_mean:
      case Op::index_max:
      case Op::index_argmax:
        require(node_.attr == Attr::dst, "attr must be dst");
        out.space = Space::vertex(layer_of_edge(0) + 1);
        if (node_.op == Op::index_argmax) out.dtype = DType::i32;
        return out;
      case Op::index_take_max:
        require(from.kind == SpaceKind::vertex && from.layer > 0, "the operand must be at destinations");
        require(node_.attr == Attr::dst, "attr must be dst");
        require(in(1).dtype == DType::i32 && in(1).dims == out.dims && in(1).space == from,
                "the argmax must be i32, with the dims and the space of the gradient");
        out.space = Space::edge(from.layer - 1);
        return out;
      case Op::edge_softmax:
      case Op::edge_softmax_grad:
        layer_of_edge(0);
        require(node_.attr == Attr::dst, "attr must be dst");
        if (node_.op == Op::edge_softmax_grad) require_same(0, 1);
        return out;
      case Op::lstm_states:
        layer_of_edge(0);
        require(in(0).dims.size() == 1 && in(0).dims[0] % 4 == 0, "gates must be e[4H]");
        out.dims[0] /= 4;
        return out;
      default:
        return lstm();
    }
  }

  ValueType communication() const {
    require_f32();
    ValueType out = in(0);
    if (node_.op == Op::all_reduce) {
      require(out.space == Space::param() || out.space == Space::type(), "the operand must be a parameter");
      return out;
    }
    if (node_.op == Op::to_columns || node_.op == Op::to_rows) return columns();
    const bool out_of_halo = node_.op == Op::exchange_add;
    require(out.space.kind == (out_of_halo ? SpaceKind::halo : SpaceKind::vertex),
            out_of_halo ? "the operand must be at vertices with their halo"
                        : "the operand must be at a rank's own vertices");
    out.space.kind = out_of_halo ? SpaceKind::vertex : SpaceKind::halo;
    return out;
  }

  // A rank without columns has one column of zeros, because rows cannot be empty.
  ValueType columns() const {
    const bool to_columns = node_.op == Op::to_columns;
    const std::vector<int64_t>& ints = node_.ints;
    require(in(0).space.kind == SpaceKind::vertex && in(0).dims.size() == 1, "the operand must be v[H]");
    require(ints.size() == (to_columns ? 3 : 4), "ints must be layer, begin, length, and for to_rows also the width");
    const int64_t width = to_columns ? in(0).dims[0] : ints[3];
    require(ints[0] >= 0 && ints[0] <= kMaxLayer, "the layer is out of range");
    require(ints[1] >= 0 && ints[2] >= 0 && ints[1] <= width && ints[2] <= width - ints[1],
            "the columns go beyond the width");
    const int64_t columns = std::max<int64_t>(1, ints[2]);
    require(to_columns || in(0).dims[0] == columns, "the operand must have as many columns as ints say");
    return {Space::vertex(static_cast<int>(ints[0])), {to_columns ? columns : width}};
  }

  // Returns the vertices of a layer, with the halo if the node says so.
  Space sources(int layer) const {
    require(node_.ints.empty() || node_.ints == std::vector<int64_t>{1},
            "ints must be empty, which means vertices, or 1, which means a halo");
    return node_.ints.empty() ? Space::vertex(layer) : Space::halo(layer);
  }

  Space index_target(Space from) const {
    const bool to_pairs = node_.ints == std::vector<int64_t>{1};
    switch (node_.attr) {
      case Attr::type: {
        require(from == Space::type() && !node_.ints.empty() && node_.ints.size() <= 2,
                "indexing by type starts in t and names a layer");
        require(node_.ints[0] >= 0 && node_.ints[0] <= kMaxLayer, "the layer is out of range");
        const int layer = static_cast<int>(node_.ints[0]);
        if (node_.ints.size() == 1) return Space::edge(layer);
        require(node_.ints[1] == 1 || node_.ints[1] == 2, "pairs are those of sources (1) or destinations (2)");
        return node_.ints[1] == 1 ? Space::pair_src(layer) : Space::pair_dst(layer);
      }
      case Attr::src:
      case Attr::dst: {
        const bool dst = node_.attr == Attr::dst;
        require(from.on_vertices(), "the operand must be at vertices");
        require(!dst || (from.layer > 0 && from.kind == SpaceKind::vertex), "the operand must be at destinations");
        require(node_.ints.empty() || to_pairs, "ints must be empty, which means edges, or 1, which means pairs");
        const int layer = dst ? from.layer - 1 : from.layer;
        if (!to_pairs) return Space::edge(layer);
        return dst ? Space::pair_dst(layer) : Space::pair_src(layer);
      }
      case Attr::self:
        require(from.on_vertices() || (from.kind == SpaceKind::edge && !node_.ints.empty()),
                "the operand must be at vertices, or on edges with a layer of the result");
        require(node_.ints.empty() || (node_.ints.size() == 1 && node_.ints[0] >= 0 && node_.ints[0] <= kMaxLayer),
                "ints must be empty, which means the next layer, or hold the number of the result's layer");
        if (from.kind == SpaceKind::edge) return Space::edge(static_cast<int>(node_.ints[0]));
        return Space::vertex(node_.ints.empty() ? from.layer + 1 : static_cast<int>(node_.ints[0]));
      case Attr::pair_src:
      case Attr::pair_dst:
        require(from.kind == pair_kind(node_.attr), "the operand must be on the pairs that attr names");
        return Space::edge(from.layer);
      default:
        fail("attr must name an edge attribute");
    }
  }

  static SpaceKind pair_kind(Attr attr) {
    return attr == Attr::src || attr == Attr::pair_src ? SpaceKind::pair_src : SpaceKind::pair_dst;
  }

  Space index_add_target(Space from) const {
    switch (node_.attr) {
      case Attr::self:
        require(from.kind == SpaceKind::vertex && from.layer > 0, "the operand must be at destinations");
        return sources(from.layer - 1);
      case Attr::type:
        require(from.is_typed(), "the operand must be on edges or pairs");
        return Space::type();
      case Attr::src:
      case Attr::dst:
        require(from.kind == SpaceKind::edge || from.kind == pair_kind(node_.attr),
                "the operand must be on edges or pairs");
        return node_.attr == Attr::dst ? Space::vertex(from.layer + 1) : sources(from.layer);
      case Attr::pair_src:
      case Attr::pair_dst:
        require(from.kind == SpaceKind::edge, "the operand must be on edges");
        return {pair_kind(node_.attr), from.layer};
      default:
        fail("attr must name an edge attribute");
    }
  }

  ValueType lstm() const {
    require_f32();
    const size_t z = node_.op == Op::lstm || node_.op == Op::lstm_gates ? 0 : 1;
    const ValueType& w = in(z + 1);
    const SpaceKind home = in(z).space.kind;
    require((in(z).space.on_vertices() || home == SpaceKind::edge) && in(z).dims.size() == 1 && in(z).dims[0] % 4 == 0,
            "gates must be v[4H] or e[4H]");
    const int64_t hidden = in(z).dims[0] / 4;
    require(w.space == Space::param() && w.dims == Dims{hidden, 4 * hidden}, "the weight must be p[H,4H]");
    ValueType state{Space::vertex(in(z).space.layer + 1), {hidden}};
    if (node_.op == Op::lstm) return state;
    if (node_.op == Op::lstm_gates) return {Space::edge(in(z).space.layer), in(z).dims};
    if (node_.op == Op::lstm_gates_grad) layer_of_edge(1);
    require(in(0) == state, "the gradient must have one row of H numbers for each destination");
    return node_.op == Op::lstm_grad_w ? w : in(1);
  }

  ValueType matrix() const {
    require_f32();
    const bool typed =
        node_.op == Op::typed_matmul || node_.op == Op::typed_matmul_t || node_.op == Op::typed_weight_grad;
    if (typed) require(in(0).space.is_typed(), "needs a value on edges or pairs");
    require(in(0).dims.size() == 1, "rows must be one-dimensional");
    const Space home = typed ? Space::type() : Space::param();
    if (node_.op == Op::weight_grad || node_.op == Op::typed_weight_grad) {
      require(in(1).dims.size() == 1 && in(0).space == in(1).space, "rows must be one-dimensional, in the same space");
      return {home, {in(0).dims[0], in(1).dims[0]}};
    }
    require(in(1).space == home && in(1).dims.size() == 2,
            typed ? "the weight must be t[K,N]" : "the weight must be p[K,N]");
    const bool transposed = node_.op == Op::matmul_t || node_.op == Op::typed_matmul_t;
    require(in(0).dims[0] == in(1).dims[transposed ? 1 : 0], "the inner sizes of the product differ");
    return {in(0).space, {in(1).dims[transposed ? 0 : 1]}};
  }

  static bool is_prefix(const Dims& a, const Dims& b) {
    return a.size() <= b.size() && std::equal(a.begin(), a.end(), b.begin());
  }

  ValueType elementwise() const {
    require_f32();
    if (in_.size() == 1) {
      if (node_.op == Op::dropout) require(node_.alpha >= 0 && node_.alpha < 1, "the dropped share must be in [0, 1)");
      return in(0);
    }
    if (node_.op != Op::add && node_.op != Op::sub && node_.op != Op::mul) {
      require_same(0, 1);
      return in(0);
    }
    const bool a_rows = in(0).space != Space::param();
    const bool b_rows = in(1).space != Space::param();
    require(in(0).space == in(1).space || !a_rows || !b_rows, "operands live in different spaces");
    const bool a_wider = is_prefix(in(1).dims, in(0).dims);
    require(a_wider || is_prefix(in(0).dims, in(1).dims), "one operand's dims must be a prefix of the other's");
    return {a_rows ? in(0).space : in(1).space, a_wider ? in(0).dims : in(1).dims};
  }

  ValueType row_shape() const {
    require_f32();
    ValueType out = in(0);
    for (const int64_t i : node_.ints) require(i >= 0 && i <= kMaxRow, "a position is out of range");
    if (node_.op == Op::expand || node_.op == Op::reshape) require_sane(node_.type);
    switch (node_.op) {
      case Op::row_sum: {
        require(node_.ints.size() == 1 && node_.ints[0] >= 0 && node_.ints[0] <= static_cast<int64_t>(out.dims.size()),
                "rank out of range");
        out.dims.resize(node_.ints[0]);
        return out;
      }
      case Op::expand:
        require(out.space == node_.type.space || out.space == Space::param(),
                "the operand must be in the same space or in p");
        require(is_prefix(out.dims, node_.type.dims), "the old dims must be a prefix of the new");
        require(node_.type.dtype == DType::f32, "needs f32 values");
        return node_.type;
      case Op::reshape: {
        ValueType target{out.space, node_.type.dims};
        require(target.row_size() == out.row_size(), "a reshape keeps the number of elements");
        return target;
      }
      case Op::concat: {
        const ValueType& b = in(1);
        require(out.space == b.space && !out.dims.empty() && out.dims.size() == b.dims.size() &&
                    std::equal(out.dims.begin(), out.dims.end() - 1, b.dims.begin()),
                "all but the last dim must agree");
        out.dims.back() += b.dims.back();
        return out;
      }
      case Op::slice:
        require(node_.ints.size() == 2 && !out.dims.empty() && node_.ints[0] >= 0 && node_.ints[1] >= 1 &&
                    node_.ints[0] + node_.ints[1] <= out.dims.back(),
                "the slice is out of range");
        out.dims.back() = node_.ints[1];
        return out;
      default:  // pad
        require(node_.ints.size() == 2 && !out.dims.empty() && node_.ints[0] >= 0 &&
                    node_.ints[0] + out.dims.back() <= node_.ints[1],
                "the padding is out of range");
        out.dims.back() = node_.ints[1];
        return out;
    }
  }

  ValueType sliced_rows() const {
    ValueType out = in(0);
    const Space from = out.space;
    if (node_.ints.size() == 1) {
      require(from == Space::vertex(0), "the operand must be at the vertices of v0");
      require(node_.ints[0] >= 0 && node_.ints[0] <= kMaxCount, "needs the number of a kind");
      out.space = Space::of_kind(node_.ints[0]);
      return out;
    }
    require(from.kind == SpaceKind::vertex || from.kind == SpaceKind::rows,
            "the operand must be at vertices or in counted rows");
    require(node_.ints.size() == 2 && node_.ints[0] >= 0 && node_.ints[0] <= kMaxCount && node_.ints[1] >= 0 &&
                node_.ints[1] <= kMaxCount,
            "needs the first row and the number of rows");
    require(from.kind == SpaceKind::vertex || node_.ints[0] + node_.ints[1] <= from.count, "the rows are out of range");
    out.space = Space::rows(node_.ints[1]);
    return out;
  }

  // Returns the type of the rows of v0 when they are put together from rows of kinds 0, 1, ….
  ValueType joined_kinds() const {
    ValueType out = in(0);
    for (size_t k = 0; k < in_.size(); ++k) {
      require(in_[k]->space == Space::of_kind(static_cast<int64_t>(k)) && in_[k]->dims == out.dims,
              "the operands must be rows of kinds 0, 1, … of the same dims");
    }
    out.space = node_.type.space;
    require(out.space == Space::vertex(0), "the result must be at the vertices of v0");
    return out;
  }

  ValueType counted_rows() const {
    require_f32();
    if (node_.op == Op::slice_rows) return sliced_rows();
    ValueType out = in(0);
    if (out.space.kind == SpaceKind::kind) return joined_kinds();
    int64_t count = 0;
    for (const ValueType* t : in_) {
      require(t->space.kind == SpaceKind::rows && t->dims == out.dims,
              "the operands must be counted rows of the same dims");
      count += t->space.count;
      require(count <= kMaxCount, "the space has too many rows");
    }
    out.space = node_.type.space;
    require(out.space.kind == SpaceKind::vertex || out.space == Space::rows(count),
            "gives vertices, or as many rows as it joins");
    return out;
  }

  ValueType across_rows() const {
    const ValueType& x = in(0);
    require(x.dtype == DType::f32, "needs f32 values");
    ValueType scalar{Space::param(), {}};
    switch (node_.op) {
      case Op::column_sum:
        return {Space::param(), x.dims};
      case Op::column_moments:
        require(x.dims.size() == 1, "rows must be one-dimensional");
        return {Space::param(), {2, x.dims[0]}};
      case Op::standardize:
      case Op::standardize_grad: {
        const ValueType& base = node_.op == Op::standardize ? x : in(1);
        const ValueType& m = node_.op == Op::standardize ? in(1) : in(2);
        require(base.dims.size() == 1 && m.space == Space::param() && m.dims == Dims{2, base.dims[0]},
                "moments must be p[2,F]");
        require(base == x, "operands must have the same type");
        return x;
      }
      case Op::row_normalize:
      case Op::log_softmax:
        require(node_.op != Op::log_softmax || x.dims.size() == 1, "rows must be one-dimensional");
        return x;
      case Op::row_normalize_grad:
      case Op::log_softmax_grad:
        require_same(0, 1);
        return x;
      case Op::nll:
      case Op::nll_grad:
        require(x.dims.size() == 1 && in(1).dtype == DType::i32 && in(1).dims.empty() && in(1).space == x.space,
                "labels must be i32 scalars in the space of the scores");
        break;
      case Op::bce:
      case Op::bce_grad:
        require(x.dims.size() == 1 && in(1).dtype == DType::u8 && in(1).dims == x.dims && in(1).space == x.space,
                "targets must be u8 rows like the scores");
        break;
      case Op::l2:
        return scalar;
      default:
        fail("unknown operation");
    }
    require(node_.alpha >= 0 && node_.alpha < 1, "label smoothing must be in [0, 1)");
    const bool targets = node_.op == Op::bce || node_.op == Op::bce_grad;
    require(in(2) == (ValueType{x.space, {}}) || (targets && in(2) == (ValueType{x.space, x.dims})),
            "weights must be f32 scalars in the space of the scores, or of targets f32 rows like the scores");
    if (node_.op == Op::nll || node_.op == Op::bce) return scalar;
    require(is_scalar(in(3)), "the incoming gradient must be p[]");
    return x;
  }

  const Node& node_;
  std::vector<const ValueType*> in_;
};

}  // namespace

ValueType infer_type(const Dfg& dfg, const Node& node, NodeRef position) {
  return Inference(dfg, node, position).run();
}

}  // namespace nacre
