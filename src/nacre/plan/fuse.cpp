#include "nacre/plan/fuse.h"

#include "nacre/kernel/cpu/tile_plan.h"
#include "nacre/plan/match.h"

namespace nacre {
namespace {

constexpr int64_t kNarrow = 32;  // elements per row that are cheap to keep for every edge (heads, not features)
// Registers an inlined expression may take: a kernel that reads two of them still fits one program.
constexpr int kMaxInlined = 48;
static_assert(2 * kMaxInlined + 1 <= cpu::kMaxRegisters);

class Chooser {
 public:
  explicit Chooser(const Analysis& an) : an_(an), inlined_(static_cast<size_t>(an.dfg().size()), 0) {}

  std::vector<char> run() {
    cut_long_expressions();
    // Readers first: whether a reader is itself inlined decides what it can absorb.
    for (int i = an_.dfg().size() - 1; i >= 0; --i) inlined_[static_cast<size_t>(i)] = choose(i) ? 1 : 0;
    return inlined_;
  }

 private:
  // Marks the values to be stored so that no expression of edge values in between grows beyond kMaxInlined.
  void cut_long_expressions() {
    const auto n = static_cast<size_t>(an_.dfg().size());
    cut_.assign(n, 0);
    std::vector<int> registers(n, 1);
    for (NodeRef i = 0; i < an_.dfg().size(); ++i) {
      const Node& node = an_.dfg()[i];
      if (node.type.space.kind != SpaceKind::edge || !an_.row_local(i)) continue;
      int sum = 1;
      for (const NodeRef in : node.inputs) sum += registers[static_cast<size_t>(in)];
      cut_[static_cast<size_t>(i)] = sum > kMaxInlined ? 1 : 0;
      registers[static_cast<size_t>(i)] = sum > kMaxInlined ? 1 : sum;
    }
  }

  bool choose(NodeRef i) const {
    const Node& node = an_.dfg()[i];
    if (cut_[static_cast<size_t>(i)] != 0) return false;
    if (node.type.space.kind != SpaceKind::edge || node.type.dtype != DType::f32 || an_.is_result(i)) return false;
    const bool typed = node.op == Op::typed_matmul || node.op == Op::typed_matmul_t;
    if (!typed && !an_.row_local(i)) return false;
    for (const NodeRef reader : an_.consumers(i)) {
      if (!can_absorb(reader, i)) return false;
    }
    if (typed) return typed_readers_match(i, i);
    return !better_stored(i);
  }

  bool can_absorb(NodeRef reader, NodeRef value) const {
    const Node& r = an_.dfg()[reader];
    switch (r.op) {
      case Op::index_add:
        return r.attr == Attr::src || r.attr == Attr::dst;
      case Op::index_mean:
      case Op::index_max:
      case Op::index_argmax:
      case Op::edge_softmax:
      case Op::column_sum:
        return true;
      case Op::edge_softmax_grad:
        return r.inputs[1] != value;
      case Op::typed_matmul:
      case Op::typed_matmul_t:
        return inlined_[static_cast<size_t>(reader)] != 0;
      case Op::typed_weight_grad: {
        std::string why;
        return match_typed_grad(an_, reader, &why).has_value();
      }
      default:
        return an_.row_local(reader) && r.type.space.kind == SpaceKind::edge;
    }
  }

  // Every path from a typed product leads through scalar factors into a sum at the other end.
  bool typed_readers_match(NodeRef typed, NodeRef at) const {
    for (const NodeRef reader : an_.consumers(at)) {
      const Node& r = an_.dfg()[reader];
      if (r.op == Op::index_add) {
        std::string why;
        const auto match = match_typed(an_, at, &why);
        if (!match || match->typed != typed || r.attr != opposite(match->gather.end) || match->factors.size() > 1) {
          return false;
        }
      } else if (r.op != Op::mul || inlined_[static_cast<size_t>(reader)] == 0 || !typed_readers_match(typed, reader)) {
        return false;
      }
    }
    return true;
  }

  bool better_stored(NodeRef i) const {
    const Node& node = an_.dfg()[i];
    if (node.type.row_size() > kNarrow) return false;
    if (node.op == Op::dropout) return true;
    for (const NodeRef reader : an_.consumers(i)) {
      const Node& r = an_.dfg()[reader];
      if (r.op == Op::mul && r.type.dims.size() > node.type.dims.size()) return true;
      // A coefficient of the graph, computed once. Wider constants would be copies of features for every edge.
      if (an_.constant(i) && !an_.constant(reader) && node.type.row_size() == 1) return true;
    }
    return false;
  }

  const Analysis& an_;
  std::vector<char> inlined_;
  std::vector<char> cut_;
};

}  // namespace

std::vector<char> choose_inlined(const Analysis& an) { return Chooser(an).run(); }

}  // namespace nacre
