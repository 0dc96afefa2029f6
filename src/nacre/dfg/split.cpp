#include "nacre/dfg/split.h"

#include <algorithm>
#include <map>
#include <set>

#include "nacre/base/error.h"

namespace nacre {
namespace {

// Stands for the stage of weights and of values computed from weights only. Every stage that reads
// such a value computes it again.
constexpr int kAnywhere = -2;

int stage_of(const Node& node) {
  switch (node.type.space.kind) {
    case SpaceKind::vertex:
    case SpaceKind::halo:
      return node.type.space.layer - 1;
    case SpaceKind::edge:
    case SpaceKind::pair_src:
    case SpaceKind::pair_dst:
      return node.type.space.layer;
    case SpaceKind::type:
    case SpaceKind::param:
    case SpaceKind::rows:
    case SpaceKind::kind:
      return kAnywhere;
  }
  return kAnywhere;
}

bool is_leaf(const Node& node) { return op_info(node.op).op_class == OpClass::leaf; }

class Splitter {
 public:
  explicit Splitter(const Dfg& dfg) : dfg_(dfg) {
    NACRE_CHECK(dfg.updates().empty(), "only a forward pass can be cut into layers");
    for (const auto& [name, node] : dfg.outputs()) {
      NACRE_CHECK(!name.starts_with("grad:"), "only a forward pass can be cut into layers");
      named_.emplace(node, name);
    }
    find_carried();
  }

  std::vector<LayerStage> run() {
    std::vector<LayerStage> stages;
    for (int layer = -1; layer < dfg_.num_layers(); ++layer) {
      LayerStage stage = build(layer);
      if (!stage.writes.empty()) stages.push_back(std::move(stage));
    }
    return stages;
  }

 private:
  // Finds the values that one stage computes and a later one reads.
  void find_carried() {
    for (const Node& node : dfg_.nodes()) {
      for (const NodeRef in : node.inputs) {
        const int from = stage_of(dfg_[in]);
        if (from != kAnywhere && stage_of(node) != kAnywhere && from != stage_of(node) && !is_leaf(dfg_[in]))
          carried_.insert(in);
      }
    }
    for (const auto& [node, name] : named_) carried_.insert(node);
  }

  std::string name_of(NodeRef node) const {
    const auto found = named_.find(node);
    return found != named_.end() ? found->second : std::to_string(node);
  }

  LayerStage build(int layer) {
    LayerStage stage;
    stage.layer = layer;
    stage.dfg = Dfg(dfg_.name());
    moved_.clear();
    for (const NodeRef node : carried_) {
      if (stage_of(dfg_[node]) != layer) continue;
      const NodeRef at = copy(node, stage);
      stage.dfg.set_output(name_of(node), at);
      stage.writes.push_back({name_of(node), dfg_[node].type.dims});
    }
    return stage;
  }

  NodeRef copy(NodeRef i, LayerStage& stage) {
    if (const auto found = moved_.find(i); found != moved_.end()) return found->second;
    Node node = dfg_[i];
    const int home = stage_of(node);
    if (home != kAnywhere && home != stage.layer && !is_leaf(node)) {
      stage.reads.push_back({name_of(i), node.type.dims});
      node = Node{.op = Op::input, .type = node.type, .name = "value." + name_of(i)};
    }
    for (NodeRef& in : node.inputs) in = copy(in, stage);
    Space& space = node.type.space;
    if (home != kAnywhere && stage.layer > 0) space.layer -= stage.layer;
    if (node.op == Op::index && node.attr == Attr::type) node.ints[0] = 0;
    return moved_[i] = stage.dfg.add(std::move(node));
  }

  const Dfg& dfg_;
  std::map<NodeRef, std::string> named_;
  std::set<NodeRef> carried_;
  std::map<NodeRef, NodeRef> moved_;
};

}  // namespace

std::vector<LayerStage> split_layers(const Dfg& dfg) { return Splitter(dfg).run(); }

}  // namespace nacre
