// Runs a DFG through planner and engine, for comparison with the interpreter.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"
#include "nacre/engine/executor.h"
#include "nacre/engine/gpu/context.h"
#include "nacre/kernel/ref/interpreter.h"
#include "nacre/model/model.h"

namespace nacre::test {

using Outputs = std::map<std::string, std::vector<float>>;

// Returns the DFG of a model with its gradient.
Dfg training_dfg(const ModelOptions& options);

// Returns the bindings with every value rounded to f32, as the engine sees them.
ref::Bindings rounded_to_float(ref::Bindings bindings);

// Returns the back end that plans are tested on: the host or, with NACRE_TEST_DEVICE=cuda, the
// first GPU.
std::shared_ptr<Backend> test_backend(std::shared_ptr<GraphViews> views);
bool testing_gpu();
// Returns the compiler of the device of a rank. The device is a part of the GPU with eight
// multiprocessors or, where the GPU cannot be divided, one that shares all multiprocessors with the
// others. All tests of the process use the same devices.
std::shared_ptr<GpuCompiler> test_rank_compiler(int rank);
// Returns the options that test_backend() gives to the GPU back end; tests may change them.
GpuOptions& test_gpu_options();

// A BoundPlan is an executor that has memory for its leaves and an arena between guard bytes.
class BoundPlan {
 public:
  BoundPlan(Plan plan, const Blocks& blocks, const ref::Bindings& bindings);
  BoundPlan(Plan plan, const Blocks& blocks, const ref::Bindings& bindings, std::shared_ptr<Backend> backend,
            const ExecutorOptions& options);
  // Binds a plan that shares its views and constants with another plan.
  BoundPlan(Plan plan, const Blocks& blocks, const ref::Bindings& bindings, std::shared_ptr<GraphViews> views,
            ConstantPool& pool);

  Executor& executor() { return executor_; }
  // Sets all leaves to the values in `bindings`.
  void reset(const ref::Bindings& bindings);
  // Fills the arena with nonsense, so that a value that no kernel has written yet does not look
  // right, not even if it was written in the step before.
  void spoil();
  // Returns the named outputs, and "update:NAME" for the state parameters, after executor().run().
  Outputs outputs();
  // Returns whether the guard bytes around the arena are unchanged.
  bool borders_intact() const;

 private:
  void bind(const ref::Bindings& bindings, ConstantPool& pool);
  // Holds the memory of one leaf. On the host, each leaf is an allocation of its own, so that
  // sanitizers notice accesses beyond its end.
  struct Leaf {
    std::vector<char> bytes;
    std::shared_ptr<void> device;
  };
  void write(Leaf& leaf);

  Blocks blocks_;
  Executor executor_;
  std::map<std::string, Leaf> leaves_;
  std::shared_ptr<void> memory_;
};

// Returns all outputs after `runs` runs of the same step. Before each run, state parameters are set
// to their values in `bindings`.
Outputs run_plan(const Dfg& dfg, const Blocks& blocks, const ref::Bindings& bindings, const StepContext& step,
                 const PlanOptions& options, int runs = 1);
Outputs run_plan(BoundPlan& bound, const ref::Bindings& bindings, const StepContext& step, int runs);

// NamedOptions describes one way to plan a DFG. All plans in kAllPlans must give the same values.
struct NamedOptions {
  const char* name;
  PlanOptions options;
};
inline const NamedOptions kAllPlans[] = {
    {"fused, hoisted", {}},
    {"fused", {.hoist = false}},
    {"as written", {.rewrite = false}},
    {"sums of pairs kept", {.keep_sums = int64_t{1} << 30}},
    {"over split rows", {.table = PartitionTable::parse("src-id=3,edge-id=5")}},
    {"factors at vertices", {.vertex_factors = true}},
    {"joined products", {.join_products = {1}}},
    {"dot products beside sums", {.join_dots = true}},
    {"op by op", {.fuse = false, .hoist = false}},
    {"op by op, as written", {.fuse = false, .hoist = false, .rewrite = false}},
};

// Runs the DFG with every plan in kAllPlans, and expects every output and update to agree with the
// interpreter of the DFG as written.
void expect_plans_agree(const Dfg& dfg, const Blocks& blocks, const ref::Bindings& bindings, const StepContext& step,
                        double tolerance = 2e-5);

// Returns the error of the whole vector, ‖got − want‖ / ‖want‖. A small number is added to the
// denominator, because sums that cancel to zero still have the rounding errors of their terms.
double relative_error(const std::vector<float>& got, const std::vector<double>& want);
// Expects that the error of `got` is no larger than f32 arithmetic explains.
void expect_close(const std::vector<float>& got, const std::vector<double>& want, const std::string& what,
                  double tolerance = 2e-5);
bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace nacre::test
