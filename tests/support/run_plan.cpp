#include "support/run_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace nacre::test {
namespace {

// A leaf's values in its own element type.
std::vector<char> leaf_bytes(const Node& leaf, const std::vector<double>& values) {
  std::vector<char> bytes(values.size() * static_cast<size_t>(dtype_size(leaf.type.dtype)));
  for (size_t i = 0; i < values.size(); ++i) {
    if (leaf.type.dtype == DType::i32) {
      reinterpret_cast<int32_t*>(bytes.data())[i] = static_cast<int32_t>(values[i]);
    } else if (leaf.type.dtype == DType::u8) {
      reinterpret_cast<uint8_t*>(bytes.data())[i] = static_cast<uint8_t>(values[i]);
    } else {
      reinterpret_cast<float*>(bytes.data())[i] = static_cast<float>(values[i]);
    }
  }
  return bytes;
}

}  // namespace

ref::Bindings rounded_to_float(ref::Bindings bindings) {
  for (auto& [name, values] : bindings) {
    for (double& v : values) v = static_cast<double>(static_cast<float>(v));
  }
  return bindings;
}

Outputs run_plan(const Dfg& dfg, const Blocks& blocks, const ref::Bindings& bindings, const StepContext& step,
                 const PlanOptions& options, int runs) {
  Executor executor(make_plan(dfg, blocks, options), blocks, std::make_shared<GraphViews>());
  const Dfg& planned = executor.plan().dfg;
  std::map<std::string, std::vector<char>> memory;
  for (const Node& node : planned.nodes()) {
    if (node.op != Op::input && node.op != Op::param) continue;
    memory[node.name] = leaf_bytes(node, bindings.at(node.name));
    executor.bind(node.name, memory[node.name].data());
  }
  // Poison: a value nobody wrote must not look right.
  std::shared_ptr<void> arena = allocate_bytes(executor.arena_bytes());
  std::memset(arena.get(), 0xFF, static_cast<size_t>(executor.arena_bytes()));
  ConstantPool pool;
  executor.allocate(arena, pool);
  executor.prepare();
  Outputs outputs;
  for (int r = 0; r < runs; ++r) {
    for (auto& [name, bytes] : memory) {
      const std::vector<char> fresh = leaf_bytes(planned[planned.find_leaf(name)], bindings.at(name));
      std::copy(fresh.begin(), fresh.end(), bytes.begin());
    }
    executor.run(step);
    for (const auto& [name, node] : planned.outputs()) {
      const float* values = executor.value(node);
      outputs[name].assign(values, values + blocks.rows(planned[node].type.space) * planned[node].type.row_size());
    }
  }
  return outputs;
}

void expect_close(const std::vector<float>& got, const std::vector<double>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(std::isfinite(got[i])) << what << " element " << i;
    error += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  EXPECT_LE(std::sqrt(error), 2e-5 * std::sqrt(norm) + 1e-6) << what;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace nacre::test
