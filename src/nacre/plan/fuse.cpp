#include "nacre/plan/fuse.h"

#include <algorithm>

#include "nacre/cost/nominal.h"
#include "nacre/kernel/cuda/typed_mma.h"
#include "nacre/plan/edge_dots.h"
#include "nacre/plan/match.h"

namespace nacre {
namespace {

// Number of elements per row that are cheap to keep for every edge (heads, not features).
constexpr int64_t kFewElements = 32;
// The most registers that an inlined expression may take, so that a kernel that reads two of them
// still fits one program.
constexpr int kMaxInlined = 48;
static_assert(2 * kMaxInlined + 1 <= kMaxRegisters);

class Chooser {
 public:
  Chooser(const Analysis& an, const PlanOptions& options) : an_(an), options_(options), inlined_(an.dfg(), 0) {}

  NodeVector<char> run() {
    cut_long_expressions();
    // The last nodes come first, because whether a reader is itself inlined decides what it can
    // absorb.
    for (int i = an_.dfg().size() - 1; i >= 0; --i) inlined_[i] = choose(i) ? 1 : 0;
    return inlined_;
  }

 private:
  // Marks values to be stored so that no expression of edge values in between grows beyond
  // kMaxInlined.
  void cut_long_expressions() {
    cut_.assign(an_.dfg(), 0);
    NodeVector<int> registers(an_.dfg(), 1);
    for (NodeRef i = 0; i < an_.dfg().size(); ++i) {
      const Node& node = an_.dfg()[i];
      if (node.type.space.kind != SpaceKind::edge || (!an_.row_local(i) && !an_.matrix_on_edges(i))) continue;
      int sum = 1;
      for (const NodeRef in : node.inputs) sum += registers[in];
      cut_[i] = sum > kMaxInlined ? 1 : 0;
      registers[i] = sum > kMaxInlined ? 1 : sum;
    }
  }

  bool choose(NodeRef i) const {
    const Node& node = an_.dfg()[i];
    if (cut_[i] != 0) return false;
    if (!node.type.space.is_typed() || node.type.dtype != DType::f32 || an_.is_result(i)) return false;
    if (node.type.space.is_pair()) return choose_on_pairs(i);
    if (node.op == Op::index && (node.attr == Attr::pair_src || node.attr == Attr::pair_dst)) return feeds_sums(i, i);
    const bool matrix = an_.matrix_on_edges(i);
    if (!matrix && !an_.row_local(i)) return false;
    for (const NodeRef reader : an_.consumers(i)) {
      if (!can_absorb(reader, i)) return false;
    }
    // A product is not worth repeating, and only gTask programs can compute it.
    if (matrix) return one_kernel(i) && ends_in_gtasks(i);
    if (options_.join_dots && node.type.row_size() <= kFewElements && find_sum_beside_dots(an_, i)) return false;
    return !better_stored(i);
  }

  bool can_absorb(NodeRef reader, NodeRef value) const {
    const Node& r = an_.dfg()[reader];
    switch (r.op) {
      case Op::index_add:
        return r.attr != Attr::type && r.attr != Attr::self;
      case Op::index_mean:
      case Op::index_max:
      case Op::index_argmax:
      case Op::edge_softmax:
      case Op::column_sum:
        return true;
      case Op::edge_softmax_grad:
        return r.inputs[1] != value;
      case Op::matmul:
      case Op::matmul_t:
      case Op::typed_matmul:
      case Op::typed_matmul_t:
        return r.inputs[0] == value && inlined_[reader] != 0;
      case Op::weight_grad:
      case Op::typed_weight_grad:
        return true;
      default:
        return an_.row_local(reader) && r.type.space.kind == SpaceKind::edge;
    }
  }

  // Returns whether all readers end up in the same kernel: there is one, or they are a maximum and
  // its position.
  bool one_kernel(NodeRef i) const {
    const auto& readers = an_.consumers(i);
    if (readers.size() == 1) return true;
    return readers.size() == 2 && an_.dfg()[readers[0]].op == Op::index_max &&
           an_.dfg()[readers[1]].op == Op::index_argmax;
  }

  // Returns whether everything that reads the value, directly or through inlined ones, runs as a
  // program over gTasks.
  bool ends_in_gtasks(NodeRef i) const {
    for (const NodeRef reader : an_.consumers(i)) {
      const Node& r = an_.dfg()[reader];
      const bool sum = (r.op == Op::index_add && (r.attr == Attr::src || r.attr == Attr::dst)) ||
                       r.op == Op::index_mean || r.op == Op::index_max || r.op == Op::index_argmax;
      if (sum || r.op == Op::weight_grad || r.op == Op::typed_weight_grad) continue;
      if (inlined_[reader] == 0 || !ends_in_gtasks(reader)) return false;
    }
    return true;
  }

  // Returns whether the node is a sum over the edges of pairs that is better computed once.
  bool kept_sum(NodeRef i) const {
    const Node& node = an_.dfg()[i];
    return node.op == Op::index_add && node.type.space.is_pair() && (an_.constant(i) || an_.consumers(i).size() > 1) &&
           an_.bytes(i) <= options_.keep_sums;
  }

