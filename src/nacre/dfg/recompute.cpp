#include "nacre/dfg/recompute.h"

#include <algorithm>
#include <map>

#include "nacre/base/error.h"

namespace nacre {
namespace {

bool is_leaf(const Node& node) { return op_info(node.op).op_class == OpClass::leaf; }

bool is_gradient(const std::string& output) { return output.starts_with("grad:"); }

// Returns whether a value is a second result of a forward kernel, which is made together with the
// first one.
bool made_beside_forward(Op op) { return op == Op::index_argmax || op == Op::lstm_gates; }

// Returns whether computing a node walks edges. Indexing operations do, except index and those
// along self. Operations on rows with an edge type do, except reshape and elementwise ones.
bool walks_edges(const Node& node) {
  const OpInfo& info = op_info(node.op);
  if (node.op == Op::index || node.op == Op::reshape || node.attr == Attr::self) return false;
  return info.op_class == OpClass::indexing || (node.type.space.is_typed() && !info.elementwise);
}

class Finder {
 public:
  explicit Finder(const Dfg& dfg) : dfg_(dfg) {
    mark_forward();
    mark_constants();
    find_bases();
    read_.assign(dfg_, 0);
    for (NodeRef i = 0; i < dfg_.size(); ++i) {
      if (forward(i)) continue;
      for (const NodeRef in : dfg_[i].inputs) {
        if (forward(in)) read_[base(in)] = 1;
      }
    }
    for (NodeRef i = 0; i < dfg_.size(); ++i) {
      const auto& inputs = dfg_[i].inputs;
      const bool below =
          std::any_of(inputs.begin(), inputs.end(), [&](NodeRef in) { return !kept(in) && over_edges_[in] != 0; });
      over_edges_.push_back(below || walks_edges(dfg_[i]) ? 1 : 0);
    }
  }

  bool forward(NodeRef i) const { return forward_[i] != 0; }
  // Returns the value that holds the rows of node i. Views of a value and rows gathered from it are
  // seldom in memory themselves.
  NodeRef base(NodeRef i) const { return base_[i]; }
  bool has_gradients() const {
    return std::any_of(dfg_.outputs().begin(), dfg_.outputs().end(),
                       [](const auto& o) { return is_gradient(o.first); });
  }
  // Returns whether a value is in memory for the backward pass whatever is recomputed: leaves,
  // values that never change, small values, and values that gradients read.
  bool kept(NodeRef i) const {
    const SpaceKind space = dfg_[i].type.space.kind;
    return is_leaf(dfg_[i]) || is_received(i) || constant_[i] || space == SpaceKind::param ||
           space == SpaceKind::type || read_[base(i)];
  }

  // Returns whether other ranks have sent the value. Computing it again would make all ranks send
  // again.
  bool is_received(NodeRef i) const { return op_info(dfg_[i].op).op_class == OpClass::communication; }

  std::vector<Recomputable> candidates() const {
    std::vector<Recomputable> found;
    std::map<std::string, int> seen;
    for (NodeRef i = 0; i < dfg_.size(); ++i) {
      if (!is_candidate(i)) continue;
      Recomputable r{std::string(op_info(dfg_[i].op).name) + "@" + nearest_parameter(i), i, over_edges_[i] != 0};
      const int count = ++seen[r.name];
      if (count > 1) r.name += "#" + std::to_string(count);
      found.push_back(std::move(r));
    }
    return found;
  }

 private:
  void mark_forward() {
    forward_.assign(dfg_, 0);
    for (const auto& [name, node] : dfg_.outputs()) {
      if (!is_gradient(name)) forward_[node] = 1;
    }
    for (const auto& [name, node] : dfg_.updates()) forward_[node] = 1;
    for (NodeRef i = dfg_.size() - 1; i >= 0; --i) {
      if (!forward(i)) continue;
      for (const NodeRef in : dfg_[i].inputs) forward_[in] = 1;
    }
    for (NodeRef i = 0; i < dfg_.size(); ++i) {
      const Node& node = dfg_[i];
      const bool from_forward =
          std::all_of(node.inputs.begin(), node.inputs.end(), [&](NodeRef in) { return forward(in); });
      if (made_beside_forward(node.op) && from_forward) forward_[i] = 1;
    }
  }

  void mark_constants() {
    constant_.assign(dfg_, 0);
    for (NodeRef i = 0; i < dfg_.size(); ++i) {
      const Node& node = dfg_[i];
      const bool changes = node.op == Op::param || node.op == Op::dropout;
      constant_[i] = !changes && std::all_of(node.inputs.begin(), node.inputs.end(),
                                             [&](NodeRef in) { return constant_[in] != 0; });
    }
  }

