// Compares, launch by launch, what the GPU back end asks of a device with what the plan says: which
// rows are treated apart, how many threads share a row, how many rows a product takes at a time,
// and how its algorithm is found. The device records what it is asked for and computes nothing. The
// expected launches are counted from the edges of the graph and the limits of the plan.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "nacre/plan/variants/chunks.h"
#include "nacre/plan/variants/place.h"
#include "support/big_graphs.h"
#include "support/gpu_plans.h"

namespace nacre::test {
namespace {

// A launch, or a product of the library if `kernel` is empty.
struct Asked {
  std::string kernel;
  LaunchShape shape;
  std::vector<int64_t> words;  // the arguments of a launch
  GemmShape product;
  int among = 0;
};

class Recorder : public NullDevice {
 public:
  using NullDevice::NullDevice;
  std::vector<Asked> take() { return std::exchange(list_, {}); }

  DeviceFunction load(const std::string& image, const std::string&) override { return &names_.emplace_back(image); }
  void launch(DeviceFunction function, const LaunchShape& shape, const std::vector<void*>& arguments) override {
    Asked asked{*static_cast<const std::string*>(function), shape, {}, {}, 0};
    // Each argument lies in a word of its own (LaunchParams).
    for (const void* argument : arguments) std::memcpy(&asked.words.emplace_back(), argument, sizeof(int64_t));
    list_.push_back(std::move(asked));
  }
  int prepare_gemm(const GemmShape& shape, int among) override {
    products_.push_back({"", {}, {}, shape, among});
    return static_cast<int>(products_.size()) - 1;
  }
  void run_gemm(int handle, const GemmArgs&, void*) override {
    list_.push_back(products_[static_cast<size_t>(handle)]);
  }

 private:
  std::vector<Asked> list_, products_;
  std::deque<std::string> names_;  // a deque keeps their addresses
};

struct Bound {
  Plan plan;  // as it was bound
  // What each kernel asks for; nothing of kernels on the host.
  std::vector<std::vector<Asked>> asked;
};

Bound bind_on_recorder(const Plan& plan, const Blocks& blocks, const GpuOptions& options,
                       const std::shared_ptr<GraphViews>& views = std::make_shared<GraphViews>()) {
  const auto recorder = std::make_shared<Recorder>(typical_gpu());
  return with_bound(plan, blocks, context_on(recorder, options, views), [&](Executor& executor) {
    Bound bound{executor.plan_as_bound(), {}};
    for (size_t k = 0; k < plan.kernels.size(); ++k) {
      recorder->take();
      if (!runs_on_host(plan.kernels[k], plan.dfg)) executor.time_kernel(k);
      bound.asked.push_back(recorder->take());
    }
    return bound;
  });
}

const VariantChoice* find(const Kernel& kernel, std::string_view decision) {
  for (const VariantChoice& v : kernel.variants) {
    if (v.decision == decision) return &v;
  }
  return nullptr;
}

// Returns the record of a decision that the plan must have made.
VariantChoice record(const Kernel& kernel, std::string_view decision) {
  const VariantChoice* found = find(kernel, decision);
  EXPECT_NE(found, nullptr) << kernel_name(kernel.kind) << ": the plan does not decide about " << decision;
  return found == nullptr ? VariantChoice{} : *found;
}

// Returns the limit of the record if it names this variant, otherwise a number that no row reaches.
int64_t limit_of(const Kernel& kernel, std::string_view decision, std::string_view variant, int64_t otherwise) {
  const VariantChoice taken = record(kernel, decision);
  if (taken.variant != variant) return otherwise;
  EXPECT_GT(taken.limit, 0) << decision;
  return taken.limit;
}

// Returns the number of entries of every row that a kernel walks.
std::vector<int64_t> row_lengths(const Graph& graph, Direction direction) {
  std::vector<int64_t> lengths;
  const auto differences = [&](const auto& ptr) {
    for (int64_t i = 0; i + 1 < ptr.size(); ++i) lengths.push_back(ptr[i + 1] - ptr[i]);
  };
  switch (direction) {
    case Direction::by_dst:
      differences(graph.row_ptr());
      break;
    case Direction::by_src:
      differences(graph.out().row_ptr);
      break;
    case Direction::by_dst_pair:
      differences(graph.pairs(End::dst).edge_ptr);
      break;
    case Direction::by_src_pair:
      differences(graph.pairs(End::src).edge_ptr);
      break;
    case Direction::pairs_of_dst:
      differences(graph.pairs(End::dst).vertex_ptr);
      break;
    case Direction::pairs_of_src:
      differences(graph.pairs(End::src).vertex_ptr);
      break;
  }
  return lengths;
}

std::vector<Asked> launches_of(const std::vector<Asked>& asked, const std::string& name) {
  std::vector<Asked> found;
  for (const Asked& a : asked) {
    if (!a.kernel.empty() && a.kernel.starts_with(name)) found.push_back(a);
  }
  return found;
}

int64_t divided(int64_t units, int64_t by) { return (units + by - 1) / by; }

// Checks what kernels ask for, and counts what was checked.
class Checker {
 public:
  Checker(const Plan& plan, const Blocks& blocks) : plan_(plan), blocks_(blocks) {}