  // Returns whether the products of kept sums are added up by vertex before they reach memory.
  // Vertices of the same types go through the matrix units together, so that types that a vertex
  // does not have cost nothing. With more than kMostMasked types, every type of every vertex is
  // multiplied, so the extra products must take less time than writing and reading those of the
  // pairs.
  bool summed_at_once(NodeRef product, NodeRef sum) const {
    const Node& node = an_.dfg()[product];
    const int64_t types = an_.rows(an_.dfg()[node.inputs[1]].type.space);
    if (types <= cuda::kMostMasked) return true;
    const auto pairs = static_cast<double>(an_.rows(node.type.space));
    const auto cells = static_cast<double>(an_.rows(an_.dfg()[sum].type.space) * types);
    const auto k = static_cast<double>(an_.dfg()[node.inputs[0]].type.row_size());
    // Sums are kept in plans for GPUs only, so the rates of a GPU decide.
    const NominalProfile& gpu = nominal_gpu();
    return 2 * (cells - pairs) * k / gpu.kept_sum_flops < 2 * 4 * pairs / gpu.rates.bytes_per_second;
  }

  // Returns whether to inline a value on pairs (rows read by pair, sums over the edges of pairs, or
  // products of these): whether only kernels that know pairs read it, and it is not a kept sum.
  bool choose_on_pairs(NodeRef i) const {
    const Node& node = an_.dfg()[i];
    std::string why;
    if (kept_sum(i)) return false;
    for (const NodeRef reader : an_.consumers(i)) {
      const Op op = an_.dfg()[reader].op;
      const bool product = op == Op::typed_matmul || op == Op::typed_matmul_t;
      bool fits = false;
      if (node.op == Op::index && node.attr != Attr::type) {
        fits = (product && an_.dfg()[reader].inputs[0] == i) || op == Op::typed_weight_grad;
      } else if (node.op == Op::index_add) {
        fits = (product && inlined_[reader] != 0) ||
               (op == Op::typed_weight_grad && match_pair_grad(an_.dfg(), reader, &why));
      } else if (node.op == Op::typed_matmul || node.op == Op::typed_matmul_t) {
        fits = op == Op::index_add && an_.consumers(i).size() == 1 && match_pair_sum(an_.dfg(), reader, &why) &&
               (!kept_sum(node.inputs[0]) || summed_at_once(i, reader));
      }
      if (!fits) return false;
    }
    return true;
  }

  // Returns whether every path from a gather of pair rows leads, through at most one scalar factor,
  // into a sum over the other end.
  bool feeds_sums(NodeRef gather, NodeRef at) const {
    for (const NodeRef reader : an_.consumers(at)) {
      const Node& r = an_.dfg()[reader];
      if (r.op == Op::index_add && (r.attr == Attr::src || r.attr == Attr::dst)) {
        std::string why;
        const auto match = match_gather(an_.dfg(), at, &why);
        if (!match || match->factors.size() > 1 || match->end == r.attr) return false;
      } else if (at != gather || r.op != Op::mul || inlined_[reader] == 0 || !feeds_sums(gather, reader)) {
        return false;
      }
    }
    return true;
  }

  // Returns whether the node is a product of values of both ends that only sums computed once read.
  // In other products, the factors are applied at the vertices.
  bool used_once(NodeRef i) const {
    const Node& node = an_.dfg()[i];
    const auto all = [](const auto& list, const auto& what) { return std::all_of(list.begin(), list.end(), what); };
    const auto sums = [&](NodeRef r) {
      const Node& sum = an_.dfg()[r];
      return an_.constant(r) && (sum.op == Op::index_add || sum.op == Op::index_mean) && sum.type.space.on_vertices();
    };
    return node.op == Op::mul && all(node.inputs, [&](NodeRef in) { return an_.dfg()[in].op == Op::index; }) &&
           all(an_.consumers(i), [&](NodeRef r) { return an_.dfg()[r].op == Op::mul && all(an_.consumers(r), sums); });
  }

  bool better_stored(NodeRef i) const {
    const Node& node = an_.dfg()[i];
    if (node.type.row_size() > kFewElements) return false;
    if (node.op == Op::dropout) return true;
    if (options_.vertex_factors && used_once(i)) return false;
    for (const NodeRef reader : an_.consumers(i)) {
      const Node& r = an_.dfg()[reader];
      if (r.op == Op::mul && r.type.dims.size() > node.type.dims.size()) return true;
      // A coefficient of the graph, one number for each edge, is computed once and stored. Wider
      // constants would be copies of features for every edge.
      if (an_.constant(i) && !an_.constant(reader) && node.type.row_size() == 1) return true;
    }
    return false;
  }

  const Analysis& an_;
  const PlanOptions& options_;
  NodeVector<char> inlined_;
  NodeVector<char> cut_;
};

}  // namespace

NodeVector<char> choose_inlined(const Analysis& an, const PlanOptions& options) { return Chooser(an, options).run(); }

}  // namespace nacre
