// Binds copies of whole rows inside the device.
#include "nacre/engine/copy_plan.h"
#include "nacre/engine/gpu/context.h"

namespace nacre {
namespace {

KernelNeeds copy_needs(const GpuKernel&) { return {}; }

// Returns the steps that copy the rows of vertices of one kind each (CopyPlan::listed).
std::vector<Step> bind_listed(GpuContext& context, const CopyPlan& plan) {
  std::vector<Step> steps;
  for (const ListedCopy& copy : plan.listed) {
    const GpuContext::RowsOf rows{copy.rows->size(), plan.width};
    if (rows.count == 0) continue;
    const NodeId* list = context.resident(*copy.rows);
    steps.push_back(copy.spread ? context.scatter_step(copy.from, list, copy.to, rows)
                                : context.gather_step(copy.from, list, copy.to, rows));
  }
  return steps;
}

Step bind_copy(const GpuKernel& k, void*) {
  CopyPlan plan = plan_copy(k.executor, k.kernel);
  return [&device = k.context.device(), listed = bind_listed(k.context, plan), plan] {
    for (const Step& step : listed) step();
    for (const CopyPart& part : plan.parts) {
      if (part.bytes > 0) device.copy(part.to, part.from, part.bytes);
    }
    if (plan.zero_bytes > 0) device.fill(plan.zeros, 0, plan.zero_bytes);
  };
}

}  // namespace

const GpuFamily kGpuCopy = {copy_needs, bind_copy};

}  // namespace nacre
