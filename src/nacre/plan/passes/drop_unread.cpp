// drop_unread: removes kernels whose values nobody reads. A matched kernel may reach through a
// value to what that value was made of, and leave the value without a reader.
#include <algorithm>
#include <set>

#include "nacre/plan/passes.h"

namespace nacre {

void drop_unread(Draft& draft) {
  std::set<NodeRef> needed;
  for (NodeRef i = 0; i < draft.dfg().size(); ++i) {
    if (draft.an().is_result(i)) needed.insert(draft.owner(i));
  }
  std::vector<Kernel>& kernels = draft.plan.kernels;
  for (size_t k = kernels.size(); k-- > 0;) {  // the readers of a kernel are visited before it
    Kernel& kernel = kernels[k];
    if (std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [&](NodeRef v) { return needed.contains(v); })) {
      needed.insert(kernel.reads.begin(), kernel.reads.end());
      continue;
    }
    for (const NodeRef v : kernel.nodes) draft.set_kernel(v, -1);
    kernel.nodes.clear();
  }
  draft.erase_empty_kernels();
}

}  // namespace nacre
