#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/plan/early_rows.h"
#include "nacre/plan/passes.h"

namespace nacre {
namespace {

class Validator {
 public:
  Validator(const Plan& plan, const Blocks& blocks) : plan_(plan), dfg_(plan.dfg), blocks_(blocks) {
    dfg_.validate();
    NACRE_CHECK(blocks.fit(dfg_), "the plan has layers for which there are no blocks");
    NACRE_CHECK(
        plan.stored.covers(dfg_) && plan.alias.covers(dfg_) && (plan.narrow.empty() || plan.narrow.covers(dfg_)),
        "the plan's tables do not match its DFG");
    for (const NodeRef a : plan.alias) check_ref(a, "an alias");
    for (NodeRef i = 0; i < dfg_.size(); ++i) {
      NACRE_CHECK(plan.is_narrow(i) == plan.is_narrow(owner(i)) && (!plan.is_narrow(i) || plan.stored[owner(i)] != 0),
                  "node " + std::to_string(i) + " is not stored like its memory");
    }
    written_.assign(dfg_, 0);
    for (NodeRef i = 0; i < dfg_.size(); ++i) {
      NACRE_CHECK(owner(owner(i)) == owner(i), "node " + std::to_string(i) + " is the alias of an alias");
      written_[i] = dfg_[i].op == Op::input || dfg_[i].op == Op::param ? 1 : 0;
    }
  }

  void run() {
    // Kernels with `once` run before all others, so they must not read what only a step computes.
    for (const bool once : {true, false}) {
      for (const Kernel& k : plan_.kernels) {
        if (k.once == once) check_kernel(k);
      }
    }
    for (NodeRef i = 0; i < dfg_.size(); ++i) {
      NACRE_CHECK(!plan_.stored[i] || written(i), "node " + std::to_string(i) + " is stored but nothing computes it");
    }
    for (const auto& [name, node] : dfg_.outputs()) {
      NACRE_CHECK(written(owner(node)), "output '" + name + "' is not computed");
    }
    for (const auto& [name, node] : dfg_.updates()) {
      NACRE_CHECK(written(owner(node)), "update '" + name + "' is not computed");
    }
  }

 private:
  NodeRef owner(NodeRef i) const { return plan_.alias[i]; }
  bool written(NodeRef i) const { return written_[i] != 0; }
  void check_ref(NodeRef i, const std::string& what) const {
    NACRE_CHECK(i >= 0 && i < dfg_.size(), what + " refers to a node that does not exist");
  }

  void check_kernel(const Kernel& k) {
    check_ref(k.root, "a kernel");
    const std::string at = "kernel of node " + std::to_string(k.root);
    for (const NodeRef r : k.reads) {
      check_ref(r, at);
      NACRE_CHECK(written(r), at + " reads node " + std::to_string(r) + " too early");
      NACRE_CHECK(!k.once || dfg_[r].op != Op::param, at + " runs once but reads a parameter");
    }
    check_operands(k, at);
    NACRE_CHECK(k.rows.all(), at + " does not have all its rows");
    NACRE_CHECK(k.early.rows >= 0 && (k.early.rows == 0 || k.early.rows <= walked_rows(plan_, k, blocks_)),
                at + " has more early rows than rows");
    for (const NodeRef w : k.writes) {
      check_ref(w, at);
      NACRE_CHECK(!written(w), at + " writes node " + std::to_string(w) + " again");
      NACRE_CHECK(plan_.stored[w], at + " writes a node that has no memory");
      written_[w] = 1;
    }
  }

  // Checks that everything the kernel uses is declared, because memory lives as long as `reads`
  // say.
  void check_operands(const Kernel& k, const std::string& at) const {
    const auto declared = [&](NodeRef i) {
      const auto in = [i](const std::vector<NodeRef>& list) { return std::count(list.begin(), list.end(), i) > 0; };
      NACRE_CHECK(in(k.reads) || in(k.writes), at + " uses node " + std::to_string(i) + " without declaring it");
    };
    for (const NodeRef a : k.args) {
      if (a < 0) continue;
      check_ref(a, at);
      declared(owner(a));
    }
    for (const RowProgram* program : {&k.program, &k.tail}) {
      for (size_t o = 0; o < program->operands.size(); ++o) {
        check_ref(program->operands[o], at);
        declared(program->operands[o]);
        NACRE_CHECK(program->is_narrow(static_cast<int>(o)) == plan_.is_narrow(program->operands[o]),
                    at + " reads node " + std::to_string(program->operands[o]) + " in another type than it has");
      }
    }
  }

