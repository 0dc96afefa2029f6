#include "nacre/gtask/attributes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "nacre/model/model.h"
#include "support/op_cases.h"

namespace nacre::test {
namespace {

Dfg build(const std::string& model, const std::string& aggregator = "") {
  ModelOptions options;
  options.model = model;
  options.in_dim = 6;
  options.hidden = 8;
  options.out_dim = 3;
  options.aggregator = aggregator;
  options.num_edge_types = 4;
  Dfg dfg = build_model(options);
  differentiate(dfg);
  return dfg;
}

using Roles = std::map<std::string, AttributeRole>;

Roles roles_of(const Dfg& dfg) {
  Roles roles;
  for (const AttributeRole& role : attribute_roles(dfg)) {
    roles.emplace(entry_name(role.location, role.attribute), role);
  }
  return roles;
}

std::set<std::string> candidates(const Dfg& dfg) {
  std::set<std::string> texts;
  for (const PartitionTable& table : candidate_tables(dfg)) {
    EXPECT_TRUE(texts.insert(table.text()).second) << "proposed twice: " << table.text();
  }
  return texts;
}

TEST(Attributes, ListsThoseThatExistInTableOrder) {
  std::vector<std::string> names;
  for (const AttributeRole& role : attribute_roles(build("gcn"))) {
    names.push_back(entry_name(role.location, role.attribute));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"src-id", "src-degree", "dst-id", "dst-degree", "edge-id", "edge-type"}));
}

TEST(Attributes, FindsRolesFromTheModel) {
  using enum Role;
  struct Case {
    const char* model;
    const char* aggregator;
    Role ids, dst_degree, edge_type;
  };
  const Case cases[] = {
      {"gcn", "", indexing, unused, unused},     {"gat", "", indexing, unused, unused},
      {"sage", "max", indexing, unused, unused}, {"sage", "lstm", indexing, inherent, unused},
      {"rgcn", "", indexing, unused, indexing},  {"mlp", "", unused, unused, unused},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.model) + " " + c.aggregator);
    const Roles roles = roles_of(build(c.model, c.aggregator));
    EXPECT_EQ(roles.at("src-id").role, c.ids);
    EXPECT_EQ(roles.at("dst-id").role, c.ids);
    EXPECT_EQ(roles.at("edge-id").role == unused, c.ids == unused);
    EXPECT_EQ(roles.at("dst-degree").role, c.dst_degree);
    EXPECT_EQ(roles.at("src-degree").role, unused);
    EXPECT_EQ(roles.at("edge-type").role, c.edge_type);
    for (const auto& [name, role] : roles) EXPECT_EQ(role.nodes.empty(), role.role != indexing) << name;
  }
}

// Returns the roles of one operation on fresh inputs.
Roles roles_of_op(Node node, const std::vector<ValueType>& inputs) {
  Net net;
  for (const ValueType& type : inputs) node.inputs.push_back(net.input(type));
  net.dfg.add(std::move(node));
  return roles_of(net.dfg);
}

std::string followed(const Roles& roles) {
  std::string text;
  for (const auto& [name, role] : roles) {
    if (role.role == Role::indexing) text += (text.empty() ? "" : " ") + name;
  }
  return text;
}

TEST(Attributes, EveryIndexingOperationFollowsItsOwn) {
  const ValueType argmax = as(DType::i32, v(1, {3}));
  const ValueType gates = v(0, {8});
  const ValueType w = p({2, 8});
  EXPECT_EQ(followed(roles_of_op({.op = Op::index, .attr = Attr::src}, {v(0)})), "src-id");
  EXPECT_EQ(followed(roles_of_op({.op = Op::index, .attr = Attr::dst}, {v(1)})), "dst-id");
  EXPECT_EQ(followed(roles_of_op({.op = Op::index, .attr = Attr::self}, {v(0)})), "");
  EXPECT_EQ(followed(roles_of_op({.op = Op::index, .attr = Attr::type, .ints = {0}}, {t()})), "edge-type");
  EXPECT_EQ(followed(roles_of_op({.op = Op::index_add, .attr = Attr::dst}, {e(0)})), "dst-id edge-id");
  EXPECT_EQ(followed(roles_of_op({.op = Op::index_mean, .attr = Attr::dst}, {e(0)})), "dst-id edge-id");
  EXPECT_EQ(followed(roles_of_op({.op = Op::edge_softmax, .attr = Attr::dst}, {e(0)})), "dst-id edge-id");
  EXPECT_EQ(followed(roles_of_op({.op = Op::index_take_max, .attr = Attr::dst}, {v(1, {3}), argmax})),
            "dst-id edge-id");
  EXPECT_EQ(followed(roles_of_op({.op = Op::typed_matmul}, {e(0, {3}), t({3, 2})})), "edge-id edge-type");
  EXPECT_EQ(followed(roles_of_op({.op = Op::index, .attr = Attr::pair_src}, {{Space::pair_src(0), {3}}})),
            "edge-type src-id");
  EXPECT_EQ(followed(roles_of_op({.op = Op::index, .attr = Attr::pair_dst}, {{Space::pair_dst(0), {3}}})),
            "dst-id edge-type");
  // A sequence reads sources or edges.
  EXPECT_EQ(followed(roles_of_op({.op = Op::lstm}, {gates, w})), "dst-id src-id");
  EXPECT_EQ(followed(roles_of_op({.op = Op::lstm}, {e(0, {8}), w})), "dst-id edge-id");
  EXPECT_EQ(followed(roles_of_op({.op = Op::lstm_grad_z}, {v(1, {2}), gates, w})), "dst-id src-id");
  EXPECT_EQ(followed(roles_of_op({.op = Op::lstm_grad_w}, {v(1, {2}), gates, w})), "dst-id src-id");
}

