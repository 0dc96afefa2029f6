// estimate_costs: sets the bytes every kernel must move and the operations it must do (cost.h).
#include "nacre/plan/cost.h"
#include "nacre/plan/passes.h"

namespace nacre {

void estimate_costs(Draft& draft) {
  for (Kernel& k : draft.plan.kernels) estimate_cost(k, draft.plan, draft.an());
}

}  // namespace nacre
