// Runs a DFG through planner and engine, for comparison with the interpreter.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nacre/engine/executor.h"
#include "nacre/kernel/ref/interpreter.h"

namespace nacre::test {

using Outputs = std::map<std::string, std::vector<float>>;

// Bindings as the engine sees them: every value rounded to f32.
ref::Bindings rounded_to_float(ref::Bindings bindings);

// All named outputs after `runs` runs of the same step. State parameters start from `bindings` before each run.
Outputs run_plan(const Dfg& dfg, const Blocks& blocks, const ref::Bindings& bindings, const StepContext& step,
                 const PlanOptions& options, int runs = 1);

// Relative error of the whole vector, ‖a − b‖ / ‖b‖, small enough for f32 arithmetic.
void expect_close(const std::vector<float>& got, const std::vector<double>& want, const std::string& what);
bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace nacre::test