  void check(const Kernel& kernel, const std::vector<Asked>& asked) {
    SCOPED_TRACE(std::string(kernel_name(kernel.kind)));
    if (runs_on_host(kernel, plan_.dfg)) return;
    switch (kernel.kind) {
      case KernelKind::softmax:
      case KernelKind::softmax_grad:
        softmax(kernel, asked);
        break;
      case KernelKind::spmm:
        sums_pairs(kernel) ? pairs(kernel, asked) : sums(kernel, asked);
        break;
      case KernelKind::reduce:
        sums(kernel, asked);
        break;
      case KernelKind::typed_reduce:
        if (find(kernel, "long pairs") != nullptr) pairs(kernel, asked);
        break;
      case KernelKind::typed_weight_grad:
        pairs(kernel, asked);
        break;
      case KernelKind::matmul:
        if (record(kernel, "product").variant == "library") chunks(kernel, asked);
        break;
      default:
        break;
    }
    products(kernel, asked);
  }

  std::map<std::string, int> seen;  // how often each expectation was met by something to see

 private:
  const Graph& graph(const Kernel& kernel) const { return blocks_.layer(walked_layer(plan_.dfg, kernel)); }

  // Long rows have a block of threads each, and the others a group of threads each. Rows of a few
  // values have one thread for each entry that is read at the same time.
  void softmax(const Kernel& kernel, const std::vector<Asked>& asked) {
    const int64_t longest = limit_of(kernel, "long rows of softmax", "a block of threads each", INT64_MAX);
    const int64_t group = std::clamp<int64_t>(
        std::bit_ceil(static_cast<uint64_t>(limit_of(kernel, "threads of a row", "for a mean row", 1))), 4, 32);
    const std::vector<int64_t> rows = row_lengths(graph(kernel), kernel.direction);
    const int64_t many = std::count_if(rows.begin(), rows.end(), [&](int64_t length) { return length > longest; });
    const int64_t others = static_cast<int64_t>(rows.size()) - many;
    std::vector<Asked> launches = launches_of(asked, "softmax");
    ASSERT_EQ(launches.size(), (many > 0 ? 1U : 0U) + (others > 0 ? 1U : 0U));
    if (many > 0) {
      EXPECT_EQ(launches[0].words[2], many);
      EXPECT_EQ(launches[0].shape.blocks, many);
      EXPECT_EQ(launches[0].shape.threads, 512);
      ++seen["blocks of softmax"];
    }
    if (others == 0) return;
    EXPECT_EQ(launches.back().words[2], others);
    EXPECT_EQ(launches.back().shape.threads, 128);
    const auto& widths = kernel.program.widths;
    if (std::all_of(widths.begin(), widths.end(), [](int64_t width) { return width <= 8; })) {
      EXPECT_EQ(launches.back().shape.blocks, divided(others, 128 / group));
      ++seen["groups of softmax"];
    }
  }

