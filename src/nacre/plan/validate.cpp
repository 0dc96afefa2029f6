#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/plan/plan.h"

namespace nacre {
namespace {

class Validator {
 public:
  Validator(const Plan& plan, const Blocks& blocks) : plan_(plan), dfg_(plan.dfg) {
    const auto n = static_cast<size_t>(dfg_.size());
    dfg_.validate();
    NACRE_CHECK(blocks.num_layers() >= dfg_.num_layers(), "the plan spans more layers than there are blocks");
    NACRE_CHECK(plan.stored.size() == n && plan.alias.size() == n, "the plan's tables do not match its DFG");
    for (const NodeRef a : plan.alias) check_ref(a, "an alias");
    written_.assign(n, 0);
    for (NodeRef i = 0; i < dfg_.size(); ++i) {
      NACRE_CHECK(owner(owner(i)) == owner(i), "node " + std::to_string(i) + " is the alias of an alias");
      written_[static_cast<size_t>(i)] = dfg_[i].op == Op::input || dfg_[i].op == Op::param ? 1 : 0;
    }
  }

  void run() {
    // `once` kernels run before all others, so they must not read what only a step computes.
    for (const bool once : {true, false}) {
      for (const Kernel& k : plan_.kernels) {
        if (k.once == once) check_kernel(k);
      }
    }
    for (NodeRef i = 0; i < dfg_.size(); ++i) {
      NACRE_CHECK(!plan_.stored[static_cast<size_t>(i)] || written(i),
                  "node " + std::to_string(i) + " is stored but nothing computes it");
    }
    for (const auto& [name, node] : dfg_.outputs()) {
      NACRE_CHECK(written(owner(node)), "output '" + name + "' is not computed");
    }
    for (const auto& [name, node] : dfg_.updates()) {
      NACRE_CHECK(written(owner(node)), "update '" + name + "' is not computed");
    }
  }

 private:
  NodeRef owner(NodeRef i) const { return plan_.alias[static_cast<size_t>(i)]; }
  bool written(NodeRef i) const { return written_[static_cast<size_t>(i)] != 0; }
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
    for (const NodeRef w : k.writes) {
      check_ref(w, at);
      NACRE_CHECK(!written(w), at + " writes node " + std::to_string(w) + " again");
      NACRE_CHECK(plan_.stored[static_cast<size_t>(w)], at + " writes a node that has no memory");
      written_[static_cast<size_t>(w)] = 1;
    }
  }

  // Whatever the kernel takes is declared, because memory lives as long as `reads` say.
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
      for (const NodeRef o : program->operands) {
        check_ref(o, at);
        declared(o);
      }
    }
  }

  const Plan& plan_;
  const Dfg& dfg_;
  std::vector<char> written_;
};

}  // namespace

void validate(const Plan& plan, const Blocks& blocks) { Validator(plan, blocks).run(); }

}  // namespace nacre
