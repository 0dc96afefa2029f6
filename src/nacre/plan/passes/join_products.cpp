// join_products: a product that the tail of another product only adds to its own is computed by
// that kernel, and so is a product that is added to products by type. The joined product never
// reaches memory.
#include <algorithm>

#include "nacre/plan/operands.h"
#include "nacre/plan/passes.h"
#include "nacre/plan/tail_program.h"

namespace nacre {
namespace {

class Joining {
 public:
  explicit Joining(Draft& draft) : draft_(draft), plan_(draft.plan), dfg_(draft.plan.dfg), an_(draft.an()) {}

  void run() {
    for (size_t k = 0; k < plan_.kernels.size(); ++k) {
      const JoinedProducts& which = plan_.options.join_products;
      const ValueType& type = dfg_[plan_.kernels[k].root].type;
      if (plan_.kernels[k].kind != KernelKind::matmul || an_.rows(type.space) < which.rows) continue;
      if (which.columns > 0 && (type.row_size() > which.columns || type.row_size() % 2 != 0)) continue;
      const std::vector<NodeRef> nodes = plan_.kernels[k].nodes;
      std::any_of(nodes.begin(), nodes.end(), [&](NodeRef v) { return dfg_[v].op == Op::add && join_terms(v, k); });
    }
    draft_.erase_empty_kernels();
  }

 private:
  bool join_terms(NodeRef sum, size_t to) {
    for (const NodeRef in : dfg_[sum].inputs) {
      const int from = draft_.kernel_of(in);
      if (draft_.is_inlined(in) || from < 0 || static_cast<size_t>(from) >= to) continue;
      if (!joinable(draft_.owner(in), sum, to)) continue;
      Kernel& term = plan_.kernels[from];
      const Kernel& target = plan_.kernels[to];
      // If one of the two kernels computes products by type, the joined kernel is of that kind. If
      // both are of one kind, it is the later one.
      Kernel joined = term.kind == KernelKind::typed_reduce ? term : target;
      joined.nodes = term.nodes;
      joined.nodes.insert(joined.nodes.end(), target.nodes.begin(), target.nodes.end());
      std::sort(joined.nodes.begin(), joined.nodes.end());  // operands before their readers
      const NodeVector<char> read = read_outside(joined);
      RowProgram tail = tail_program(draft_, joined, &read);
      if (read[joined.root] || !take_product(tail) || has_products(tail)) continue;
      for (const NodeRef v : term.nodes) draft_.set_kernel(v, static_cast<int>(to));
      term.nodes.clear();
      plan_.kernels[to] = std::move(joined);
      return true;
    }
    return false;
  }

  // Returns for each node whether it is a node of the kernel that must be in memory: a result, or
  // read by other kernels.
  NodeVector<char> read_outside(const Kernel& k) const {
    NodeVector<char> read(dfg_, 0);
    for (const NodeRef v : k.nodes) {
      const auto outside = [&](NodeRef c) {
        const bool view = draft_.owner(c) == draft_.owner(v);  // c is a view that is a result
        return draft_.is_inlined(c) || view || std::find(k.nodes.begin(), k.nodes.end(), c) == k.nodes.end();
      };
      const std::vector<NodeRef> all = draft_.readers(v);
      read[v] = an_.is_result(v) || std::any_of(all.begin(), all.end(), outside) ? 1 : 0;
    }
    return read;
  }

  // Returns whether the kernel of the product computes nothing else, and only the sum reads the
  // product.
  bool joinable(NodeRef product, NodeRef sum, size_t to) const {
    const Kernel& kernel = plan_.kernels[draft_.kernel_of(product)];
    const Kernel& target = plan_.kernels[to];
    if (kernel.root != product || kernel.once != target.once) return false;
    if (kernel.kind != KernelKind::matmul && !joinable_by_type(kernel, target)) return false;
    if (!an_.same_rows(dfg_[product].type.space, dfg_[target.root].type.space)) return false;
    const auto alone = [&](NodeRef v) { return draft_.owner(v) == product && !an_.is_result(v); };
    return std::all_of(kernel.nodes.begin(), kernel.nodes.end(), alone) &&
           draft_.readers(product) == std::vector<NodeRef>{sum} && kernel.nodes.size() + target.nodes.size() < kMaxTail;
  }

  // Returns whether products by type and the product of the target have one shape, so that they can
  // follow one another.
  bool joinable_by_type(const Kernel& kernel, const Kernel& target) const {
    if (!plan_.options.join_products.typed || kernel.kind != KernelKind::typed_reduce) return false;
    const auto typed = operands<TypedReduceOperands>(kernel);
    return dfg_[typed.x].type.space.is_pair() && kernel.transpose == target.transpose &&
           dfg_[typed.weight].type.dims == dfg_[operands<ProductOperands>(target).weight].type.dims;
  }

  Draft& draft_;
  Plan& plan_;
  const Dfg& dfg_;
  const Analysis& an_;
};

}  // namespace

void join_products(Draft& draft) {
  if (draft.plan.options.fuse && draft.plan.options.join_products.rows > 0) Joining(draft).run();
}

}  // namespace nacre