  // A launch takes the pieces of long rows, and then all rows.
  void sums(const Kernel& kernel, const std::vector<Asked>& asked) {
    const int64_t longest = limit_of(kernel, "long rows of sums", "in pieces", INT32_MAX);
    const std::vector<int64_t> rows = row_lengths(graph(kernel), kernel.direction);
    int64_t pieces = 0;
    for (const int64_t length : rows) pieces += length > longest ? divided(length, longest) : 0;
    const std::vector<Asked> launches = launches_of(asked, "reduce");
    ASSERT_EQ(launches.size(), 1U);
    EXPECT_EQ(launches[0].words[1], pieces);
    EXPECT_EQ(launches[0].words[4], longest);
    EXPECT_EQ(launches[0].words[5], pieces + static_cast<int64_t>(rows.size()));
    if (pieces > 0) ++seen["pieces of rows"];
  }

  // A launch adds the sums of the pieces of each long pair.
  void pairs(const Kernel& kernel, const std::vector<Asked>& asked) {
    const int64_t longest = limit_of(kernel, "long pairs", "in pieces", INT64_MAX);
    const Direction direction = rows_at_dst(kernel.direction) ? Direction::by_dst_pair : Direction::by_src_pair;
    const std::vector<int64_t> lengths = row_lengths(graph(kernel), direction);
    const int64_t many = std::count_if(lengths.begin(), lengths.end(), [&](int64_t n) { return n > longest; });
    int64_t joined = 0;
    for (const Asked& a : launches_of(asked, "typed_join")) joined += a.words[2];
    EXPECT_EQ(joined, many);
    if (many > 0) ++seen["pieces of pairs"];
  }

  void chunks(const Kernel& kernel, const std::vector<Asked>& asked) {
    const int64_t rows = blocks_.rows(plan_.dfg[kernel.root].type.space);
    const int64_t most = limit_of(kernel, "rows at a time", "some", rows);
    int64_t count = 0;
    for (const Asked& a : asked) {
      if (!a.kernel.empty()) continue;
      EXPECT_LE(a.product.m, most);
      ++count;
    }
    EXPECT_EQ(count, divided(rows, most));
    if (count > 1) ++seen["products of some rows"];
  }

  void products(const Kernel& kernel, const std::vector<Asked>& asked) {
    for (const Asked& a : asked) {
      if (!a.kernel.empty()) continue;
      const VariantChoice how = record(kernel, "algorithm");
      const GemmShape& s = a.product;
      const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
      const bool timed =
          how.variant == "timed" || (how.variant == "timed for large products" && flops >= kLargeProduct);
      EXPECT_EQ(a.among, timed ? how.limit : 1) << how.variant;
      ++seen[how.variant];
    }
  }

  const Plan& plan_;
  const Blocks& blocks_;
};

// Binds the plan and expects each kernel to ask for what the plan says. Returns what there was to
// see.
std::map<std::string, int> expect_asked_as_planned(const Plan& plan, const Blocks& blocks, const GpuOptions& options) {
  const Bound bound = bind_on_recorder(plan, blocks, options);
  Checker checker(bound.plan, blocks);
  for (size_t k = 0; k < plan.kernels.size(); ++k) checker.check(bound.plan.kernels[k], bound.asked[k]);
  // What the plan says beforehand is what was bound.
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    for (const VariantChoice& v : plan.kernels[k].variants) {
      if (v.variant.empty()) continue;  // timed
      const VariantChoice now = record(bound.plan.kernels[k], v.decision);
      EXPECT_EQ(now.variant, v.variant) << v.decision;
      EXPECT_EQ(now.limit, v.limit) << v.decision;
    }
  }
  return checker.seen;
}

class GpuLaunches : public testing::Test {
 protected:
  // Returns a plan for the recorder, which names every variant.
  Plan plan_for(const std::string& model, const PlanOptions* options = nullptr, const std::string& end = "dst") {
    const DeviceTraits device = traits();
    dfg_ = training_dfg(model, blocks_, 40);
    PlanOptions how = options != nullptr ? *options : summing(dfg_, blocks_, end, device);
    return make_plan(dfg_, blocks_, how, {.validate = true, .device = &device});
  }
  DeviceTraits traits() const { return context_on(make_null_device(typical_gpu()), gpu_)->traits(); }