TEST(Attributes, EdgesThatAreOnlyWalkedAreInherent) {
  EXPECT_EQ(roles_of_op({.op = Op::index, .attr = Attr::src}, {v(0)}).at("edge-id").role, Role::inherent);
  EXPECT_EQ(roles_of_op({.op = Op::lstm}, {v(0, {8}), p({2, 8})}).at("edge-id").role, Role::inherent);
  EXPECT_EQ(roles_of_op({.op = Op::relu}, {v(0)}).at("edge-id").role, Role::unused);
}

TEST(Attributes, NamesTheOperationsThatFollow) {
  Net net;
  const NodeRef x = net.input(v(0, {8}));
  const NodeRef edges = net.dfg.add({.op = Op::index, .inputs = {x}, .attr = Attr::src});
  const NodeRef sums = net.dfg.add({.op = Op::index_add, .inputs = {edges}, .attr = Attr::dst});
  const NodeRef back = net.dfg.add({.op = Op::index, .inputs = {sums}, .attr = Attr::dst});
  const Roles roles = roles_of(net.dfg);
  EXPECT_EQ(roles.at("src-id").nodes, std::vector<NodeRef>{edges});
  EXPECT_EQ(roles.at("dst-id").nodes, (std::vector<NodeRef>{sums, back}));
}

TEST(Attributes, TextHasALineEach) {
  const std::string text = attribute_text(attribute_roles(build("rgcn")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6);
  EXPECT_NE(text.find("edge-type    indexing %"), std::string::npos) << text;
  EXPECT_NE(text.find("src-degree   unused"), std::string::npos) << text;
}

TEST(CandidateTables, DependOnTheModel) {
  const std::set<std::string> gcn = candidates(build("gcn"));
  for (const char* text : {"dst-id=1", "edge-id=1", "dst-id=1,edge-id=32", "dst-id=64", "src-id=64,dst-id=64",
                           "edge-id=256", "src-id=64"}) {
    EXPECT_TRUE(gcn.contains(text)) << text;
  }
  const std::set<std::string> rgcn = candidates(build("rgcn"));
  EXPECT_TRUE(std::includes(rgcn.begin(), rgcn.end(), gcn.begin(), gcn.end()));
  for (const char* text :
       {"dst-id=1,edge-type=1", "src-id=64,edge-type=1", "src-id=256,edge-type=1", "dst-id=64,edge-type=1",
        "dst-id=256,edge-type=1", "dst-id=1024,edge-type=1", "edge-id=64,edge-type=1", "edge-type=1"}) {
    EXPECT_TRUE(rgcn.contains(text)) << text;
    EXPECT_FALSE(gcn.contains(text)) << text;
  }
  const std::set<std::string> lstm = candidates(build("sage", "lstm"));
  for (const char* text : {"dst-id=8,dst-degree=min", "dst-id=16,dst-degree=min", "dst-id=32,dst-degree=min",
                           "dst-id=64,dst-degree=min", "dst-degree=1"}) {
    EXPECT_TRUE(lstm.contains(text)) << text;
    EXPECT_FALSE(gcn.contains(text)) << text;
  }
  EXPECT_EQ(candidates(build("mlp")), std::set<std::string>{""});
}

TEST(CandidateTables, NameUsedAttributesOnly) {
  for (const ModelInfo* info : model_list()) {
    const auto aggregators = info->aggregators.empty() ? std::vector<std::string>{""} : info->aggregators;
    for (const std::string& aggregator : aggregators) {
      const Dfg dfg = build(info->name, aggregator);
      const std::vector<PartitionTable> tables = candidate_tables(dfg);
      if (info->name != "mlp") {
        EXPECT_GE(tables.size(), 12U) << info->name;
        EXPECT_LE(tables.size(), 25U) << info->name;
      }
      for (const AttributeRole& role : attribute_roles(dfg)) {
        if (role.role != Role::unused) continue;
        for (const PartitionTable& table : tables) {
          EXPECT_TRUE(table.free(role.location, role.attribute)) << info->name << " by " << table.text();
        }
      }
    }
  }
}

}  // namespace
}  // namespace nacre::test
