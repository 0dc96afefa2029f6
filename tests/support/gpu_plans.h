// Makes plans of models for a GPU, and the contexts of GPUs that are not there.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "model/cases.h"
#include "nacre/device/null_device.h"
#include "nacre/engine/gpu/gpu_backend.h"
#include "nacre/plan/sites.h"
#include "nacre/plan/variants.h"

namespace nacre::test {

inline const ModelCase& model_named(const std::string& name) {
  static const std::vector<ModelCase> cases = model_cases();
  return *std::find_if(cases.begin(), cases.end(), [&](const ModelCase& c) { return c.name == name; });
}

// Returns the DFG of a model with its gradient. If `layers` is 0, the model has as many layers as
// its case.
inline Dfg training_dfg(const std::string& model, const Blocks& blocks, int64_t hidden, int layers = 0) {
  ModelOptions options = model_named(model).options;
  options.hidden = hidden;
  if (layers > 0) options.layers = layers;
  if (model_info(options.model).heads > 0) options.heads = 2;
  Dfg dfg = build_model(options_for(options, blocks));
  differentiate(dfg);
  return dfg;
}

// Returns options for a plan that takes the option `end` at every site that has it, and that joins
// the products that the device can compute together.
inline PlanOptions summing(const Dfg& dfg, const Blocks& blocks, const std::string& end, const DeviceTraits& device) {
  PlanOptions options;
  options.join_products = joined_products(device);
  options.join_dots = true;
  for (const Site& site : find_sites(prepare_dfg(dfg, blocks, options), blocks.cover_layers())) {
    if (std::find(site.options.begin(), site.options.end(), end) != site.options.end()) options.choices[site.key] = end;
  }
  return options;
}

// Returns the context of a device that is not there.
inline std::shared_ptr<GpuContext> context_on(std::shared_ptr<Device> device, const GpuOptions& options,
                                              std::shared_ptr<GraphViews> views = std::make_shared<GraphViews>()) {
  // Nothing is compiled here: the image of a source is its name.
  const auto compiler =
      std::make_shared<GpuCompiler>(std::move(device), [](const cuda::Source& source) { return source.name; });
  return std::make_shared<GpuContext>(compiler, std::move(views), options);
}

// Binds the kernels of the plan on the device of the context, calls `use` with their executor, and
// returns its result.
template <class Use>
auto with_bound(const Plan& plan, const Blocks& blocks, const std::shared_ptr<GpuContext>& context, const Use& use) {
  Executor executor(plan, blocks, make_gpu_backend(context));
  for (const Node& node : executor.plan().dfg.nodes()) {
    if (node.op == Op::input || node.op == Op::param) executor.bind(node.name, context->allocate(16).get());
  }
  ConstantPool pool;
  executor.allocate(context->allocate(executor.arena_bytes()), pool);
  return use(executor);
}

}  // namespace nacre::test