  // Returns the plan as a file that names this limit for the decision says it, wherever the variant
  // is taken.
  Plan with_limit(const Plan& plan, const std::string& decision, const std::string& variant, int64_t limit) {
    nlohmann::json file = nlohmann::json::parse(plan_json(plan));
    for (auto& kernel : file["kernels"]) {
      for (auto& v : kernel["variants"]) {
        if (v["decision"] != decision) continue;
        v["variant"] = variant;
        v["limit"] = limit;
      }
    }
    const DeviceTraits device = traits();
    Plan loaded = load_plan(file.dump(), "f", dfg_, blocks_, &device);
    int named = 0;
    for (const Kernel& kernel : loaded.kernels) {
      const VariantChoice* v = find(kernel, decision);
      if (v == nullptr || v->variant != variant) continue;
      EXPECT_EQ(v->limit, limit);
      EXPECT_EQ(v->why, "the plan file names it");
      ++named;
    }
    EXPECT_GT(named, 0) << decision;
    return loaded;
  }

  Blocks blocks_ =
      Blocks::full(typed_weighted_graph({.vertices = 90, .edges = 9000, .hub_edges = 1500, .types = 4, .seed = 8}), 2);
  GpuOptions gpu_;  // variants are timed
  Dfg dfg_;
};

TEST_F(GpuLaunches, AreThoseThatThePlanSays) {
  std::map<std::string, int> seen;
  for (const char* model : {"gcn_weighted", "sage_mean", "sage_lstm", "gat", "rgcn"}) {
    for (const GemmType precision : {GemmType::f32, GemmType::tf32, GemmType::bf16}) {
      for (const bool tune : {true, false}) {
        for (const char* end : {"dst", "src"}) {
          SCOPED_TRACE(testing::Message() << model << " " << static_cast<int>(precision) << " " << tune << " " << end);
          gpu_ = {.precision = precision, .tune = tune};
          const Plan plan = plan_for(model, nullptr, end);
          for (const auto& [what, times] : expect_asked_as_planned(plan, blocks_, gpu_)) seen[what] += times;
        }
      }
    }
  }
  for (const char* what : {"blocks of softmax", "groups of softmax", "pieces of rows", "pieces of pairs", "timed",
                           "timed for large products", "the library's first"}) {
    EXPECT_GT(seen[what], 0) << what << " did not occur";
  }
}

// Wherever the plan file names another limit, the engine applies that one.
TEST_F(GpuLaunches, FollowTheLimitsOfAPlanFile) {
  const auto expect = [&](const std::string& model, const std::string& decision, const std::string& variant,
                          int64_t limit, const char* what) {
    SCOPED_TRACE(decision + ": " + variant);
    const Plan plan = with_limit(plan_for(model), decision, variant, limit);
    EXPECT_GT(expect_asked_as_planned(plan, blocks_, gpu_)[what], 0) << what;
  };
  for (const int64_t limit : {32, 140, 1600}) {
    if (limit < 1600) expect("gat", "long rows of softmax", "a block of threads each", limit, "blocks of softmax");
    if (limit < 1600) expect("gcn_weighted", "long rows of sums", "in pieces", limit, "pieces of rows");
    expect("rgcn", "long pairs", "in pieces", limit / 4, "pieces of pairs");
  }
  for (const int64_t limit : {4, 8, 32, 256})
    expect("gat", "threads of a row", "for a mean row", limit, "groups of softmax");
  for (const int64_t limit : {2, 64}) expect("gcn_weighted", "algorithm", "timed", limit, "timed");
  for (const int64_t limit : {1, 16, 89})
    expect("gcn_weighted", "rows at a time", "some", limit, "products of some rows");
}

// Without outliers, every row is like the others.
TEST_F(GpuLaunches, TreatNoRowApartIfThePlanSaysSo) {
  for (const char* model : {"gcn_weighted", "gat"}) {
    PlanOptions how;
    how.split_outliers = false;
    const Plan plan = plan_for(model, &how);
    std::map<std::string, int> seen = expect_asked_as_planned(plan, blocks_, gpu_);
    EXPECT_EQ(seen["blocks of softmax"] + seen["pieces of rows"], 0);
  }
}

// Returns the number of segments that the first gtask kernel walks.
int64_t segments_of(const Bound& bound) {
  for (size_t k = 0; k < bound.plan.kernels.size(); ++k) {
    if (bound.plan.kernels[k].kind != KernelKind::gtask) continue;
    const std::vector<Asked> launches = launches_of(bound.asked[k], "reduce");
    EXPECT_EQ(launches.size(), 1U);
    return launches.at(0).words[1];
  }
  ADD_FAILURE() << "no gTasks";
  return 0;
}

TEST_F(GpuLaunches, WalkAsManyGTasksTogetherAsThePlanSays) {
  PlanOptions how;
  how.table = PartitionTable::parse("src-id=3,edge-id=7");
  const Plan plan = plan_for("gat", &how);
  const int64_t rows = blocks_.layer(0).num_dst();
  const std::string decision = "gTasks walked together";
  const auto segments = [&](const std::string& variant, int64_t limit) {
    return segments_of(bind_on_recorder(with_limit(plan, decision, variant, limit), blocks_, gpu_));
  };
  const int64_t alone = segments("until rows are in few pieces", kMostLimit);
  EXPECT_GT(alone, rows);
  EXPECT_EQ(segments("until rows are in few pieces", 1), rows) << "all gTasks are walked as one";
  const int64_t some = segments("until rows are in few pieces", 4000);
  EXPECT_LE(some, 4000 + rows);
  EXPECT_GT(some, rows);
  const int64_t usual = segments_of(bind_on_recorder(plan, blocks_, gpu_));
  EXPECT_LE(usual, 4 * rows + 4096 + rows);
}

// A device that cuts gTasks does so where the plan says it, and otherwise the host.
TEST_F(GpuLaunches, GTasksAreCutWhereThePlanSays) {
  PlanOptions how;
  how.table = PartitionTable::parse("dst-id=1,edge-id=32");
  std::set<std::string> seen;
  for (const int64_t edges : {9000, (1 << 21) + 1}) {
    blocks_ = Blocks::full(typed_weighted_graph({.vertices = 3000, .edges = edges, .hub_edges = 0, .seed = 2}), 2);
    const Plan plan = plan_for("gat", &how);
    int on_device = 0;
    const auto views = std::make_shared<GraphViews>();
    views->partition_with([&](const Graph& graph, const PartitionTable& table) {
      ++on_device;
      return partition(graph, table);
    });
    const Bound bound = bind_on_recorder(plan, blocks_, gpu_, views);
    bool planned = false;
    for (const Kernel& kernel : plan.kernels) {
      if (kernel.kind != KernelKind::gtask) continue;
      const std::string where = record(kernel, "gTasks").variant;
      planned |= where == "cut on the GPU";
      seen.insert(where);
    }
    EXPECT_EQ(on_device > 0, planned) << edges;
  }
  EXPECT_EQ(seen, (std::set<std::string>{"cut on the GPU", "cut on the host"}));
}

// A batch runs the variants of the plan that was made on a typical batch.
TEST_F(GpuLaunches, OfBatchesApplyTheLimitsOfTheirPlan) {
  const DeviceTraits device = traits().of_batches();
  dfg_ = training_dfg("gat", blocks_, 40);
  PlanOptions how;
  how.hoist = false;
  const Plan plan = make_plan(dfg_, blocks_, how, {.validate = true, .device = &device});
  const Blocks other =
      Blocks::full(typed_weighted_graph({.vertices = 300, .edges = 2000, .hub_edges = 900, .types = 4, .seed = 9}), 2);
  const auto recorder = std::make_shared<Recorder>(typical_gpu());
  const auto batch = std::make_shared<GpuContext>(context_on(recorder, gpu_));
  with_bound(plan, other, batch, [&](Executor& executor) {
    const Plan bound = executor.plan_as_bound();
    Checker checker(bound, other);
    for (size_t k = 0; k < plan.kernels.size(); ++k) {
      recorder->take();
      if (!runs_on_host(plan.kernels[k], plan.dfg)) executor.time_kernel(k);
      checker.check(bound.kernels[k], recorder->take());
      for (const VariantChoice& v : plan.kernels[k].variants) {
        const VariantChoice now = record(bound.kernels[k], v.decision);
        if (now.variant == v.variant) {
          EXPECT_EQ(now.limit, v.limit) << v.decision;
        }
        if (v.decision == "algorithm") {
          EXPECT_EQ(v.variant, "the library's first");
        }
      }
    }
    EXPECT_GT(checker.seen["blocks of softmax"], 0);
    EXPECT_GT(checker.seen["pieces of rows"], 0);
    return 0;
  });
}

}  // namespace
}  // namespace nacre::test
