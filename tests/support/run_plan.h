// Runs a DFG through planner and engine, for comparison with the interpreter.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nacre/engine/executor.h"
#include "nacre/engine/gpu/context.h"
#include "nacre/kernel/ref/interpreter.h"

namespace nacre::test {

using Outputs = std::map<std::string, std::vector<float>>;

// Bindings as the engine sees them: every value rounded to f32.
ref::Bindings rounded_to_float(ref::Bindings bindings);

// Where plans are tested: the host, or with NACRE_TEST_DEVICE=cuda the first GPU.
std::shared_ptr<Backend> test_backend(std::shared_ptr<GraphViews> views);
bool testing_gpu();
// Options of the GPU back end that tests of it change.
GpuOptions& test_gpu_options();

// An executor with leaves of its own, in an arena whose borders are watched.
class BoundPlan {
 public:
  BoundPlan(Plan plan, const Blocks& blocks, const ref::Bindings& bindings);
  // With views and constants of an earlier one.
  BoundPlan(Plan plan, const Blocks& blocks, const ref::Bindings& bindings, std::shared_ptr<GraphViews> views,
            ConstantPool& pool);

  Executor& executor() { return executor_; }
  // All leaves as `bindings` say.
  void reset(const ref::Bindings& bindings);
  // Named outputs, and "update:NAME" for the state parameters, after executor().run().
  Outputs outputs();
  // The bytes around the arena are as they were.
  bool borders_intact() const;

 private:
  void bind(const ref::Bindings& bindings, ConstantPool& pool);
  // A leaf's memory: its bytes themselves on the host, so that sanitizers see where it ends.
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

// All outputs after `runs` runs of the same step. State parameters start from `bindings` before each run.
Outputs run_plan(const Dfg& dfg, const Blocks& blocks, const ref::Bindings& bindings, const StepContext& step,
                 const PlanOptions& options, int runs = 1);

// The plans a DFG must give the same values under.
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
    {"op by op", {.fuse = false, .hoist = false}},
    {"op by op, as written", {.fuse = false, .hoist = false, .rewrite = false}},
};

// Every output and update of every plan against the interpreter of the untransformed DFG.
void expect_plans_agree(const Dfg& dfg, const Blocks& blocks, const ref::Bindings& bindings, const StepContext& step,
                        double tolerance = 2e-5);

// Error of the whole vector, ‖got − want‖ / ‖want‖. A small number below: values that cancel to nothing keep the
// rounding of what they were summed from.
double relative_error(const std::vector<float>& got, const std::vector<double>& want);
// Small enough for f32 arithmetic.
void expect_close(const std::vector<float>& got, const std::vector<double>& want, const std::string& what,
                  double tolerance = 2e-5);
bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace nacre::test
