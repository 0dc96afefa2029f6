// choose_variants: decides how every kernel runs on the device of the plan, and records the
// decisions (variants.h).
#include "nacre/plan/passes.h"
#include "nacre/plan/variants.h"

namespace nacre {

void choose_variants(Draft& draft) {
  if (draft.device != nullptr && draft.variants) choose_variants(draft.plan, draft.blocks, *draft.device);
}

}  // namespace nacre
