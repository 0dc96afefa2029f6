// inline_edges: decides which edge values the kernels that read them compute themselves (fuse.h).
#include "nacre/plan/fuse.h"
#include "nacre/plan/passes.h"

namespace nacre {

void inline_edges(Draft& draft) {
  if (draft.plan.options.fuse) draft.inlined = choose_inlined(draft.an(), draft.plan.options);
}

}  // namespace nacre
