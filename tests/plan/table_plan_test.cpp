// The plans of the literature are tables, and none is special code. Tests which kernels follow a
// table, and what they do where it cannot hold.
#include <gtest/gtest.h>

#include "nacre/base/error.h"
#include "plan/plans.h"

namespace nacre::test {
namespace {

struct NamedTable {
  const char* name;
  const char* text;
  bool owns_dst;  // all edges of a destination are in one gTask
};

const std::vector<NamedTable> kNamed = {
    {"vertex-centric", "dst-id=1", true},
    {"edge-centric", "edge-id=1", false},
    {"neighbour grouping", "dst-id=1,edge-id=32", false},
    {"2-D", "src-id=64,dst-id=64", false},
    {"one relation of a destination", "dst-id=1,edge-type=1", false},
    {"equal degree", "dst-degree=1", true},
    {"similar degree", "dst-id=16,dst-degree=min", true},
    {"shared products", "src-id=64,edge-type=1", false},
};

PlanOptions by_table(const std::string& text) { return {.table = PartitionTable::parse(text)}; }

TEST(NamedTables, AreText) {
  for (const NamedTable& named : kNamed) {
    const PartitionTable table = PartitionTable::parse(named.text);
    EXPECT_EQ(PartitionTable::parse(table.text()), table) << named.name;
    EXPECT_EQ(table.owns(Location::dst), named.owns_dst) << named.name;
    EXPECT_EQ(table.mirrored().owns(Location::src), named.owns_dst) << named.name;
  }
}

// Messages with a product in them always run over gTasks of that table, mirrored where the work
// runs backwards.
TEST(NamedTables, CutTheEdgesOfRelations) {
  for (const NamedTable& named : kNamed) {
    const PartitionTable table = PartitionTable::parse(named.text);
    const Plan plan = plan_model(usual("rgcn"), by_table(named.text)).plan;
    const auto sums = kernels_of(plan, KernelKind::gtask);
    ASSERT_EQ(sums.size(), 3U) << named.name;
    int backwards = 0;
    for (const Kernel* k : sums) {
      const bool forward = k->direction == Direction::by_dst;
      EXPECT_EQ(k->table, forward ? table : table.mirrored()) << named.name;
      backwards += forward ? 0 : 1;
    }
    EXPECT_EQ(backwards, 1) << named.name;
    const auto grads = kernels_of(plan, KernelKind::gtask_grad);
    ASSERT_EQ(grads.size(), 2U) << named.name;
    for (const Kernel* k : grads) EXPECT_EQ(k->table, table) << named.name;
  }
}

// For plain sums, a table whose gTasks own their rows is what the row kernels do anyway; other
// tables give gTasks.
TEST(NamedTables, CutTheEdgesOfPlainSums) {
  for (const char* model : {"gcn", "sage", "gin", "gat"}) {
    const size_t as_usual = kernels_of(plan_model(usual(model)).plan, KernelKind::spmm).size();
    for (const NamedTable& named : kNamed) {
      const Plan plan = plan_model(usual(model), by_table(named.text)).plan;
      const size_t row_kernels = kernels_of(plan, KernelKind::spmm).size();
      const auto over_tasks = kernels_of(plan, KernelKind::gtask);
      if (named.owns_dst) {
        EXPECT_EQ(row_kernels, as_usual) << model << " " << named.name;
        EXPECT_TRUE(over_tasks.empty()) << model << " " << named.name;
      } else {
        EXPECT_EQ(row_kernels, 0U) << model << " " << named.name;
        EXPECT_GE(over_tasks.size(), as_usual) << model << " " << named.name;
      }
      for (const Kernel* k : over_tasks) {
        const PartitionTable& back = k->direction == Direction::by_dst ? k->table : k->table.mirrored();
        EXPECT_EQ(back.text(), PartitionTable::parse(named.text).text()) << model;
        EXPECT_NE(k->why.find("table splits rows"), std::string::npos) << k->why;
      }
    }
  }
}

TEST(NamedTables, BatchTheSequencesOfAnLstm) {
  const std::string standard = kernels_of(plan_model(usual("sage-lstm")).plan, KernelKind::lstm).front()->table.text();
  EXPECT_NE(standard.find("dst-degree=min"), std::string::npos) << standard;
  for (const NamedTable& named : kNamed) {
    const Plan plan = plan_model(usual("sage-lstm"), by_table(named.text)).plan;
    for (const KernelKind kind : {KernelKind::lstm, KernelKind::lstm_grad}) {
      ASSERT_EQ(kernels_of(plan, kind).size(), 2U);
      for (const Kernel* k : kernels_of(plan, kind)) {
        EXPECT_EQ(k->table.text(), named.owns_dst ? PartitionTable::parse(named.text).text() : standard) << named.name;
        EXPECT_EQ(k->why.empty(), named.owns_dst) << named.name << ": " << k->why;
      }
    }
  }
}

TEST(NamedTables, AreShownInTheText) {
  const PlannedModel m = plan_model(usual("rgcn"), by_table("src-id=64,edge-type=1"));
  const std::string text = plan_text(m.plan, m.blocks);
  EXPECT_NE(text.find("gTasks: " + PartitionTable::parse("src-id=64,edge-type=1").text()), std::string::npos) << text;
  EXPECT_NE(text.find("gTasks: " + PartitionTable::parse("dst-id=64,edge-type=1").text()), std::string::npos)
      << "mirrored\n"
      << text;
}

TEST(Tables, OpByOpHasNoTasks) {
  for (const NamedTable& named : kNamed) {
    PlanOptions how = by_table(named.text);
    how.fuse = false;
    const Plan plan = plan_model(usual("rgcn"), how).plan;
    EXPECT_TRUE(kernels_of(plan, KernelKind::gtask).empty());
    EXPECT_TRUE(kernels_of(plan, KernelKind::gtask_grad).empty());
  }
}

TEST(Tables, OfOneKernelGoBeforeTheTableOfAll) {
  const Plan usual_plan = plan_model(usual("rgcn")).plan;
  const std::string key = kernel_key(usual_plan.dfg, *kernels_of(usual_plan, KernelKind::gtask).front());
  EXPECT_EQ(key, "typed_matmul@layers.0.weight");
  PlanOptions how = by_table("dst-id=7");
  how.tables[key] = "src-id=9,edge-type=1";
  const Plan plan = plan_model(usual("rgcn"), how).plan;
  int own = 0;
  for (const Kernel* k : kernels_of(plan, KernelKind::gtask)) {
    const bool named = kernel_key(plan.dfg, *k) == key;
    own += named ? 1 : 0;
    const PartitionTable want = PartitionTable::parse(named ? "src-id=9,edge-type=1" : "dst-id=7");
    EXPECT_EQ(k->direction == Direction::by_dst ? k->table : k->table.mirrored(), want);
  }
  EXPECT_EQ(own, 1);
}

TEST(Tables, KernelKeysNameParameters) {
  const Plan lstm = plan_model(usual("sage-lstm")).plan;
  for (const KernelKind kind : {KernelKind::lstm, KernelKind::lstm_grad}) {
    std::vector<std::string> keys;
    for (const Kernel* k : kernels_of(lstm, kind)) keys.push_back(kernel_key(lstm.dfg, *k));
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(keys, (std::vector<std::string>{"lstm@layers.0.lstm.weight_hh", "lstm@layers.1.lstm.weight_hh"}))
        << "forward and backward alike";
  }
  const Plan rgcn = plan_model(usual("rgcn")).plan;
  for (const Kernel* k : kernels_of(rgcn, KernelKind::gtask_grad)) {
    EXPECT_TRUE(kernel_key(rgcn.dfg, *k).starts_with("typed_weight_grad@layers.")) << kernel_key(rgcn.dfg, *k);
  }
}

TEST(Tables, EveryModelPlansUnderEveryTable) {
  for (const ModelCase& c : model_cases()) {
    for (const NamedTable& named : kNamed) {
      for (const bool rewrite : {true, false}) {
        PlanOptions how = by_table(named.text);
        how.rewrite = rewrite;
        const PlannedModel m = plan_model(c.options, how);
        EXPECT_NO_THROW(validate(m.plan, m.blocks)) << c.name << " " << named.name;
      }
    }
  }
}

}  // namespace
}  // namespace nacre::test