  void find_bases() {
    for (NodeRef i = 0; i < dfg_.size(); ++i) {
      const Node& node = dfg_[i];
      const bool view = node.op == Op::reshape || node.op == Op::index;
      base_.push_back(view ? base_[node.inputs[0]] : i);
    }
  }

  bool is_candidate(NodeRef i) const {
    const SpaceKind space = dfg_[i].type.space.kind;
    return forward(i) && base(i) == i && read_[i] && !is_leaf(dfg_[i]) && !is_received(i) && !constant_[i] &&
           space != SpaceKind::param && space != SpaceKind::type;
  }

  // Returns the name of the parameter nearest to node i. The search goes level by level, so that a
  // layer's own parameters come before those of the layers below it.
  std::string nearest_parameter(NodeRef i) const {
    std::vector<NodeRef> level{i};
    while (!level.empty()) {
      std::vector<NodeRef> next;
      for (const NodeRef at : level) {
        for (const NodeRef in : dfg_[at].inputs) {
          if (dfg_[in].op == Op::param) return dfg_[in].name;
          if (std::find(next.begin(), next.end(), in) == next.end()) next.push_back(in);
        }
      }
      level = std::move(next);
    }
    return "input";
  }

  const Dfg& dfg_;
  NodeVector<char> forward_, constant_, read_;
  NodeVector<char> over_edges_;  // whether computing the value again would walk edges
  NodeVector<NodeRef> base_;
};

class Rewriter {
 public:
  Rewriter(const Dfg& dfg, const std::set<std::string>& names) : dfg_(dfg), finder_(dfg) {
    size_t found = 0;
    for (const Recomputable& r : finder_.candidates()) {
      if (!names.contains(r.name)) continue;
      wanted_.insert(r.node);
      ++found;
    }
    if (found < names.size() && finder_.has_gradients())
      throw UserError("plan", "names values that this model does not have",
                      "make the plan again with nacre plan --output FILE");
  }

  Recomputed run() {
    Recomputed out{Dfg(dfg_.name()), {}};
    for (NodeRef i = 0; i < dfg_.size(); ++i) {
      Node node = dfg_[i];
      for (NodeRef& in : node.inputs) in = finder_.forward(i) ? moved_[in] : operand(in, out);
      moved_.push_back(add(std::move(node), false, out));
    }
    for (const auto& [name, node] : dfg_.outputs()) out.dfg.set_output(name, moved_[node]);
    for (const auto& [name, node] : dfg_.updates()) out.dfg.set_update(name, moved_[node]);
    return out;
  }

 private:
  static NodeRef add(Node node, bool again, Recomputed& out) {
    out.again.push_back(again ? 1 : 0);
    return out.dfg.add(std::move(node));
  }

  bool wanted(NodeRef i) const { return finder_.forward(i) && wanted_.contains(finder_.base(i)); }
  bool cloned(NodeRef i) const { return wanted(i) || !finder_.kept(i); }

  // Returns what a node of the backward pass reads instead of node i. The values below it are
  // cloned in their original order, so that the clones become the same kernels as the originals,
  // with the same rounding.
  NodeRef operand(NodeRef i, Recomputed& out) {
    if (!wanted(i)) return moved_[i];
    std::set<NodeRef> missing;
    collect(i, missing);
    for (const NodeRef m : missing) {
      Node node = dfg_[m];
      for (NodeRef& in : node.inputs) in = cloned(in) ? clones_.at(in) : moved_[in];
      clones_[m] = add(std::move(node), true, out);
    }
    return clones_.at(i);
  }

  void collect(NodeRef i, std::set<NodeRef>& missing) const {
    if (!cloned(i) || clones_.contains(i) || !missing.insert(i).second) return;
    for (const NodeRef in : dfg_[i].inputs) collect(in, missing);
  }

  const Dfg& dfg_;
  Finder finder_;
  std::set<NodeRef> wanted_;
  NodeVector<NodeRef> moved_;
  std::map<NodeRef, NodeRef> clones_;
};

}  // namespace

std::vector<Recomputable> find_recomputable(const Dfg& dfg) { return Finder(dfg).candidates(); }

Recomputed recompute(const Dfg& dfg, const std::set<std::string>& names) { return Rewriter(dfg, names).run(); }

}  // namespace nacre
