// Binds copies of whole rows inside the device.
#include "nacre/engine/copy_plan.h"
#include "nacre/engine/gpu/context.h"

namespace nacre {
namespace {

KernelNeeds copy_needs(const GpuKernel&) { return {}; }

Step bind_copy(const GpuKernel& k, void*) {
  return [&device = k.context.device(), plan = plan_copy(k.executor, k.kernel)] {
    for (const CopyPart& part : plan.parts) {
      if (part.bytes > 0) device.copy(part.to, part.from, part.bytes);
    }
    if (plan.zero_bytes > 0) device.fill(plan.zeros, 0, plan.zero_bytes);
  };
}

}  // namespace

const GpuFamily kGpuCopy = {copy_needs, bind_copy};

}  // namespace nacre
