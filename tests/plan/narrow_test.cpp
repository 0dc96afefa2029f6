// Tests which values plans store as bf16, what this saves, and that plan files keep it.
#include "nacre/plan/narrow.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/plan/order.h"
#include "nacre/plan/search.h"
#include "plan/devices.h"
#include "plan/plans.h"
#include "support/log_capture.h"

namespace nacre::test {
namespace {

using nlohmann::json;

constexpr const char* kModels[] = {"gcn", "sage", "gat", "gatv2", "gin", "rgcn", "sage-lstm", "mlp"};

Plan plan_for(const PlannedModel& m, const DeviceTraits& device, const PlanOptions& how = {}) {
  return make_plan(m.dfg, m.blocks, how, {.validate = true, .device = &device});
}

DeviceTraits bf16_gpu() { return large_gpu(GemmType::bf16); }

PlanOptions without_the_pass() {
  PlanOptions how;
  how.disabled_passes = {"store_as_bf16"};
  return how;
}

PlannedModel model_of(const std::string& name, int64_t hidden = 64) {
  ModelOptions options = usual(name, 3);
  options.hidden = hidden;
  if (name.starts_with("gat")) options.heads = 2;
  return plan_model(options);
}

// Returns whether the kernel can read and write values stored as bf16.
bool knows_bf16(const Kernel& kernel) {
  switch (kernel.kind) {
    case KernelKind::map:
    case KernelKind::map_edges:
    case KernelKind::reduce:
    case KernelKind::softmax:
    case KernelKind::softmax_grad:
    case KernelKind::column_sum:
    case KernelKind::matmul:
    case KernelKind::weight_grad:
      return true;
    case KernelKind::spmm: {
      const bool to_pairs = kernel.direction == Direction::by_dst_pair || kernel.direction == Direction::by_src_pair;
      return !(to_pairs && kernel.heads == 1 && kernel.tail.empty() && kernel.reduce_op == ReduceOp::sum);
    }
    default:
      return false;
  }
}

// Returns whether the value has memory, rows of vertices that suit tensor cores, and only kernels
// that know bf16. Results and leaves are never stored as bf16.
bool may_be_narrow(const Plan& plan, NodeRef value) {
  const Node& node = plan.dfg[value];
  const bool rows = node.type.space.kind == SpaceKind::vertex && node.type.dtype == DType::f32 &&
                    node.type.row_size() >= 16 && node.type.row_size() % 8 == 0;
  if (!rows || plan.stored[value] == 0 || node.inputs.empty()) return false;
  const auto is_value = [&](NodeRef i) { return i >= 0 && plan.alias[i] == value; };
  for (const auto& [name, result] : plan.dfg.outputs()) {
    if (is_value(result)) return false;
  }
  for (const auto& [name, result] : plan.dfg.updates()) {
    if (is_value(result)) return false;
  }
  return std::none_of(plan.kernels.begin(), plan.kernels.end(), [&](const Kernel& kernel) {
    const auto& inputs = plan.dfg[kernel.root].inputs;
    const bool touches = std::any_of(kernel.reads.begin(), kernel.reads.end(), is_value) ||
                         std::any_of(kernel.writes.begin(), kernel.writes.end(), is_value) ||
                         std::any_of(kernel.args.begin(), kernel.args.end(), is_value) ||
                         std::any_of(inputs.begin(), inputs.end(), is_value);
    return touches && !knows_bf16(kernel);
  });
}

TEST(NarrowValues, AreThoseThatOnlyKernelsOfBf16Touch) {
  std::map<std::string, size_t> found;
  for (const char* name : kModels) {
    for (const int64_t hidden : {8, 20, 64}) {
      SCOPED_TRACE(testing::Message() << name << " " << hidden);
      const PlannedModel m = model_of(name, hidden);
      for (const bool fuse : {true, false}) {
        PlanOptions how;
        how.fuse = how.hoist = fuse;
        const Plan plan = plan_for(m, bf16_gpu(), how);
        ASSERT_TRUE(plan.narrow.covers(plan.dfg));
        for (NodeRef i = 0; i < plan.dfg.size(); ++i) {
          EXPECT_EQ(plan.is_narrow(i), may_be_narrow(plan, plan.alias[i])) << "value " << i << "\n"
                                                                           << plan_text(plan, m.blocks);
          EXPECT_EQ(why_not_narrow(plan, i).empty(), plan.is_narrow(i) && plan.alias[i] == i) << i;
        }
        const std::vector<NodeRef> values = narrow_values(plan);
        if (hidden == 64) found[name] += values.size();
        for (const NodeRef i : values) EXPECT_GE(plan.dfg[i].type.row_size(), 16);
      }
    }
  }
  for (const char* name : {"gcn", "sage", "gat", "gin", "mlp"}) EXPECT_GT(found.at(name), 3U) << name;
}

TEST(NarrowValues, ExistOnlyInPlansForDevicesThatStoreBf16) {
  const PlannedModel m = model_of("gcn");
  const DeviceTraits host;
  EXPECT_TRUE(m.plan.narrow.empty()) << "made without a device";
  EXPECT_TRUE(plan_for(m, host).narrow.empty());
  for (const GemmType products : {GemmType::f32, GemmType::tf32})
    EXPECT_TRUE(plan_for(m, large_gpu(products)).narrow.empty());
  DeviceTraits odd;
  odd.products = GemmType::bf16;
  EXPECT_TRUE(plan_for(m, odd).narrow.empty()) << "the CPU stores no bf16";
  const Plan without = plan_for(m, bf16_gpu(), without_the_pass());
  EXPECT_TRUE(without.narrow.empty());
  EXPECT_EQ(plan_json(without).find("bf16\": ["), std::string::npos);
}

// Values stored as bf16 take half the memory, and kernels move half of their bytes.
TEST(NarrowValues, AreCountedWithTwoBytes) {
  const PlannedModel m = model_of("gcn");
  const Plan plan = plan_for(m, bf16_gpu()), wide = plan_for(m, large_gpu(GemmType::tf32));
  const NarrowReport report = report_narrow(plan, m.blocks);
  ASSERT_FALSE(report.values.empty());
  int64_t bytes = 0;
  for (const auto& [node, size] : report.values) {
    EXPECT_EQ(size, m.blocks.rows(plan.dfg[node].type.space) * plan.dfg[node].type.row_size() * 2);
    bytes += size;
  }
  EXPECT_EQ(report.bytes, bytes);
  EXPECT_EQ(report.peak, peak_live_bytes(plan, m.blocks));
  EXPECT_LT(report.peak, peak_live_bytes(wide, m.blocks));
  EXPECT_GT(report.saved(), 0);
  double floor = 0, wide_floor = 0;
  for (const Kernel& k : plan.kernels) floor += k.floor_bytes;
  for (const Kernel& k : wide.kernels) wide_floor += k.floor_bytes;
  EXPECT_LT(floor, wide_floor);
}

TEST(NarrowValues, ArePrinted) {
  const PlannedModel m = model_of("gcn");
  const Plan plan = plan_for(m, bf16_gpu());
  const std::string text = plan_text(plan, m.blocks);
  const std::vector<NodeRef> values = narrow_values(plan);
  EXPECT_NE(text.find("stored as bf16: " + std::to_string(values.size()) + " values in "), std::string::npos);
  const NodeRef first = values.front();
  const std::string line = "  %" + std::to_string(first) + " " + std::string(op_info(plan.dfg[first].op).name) + " v";
  EXPECT_NE(text.find(line, text.find("stored as bf16")), std::string::npos) << line << "\n" << text;
  EXPECT_EQ(plan_text(m.plan, m.blocks).find("stored as bf16"), std::string::npos);
  EXPECT_NE(plan_text(plan_for(model_of("gcn", 8), bf16_gpu()), m.blocks).find("stored as bf16: "), std::string::npos);
}

// The choices do not depend on the precision, but what is timed is stored as on the device.
TEST(NarrowValues, AreThoseOfTimedCandidates) {
  const PlannedModel m = model_of("gcn");
  const DeviceTraits bf16 = bf16_gpu(), tf32 = large_gpu(GemmType::tf32);
  std::map<GemmType, std::vector<NodeRef>> timed;  // the roots of the kernels
  const auto search = [&](const DeviceTraits& device) {
    SearchOptions how;
    how.device = &device;
    how.budget_seconds = 1e9;
    how.measure = [&](const Plan& plan, size_t kernel) {
      EXPECT_EQ(plan.narrow.empty(), device.products != GemmType::bf16);
      timed[device.products].push_back(plan.kernels.at(kernel).root);
      return 1e-3;
    };
    return search_plan(m.dfg, m.blocks, {}, how).options;
  };
  EXPECT_EQ(search(bf16), search(tf32));
  EXPECT_FALSE(timed.at(GemmType::bf16).empty());
  EXPECT_EQ(timed.at(GemmType::bf16), timed.at(GemmType::tf32));
}

// ---- plan files

class NarrowFile : public testing::Test {
 protected:
  Plan load(const std::string& file, const DeviceTraits& device) {
    log_.take();
    return load_plan(file, "my.plan", m_.dfg, m_.blocks, &device);
  }
  std::string file_for(const DeviceTraits& device) const { return plan_json(plan_for(m_, device)); }
  // Returns the file of a plan for bf16 with another list of values.
  std::string with_values(const json& values) const {
    json file = json::parse(file_for(bf16_gpu()));
    file["bf16"] = values;
    return file.dump();
  }
  void expect_refused(const json& values, const std::string& says) {
    try {
      load(with_values(values), bf16_gpu());
      ADD_FAILURE() << values << " was accepted";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
  }

  PlannedModel m_ = model_of("gcn");
  Plan plan_ = plan_for(m_, bf16_gpu());
  LogCapture log_;
};

TEST_F(NarrowFile, LoadsBackAsItWas) {
  for (const char* name : kModels) {
    m_ = model_of(name);
    plan_ = plan_for(m_, bf16_gpu());
    Plan loaded = load(plan_json(plan_), bf16_gpu());
    EXPECT_EQ(narrow_values(loaded), narrow_values(plan_)) << name;
    EXPECT_EQ(log_.take(), "") << name;
    loaded.name = plan_.name;
    const json now = json::parse(plan_json(loaded)), before = json::parse(plan_json(plan_));
    ASSERT_EQ(now.at("kernels").size(), before.at("kernels").size());
    for (size_t k = 0; k < before.at("kernels").size(); ++k) {
      for (const char* key : {"kind", "root", "reads", "writes", "floor_bytes"})
        EXPECT_EQ(now["kernels"][k][key], before["kernels"][k][key]) << name << " " << k;
    }
  }
}

TEST_F(NarrowFile, OfAnotherPrecisionFollowsTheDeviceAndSaysSo) {
  const std::vector<NodeRef> values = narrow_values(plan_);
  const Plan wide = load(file_for(bf16_gpu()), large_gpu(GemmType::tf32));
  EXPECT_TRUE(wide.narrow.empty());
  EXPECT_EQ(log_.take(), "my.plan: was made for --precision bf16; the " + std::to_string(values.size()) +
                             " values that it stores as bf16 are f32 on this device\n");
  const Plan narrow = load(file_for(large_gpu(GemmType::tf32)), bf16_gpu());
  EXPECT_EQ(narrow_values(narrow), values);
  EXPECT_EQ(log_.take(), "my.plan: was made for another precision; by the rules, " + std::to_string(values.size()) +
                             " values are stored as bf16\n");
  load(file_for(large_gpu(GemmType::f32)), large_gpu(GemmType::tf32));
  EXPECT_EQ(log_.take(), "");
  const Plan without = plan_for(m_, bf16_gpu(), without_the_pass());
  EXPECT_TRUE(load(plan_json(without), bf16_gpu()).narrow.empty());
  EXPECT_EQ(log_.take(), "");
}

TEST_F(NarrowFile, ThatNamesFewerValuesIsObeyed) {
  std::vector<NodeRef> values = narrow_values(plan_);
  ASSERT_GE(values.size(), 2U);
  values.erase(values.begin());
  const Plan loaded = load(with_values(values), bf16_gpu());
  EXPECT_EQ(narrow_values(loaded), values);
  EXPECT_GT(report_narrow(loaded, m_.blocks).bytes, 0);
  EXPECT_LT(report_narrow(loaded, m_.blocks).bytes, report_narrow(plan_, m_.blocks).bytes);
  const Plan none = load(with_values(json::array()), bf16_gpu());
  EXPECT_TRUE(narrow_values(none).empty());
  EXPECT_NE(plan_text(none, m_.blocks).find("stored as bf16: no value"), std::string::npos);
  EXPECT_NO_THROW(validate(none, m_.blocks));
}

TEST_F(NarrowFile, ThatNamesValuesWhichMustBeF32IsRefused) {
  const NodeRef loss = plan_.dfg.output("loss");
  expect_refused({plan_.dfg.find_leaf("x")}, "it does not consist of rows of nodes");
  expect_refused({loss}, "stores %" + std::to_string(loss) + " as bf16, but it does not consist of rows");
  expect_refused({-1}, "there is no such value");
  expect_refused({plan_.dfg.size()}, "there is no such value");
  NodeRef unstored = 0;
  while (plan_.stored[plan_.alias[unstored]] != 0) ++unstored;
  expect_refused({unstored}, "it has no memory of its own");
  // The rows of the scores suit tensor cores, but the kernel of the loss takes f32.
  NodeRef by_loss = -1;
  for (const Kernel& kernel : plan_.kernels) {
    for (const NodeRef i : kernel.reads) {
      if (kernel.kind == KernelKind::loss && plan_.dfg[i].type.row_size() == 16) by_loss = i;
    }
  }
  ASSERT_GE(by_loss, 0);
  expect_refused({by_loss}, "(loss) takes it as f32 only");
  for (const json& damaged : {json(7), json("x"), json(), json::object(), json::array({"x"}), json::array({2.5}),
                              json::array({int64_t{1} << 32})})
    expect_refused(damaged, "has a damaged list of values stored as bf16");
}

}  // namespace
}  // namespace nacre::test
