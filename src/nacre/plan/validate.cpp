#include <set>

#include "nacre/base/error.h"
#include "nacre/plan/plan.h"

namespace nacre {

void validate(const Plan& plan, const Blocks& blocks) {
  const Dfg& dfg = plan.dfg;
  dfg.validate();
  NACRE_CHECK(blocks.num_layers() >= dfg.num_layers(), "the plan spans more layers than there are blocks");
  std::vector<char> written(static_cast<size_t>(dfg.size()), 0);
  for (NodeRef i = 0; i < dfg.size(); ++i) {
    const bool bound = dfg[i].op == Op::input || dfg[i].op == Op::param;
    written[static_cast<size_t>(i)] = bound ? 1 : 0;
  }
  // `once` kernels run before all others, so they must not read what only a step computes.
  for (const bool once : {true, false}) {
    for (const Kernel& k : plan.kernels) {
      if (k.once != once) continue;
      const std::string at = "kernel of node " + std::to_string(k.root);
      for (const NodeRef r : k.reads)
        NACRE_CHECK(written[static_cast<size_t>(r)], at + " reads node " + std::to_string(r) + " too early");
      for (const NodeRef w : k.writes) {
        NACRE_CHECK(!written[static_cast<size_t>(w)], at + " writes node " + std::to_string(w) + " again");
        NACRE_CHECK(plan.stored[static_cast<size_t>(w)], at + " writes a node that has no memory");
        written[static_cast<size_t>(w)] = 1;
      }
    }
  }
  for (NodeRef i = 0; i < dfg.size(); ++i) {
    NACRE_CHECK(!plan.stored[static_cast<size_t>(i)] || written[static_cast<size_t>(i)],
                "node " + std::to_string(i) + " is stored but nothing computes it");
  }
  for (const auto& [name, node] : dfg.outputs()) {
    NACRE_CHECK(written[static_cast<size_t>(plan.alias[static_cast<size_t>(node)])],
                "output '" + name + "' is not computed");
  }
}

}  // namespace nacre