  const Plan& plan_;
  const Dfg& dfg_;
  const Blocks& blocks_;
  NodeVector<char> written_;
};

// Checks what must hold between two passes, from `analyse` on.
class DraftValidator {
 public:
  explicit DraftValidator(const Draft& draft) : draft_(draft), plan_(draft.plan), producer_(draft.dfg(), -1) {}

  void run() {
    NACRE_CHECK(
        draft_.inlined.covers(plan_.dfg) && draft_.kernels_of.covers(plan_.dfg) && plan_.alias.covers(plan_.dfg),
        "the draft's tables do not match its DFG");
    for (NodeRef i = 0; i < draft_.dfg().size(); ++i) {
      NACRE_CHECK(draft_.owner(draft_.owner(i)) == draft_.owner(i), node(i) + " is the alias of an alias");
    }
    if (plan_.kernels.empty()) return;
    for (size_t k = 0; k < plan_.kernels.size(); ++k) check_nodes(k);
    const bool read = std::any_of(plan_.kernels.begin(), plan_.kernels.end(),
                                  [](const Kernel& kernel) { return !kernel.reads.empty(); });
    for (size_t k = 0; k < plan_.kernels.size(); ++k) {
      for (const NodeRef r : plan_.kernels[k].reads) check_order(r, k);
      // A kernel that is matched to a pattern reads the inputs of the pattern, not those of all its
      // nodes. The operands of nodes are checked only until the reads of kernels are known.
      for (const NodeRef v : plan_.kernels[k].nodes) {
        if (!read) check_operands(v, k);
      }
    }
    for (const auto& [name, result] : draft_.dfg().outputs()) check_result(name, draft_.owner(result));
    for (const auto& [name, result] : draft_.dfg().updates()) check_result(name, draft_.owner(result));
  }

 private:
  static std::string node(NodeRef i) { return "node " + std::to_string(i); }

  void check_nodes(size_t k) {
    const Kernel& kernel = plan_.kernels[k];
    const auto has = [&](NodeRef v) { return std::count(kernel.nodes.begin(), kernel.nodes.end(), v) == 1; };
    NACRE_CHECK(has(kernel.root), "the kernel of " + node(kernel.root) + " does not compute that node");
    NACRE_CHECK(kernel.second < 0 || has(kernel.second),
                "the kernel of " + node(kernel.root) + " does not compute its second root");
    for (const NodeRef v : kernel.nodes) {
      NACRE_CHECK(producer_[v] < 0, node(v) + " is computed by two kernels");
      NACRE_CHECK(!draft_.is_inlined(v), node(v) + " is inlined, but a kernel computes it, too");
      producer_[v] = static_cast<int>(k);
    }
  }

  // Kernels that run once come before all others.
  void check_order(NodeRef value, size_t reader) const {
    const int from = producer_[draft_.owner(value)];
    if (from < 0 || static_cast<size_t>(from) == reader) return;
    const bool made_once = plan_.kernels[from].once;
    const bool read_once = plan_.kernels[reader].once;
    const bool before = made_once == read_once ? static_cast<size_t>(from) < reader : made_once;
    NACRE_CHECK(before, "the kernel of " + node(plan_.kernels[reader].root) + " reads " + node(value) + " too early");
  }

  void check_operands(NodeRef v, size_t kernel) const {
    for (const NodeRef in : draft_.dfg()[v].inputs) {
      if (draft_.is_inlined(in)) {
        check_operands(in, kernel);
      } else {
        check_order(in, kernel);
      }
    }
  }

  void check_result(const std::string& name, NodeRef result) const {
    NACRE_CHECK(draft_.an().bound(result) || producer_[result] >= 0, "result '" + name + "' is computed by no kernel");
  }

  const Draft& draft_;
  const Plan& plan_;
  NodeVector<int> producer_;  // the kernel that has the node, or -1
};

}  // namespace

void validate(const Draft& draft) {
  draft.dfg().validate();
  if (draft.analysed()) DraftValidator(draft).run();
  if (!draft.plan.stored.empty()) validate(draft.plan, draft.blocks);
}

void validate(const Plan& plan, const Blocks& blocks) { Validator(plan, blocks).run(); }

}  // namespace nacre
