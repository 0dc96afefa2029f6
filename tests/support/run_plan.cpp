#include "support/run_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "nacre/base/error.h"
#include "nacre/engine/gpu/gpu_backend.h"
#include "support/sanitized.h"

namespace nacre::test {
namespace {

constexpr int64_t kBorder = 4096;
constexpr unsigned char kBorderByte = 0xA5;

// These are the compiler that all tests of this process share, and the compilers of ranks. They are
// never destroyed, because the libraries they use are opened after they were made and are gone
// before they would be destroyed.
std::shared_ptr<GpuCompiler>* test_compiler = nullptr;
auto* const rank_compilers = new std::map<int, std::shared_ptr<GpuCompiler>>;

DevicePlugin& test_plugin() {
  std::string why;
  DevicePlugin* plugin = device_plugin(&why);
  if (plugin == nullptr) throw std::runtime_error(why);
  return *plugin;
}

// The first call of test_rank_compiler() opens the devices of kMostRanks ranks. No test has more
// ranks than that.
constexpr int kMostRanks = 4;
constexpr int kRankMultiprocessors = 8;

std::unique_ptr<Device> open_rank(bool whole) { return test_plugin().open(0, whole ? 0 : kRankMultiprocessors); }

// After the last test, waits for kernels that are still being compiled. Otherwise, the library of
// the compiler would be closed while a thread is inside it, and that thread would crash.
class CompilersHaveEnded : public ::testing::Environment {
 public:
  void TearDown() override {
    try {
      if (test_compiler != nullptr) (*test_compiler)->settle();
      for (const auto& [rank, compiler] : *rank_compilers) compiler->settle();
    } catch (const std::exception& e) {
      ADD_FAILURE() << "a kernel that no test has launched does not compile: " << e.what();
    }
  }
};

[[maybe_unused]] const ::testing::Environment* const compilers_have_ended =
    ::testing::AddGlobalTestEnvironment(new CompilersHaveEnded);

// Returns the values of a leaf as bytes, in the leaf's own element type.
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

Dfg training_dfg(const ModelOptions& options) {
  Dfg dfg = build_model(options);
  differentiate(dfg);
  return dfg;
}

ref::Bindings rounded_to_float(ref::Bindings bindings) {
  for (auto& [name, values] : bindings) {
    for (double& v : values) v = static_cast<double>(static_cast<float>(v));
  }
  return bindings;
}

bool testing_gpu() {
  const char* device = std::getenv("NACRE_TEST_DEVICE");
  return device != nullptr && std::string(device) == "cuda";
}

GpuOptions& test_gpu_options() {
  static GpuOptions options{.tune = false};
  return options;
}

std::shared_ptr<Backend> test_backend(std::shared_ptr<GraphViews> views) {
  if (!testing_gpu()) return make_cpu_backend(std::move(views));
  if (test_compiler == nullptr) {
    DevicePlugin& plugin = test_plugin();
    test_compiler = new std::shared_ptr<GpuCompiler>(GpuCompiler::open(plugin, plugin.open(0, 0)));
  }
  return make_gpu_backend(std::make_shared<GpuContext>(*test_compiler, std::move(views), test_gpu_options()));
}

BoundPlan::BoundPlan(Plan plan, const Blocks& blocks, const ref::Bindings& bindings)
    : blocks_(blocks), executor_(std::move(plan), blocks, test_backend(std::make_shared<GraphViews>())) {
  ConstantPool pool;
  bind(bindings, pool);
}

std::shared_ptr<GpuCompiler> test_rank_compiler(int rank) {
  static std::once_flag opened;
  std::call_once(opened, [] {
    bool whole = false;
    for (int r = 0; r < kMostRanks; ++r) {
      std::unique_ptr<Device> device;
      try {
        device = open_rank(whole);
      } catch (const UserError&) {
        whole = true;
        device = open_rank(whole);
      }
      (*rank_compilers)[r] = GpuCompiler::open(test_plugin(), std::move(device));
    }
  });
  return rank_compilers->at(rank);
}

BoundPlan::BoundPlan(Plan plan, const Blocks& blocks, const ref::Bindings& bindings, std::shared_ptr<Backend> backend,
                     const ExecutorOptions& options)
    : blocks_(blocks), executor_(std::move(plan), blocks, std::move(backend), options) {
  ConstantPool pool;
  bind(bindings, pool);
}

BoundPlan::BoundPlan(Plan plan, const Blocks& blocks, const ref::Bindings& bindings, std::shared_ptr<GraphViews> views,
                     ConstantPool& pool)
    : blocks_(blocks), executor_(std::move(plan), blocks, test_backend(std::move(views))) {
  bind(bindings, pool);
}

void BoundPlan::write(Leaf& leaf) {
  if (leaf.device)
    executor_.backend().write(leaf.device.get(), leaf.bytes.data(), static_cast<int64_t>(leaf.bytes.size()));
}

void BoundPlan::bind(const ref::Bindings& bindings, ConstantPool& pool) {
  Backend& backend = executor_.backend();
  for (const Node& node : executor_.plan().dfg.nodes()) {
    if (node.op != Op::input && node.op != Op::param) continue;
    Leaf& leaf = leaves_[node.name];
    leaf.bytes = leaf_bytes(node, bindings.at(node.name));
    if (!backend.on_host()) leaf.device = backend.allocate(static_cast<int64_t>(leaf.bytes.size()));
    write(leaf);
    executor_.bind(node.name, leaf.device ? leaf.device.get() : leaf.bytes.data());
  }
  const int64_t bytes = executor_.arena_bytes();
  memory_ = backend.allocate(bytes + 2 * kBorder);
  const std::vector<unsigned char> border(static_cast<size_t>(kBorder), kBorderByte);
  for (const int64_t at : {int64_t{0}, kBorder + bytes})
    backend.write(static_cast<char*>(memory_.get()) + at, border.data(), kBorder);
  spoil();
  executor_.allocate(std::shared_ptr<void>(memory_, static_cast<char*>(memory_.get()) + kBorder), pool);
  executor_.prepare();
}

void BoundPlan::spoil() {
  const std::vector<unsigned char> nonsense(static_cast<size_t>(executor_.arena_bytes()), 0xFF);
  executor_.backend().write(static_cast<char*>(memory_.get()) + kBorder, nonsense.data(), executor_.arena_bytes());
}

void BoundPlan::reset(const ref::Bindings& bindings) {
  const Dfg& dfg = executor_.plan().dfg;
  for (auto& [name, leaf] : leaves_) {
    const std::vector<char> fresh = leaf_bytes(dfg[dfg.find_leaf(name)], bindings.at(name));
    std::copy(fresh.begin(), fresh.end(), leaf.bytes.begin());
    write(leaf);
  }
}

Outputs BoundPlan::outputs() {
  Outputs outputs;
  const Dfg& dfg = executor_.plan().dfg;
  const auto read = [&](const float* values, NodeRef node) {
    const auto n = static_cast<size_t>(blocks_.rows(dfg[node].type.space) * dfg[node].type.row_size());
    return std::vector<float>(values, values + n);
  };
  for (const auto& [name, node] : dfg.outputs()) outputs[name] = read(executor_.value(node), node);
  for (const auto& [name, node] : dfg.updates()) {
    outputs["update:" + name] = read(executor_.value(dfg.find_leaf(name)), node);
  }
  return outputs;
}

bool BoundPlan::borders_intact() const {
  std::vector<unsigned char> border(kBorder);
  const auto intact = [&](int64_t at) {
    executor_.backend().read(border.data(), static_cast<const char*>(memory_.get()) + at, kBorder);
    return std::all_of(border.begin(), border.end(), [](unsigned char c) { return c == kBorderByte; });
  };
  return intact(0) && intact(kBorder + executor_.arena_bytes());
}

Outputs run_plan(const Dfg& dfg, const Blocks& blocks, const ref::Bindings& bindings, const StepContext& step,
                 const PlanOptions& options, int runs) {
  const DeviceTraits device = test_backend(std::make_shared<GraphViews>())->traits();
  const Plan plan = make_plan(dfg, blocks, options, {.validate = true, .device = &device, .variants = false});
  BoundPlan bound(plan, blocks, bindings);
  return run_plan(bound, bindings, step, runs);
}

Outputs run_plan(BoundPlan& bound, const ref::Bindings& bindings, const StepContext& step, int runs) {
  for (int r = 0; r < runs; ++r) {
    bound.reset(bindings);
    bound.spoil();
    bound.executor().run(step);
  }
  EXPECT_TRUE(bound.borders_intact()) << "something was written beyond the arena";
  return bound.outputs();
}

void expect_plans_agree(const Dfg& dfg, const Blocks& blocks, const ref::Bindings& bindings, const StepContext& step,
                        double tolerance) {
  // A GPU adds even long sums in f32, so its errors are larger.
  if (testing_gpu()) tolerance *= 2;
  ref::Interpreter reference(dfg, blocks);
  reference.run(bindings, step);
  // Under a sanitizer, every call tests only a sixth of the plans. Different calls test different
  // plans.
  const size_t stride = sanitized_stride(6);
  static size_t calls = 0;
  for (size_t p = calls++ % stride; p < std::size(kAllPlans); p += stride) {
    const NamedOptions& plan = kAllPlans[p];
    SCOPED_TRACE(plan.name);
    const Outputs outputs = run_plan(dfg, blocks, bindings, step, plan.options);
    for (const auto& [name, node] : dfg.outputs()) {
      expect_close(outputs.at(name), reference.value(node), name, tolerance);
    }
    for (const auto& [name, node] : dfg.updates()) {
      expect_close(outputs.at("update:" + name), reference.value(node), "update of " + name, tolerance);
    }
  }
}

double relative_error(const std::vector<float>& got, const std::vector<double>& want) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(error) / (std::sqrt(norm) + 0.25);
}

void expect_close(const std::vector<float>& got, const std::vector<double>& want, const std::string& what,
                  double tolerance) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) ASSERT_TRUE(std::isfinite(got[i])) << what << " element " << i;
  EXPECT_LE(relative_error(got, want), tolerance) << what;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace nacre::test
