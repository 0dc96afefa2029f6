#include "nacre/dfg/dfg.h"

#include <algorithm>
#include <set>

#include "nacre/base/error.h"
#include "nacre/dfg/node_vector.h"

namespace nacre {

std::string space_text(Space space) {
  switch (space.kind) {
    case SpaceKind::vertex:
      return "v" + std::to_string(space.layer);
    case SpaceKind::halo:
      return "h" + std::to_string(space.layer);
    case SpaceKind::edge:
      return "e" + std::to_string(space.layer);
    case SpaceKind::pair_src:
      return "s" + std::to_string(space.layer);
    case SpaceKind::pair_dst:
      return "d" + std::to_string(space.layer);
    case SpaceKind::type:
      return "t";
    case SpaceKind::param:
      return "p";
    case SpaceKind::rows:
      return "r" + std::to_string(space.count);
    case SpaceKind::kind:
      return "k" + std::to_string(space.count);
  }
  return "?";
}

int64_t ValueType::row_size() const {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

std::string type_text(const ValueType& type) {
  std::string text = space_text(type.space) + "[";
  for (size_t i = 0; i < type.dims.size(); ++i) text += (i ? "," : "") + std::to_string(type.dims[i]);
  text += "]";
  if (type.dtype != DType::f32) text += ":" + std::string(dtype_name(type.dtype));
  return text;
}

NodeRef Dfg::add(Node node) {
  node.type = infer_type(*this, node, size());
  if (node.op == Op::input || node.op == Op::param) {
    if (find_leaf(node.name) >= 0)
      throw UserError("model", "two parameters or inputs are named '" + node.name + "'",
                      "give each of them a name of its own");
  }
  nodes_.push_back(std::move(node));
  return size() - 1;
}

void Dfg::set_output(const std::string& name, NodeRef node) {
  NACRE_CHECK(node >= 0 && node < size(), "an output refers to a node that does not exist");
  for (auto& [key, value] : outputs_) {
    if (key == name) {
      value = node;
      return;
    }
  }
  outputs_.emplace_back(name, node);
}

NodeRef Dfg::find_output(std::string_view name) const {
  for (const auto& [key, value] : outputs_) {
    if (key == name) return value;
  }
  return -1;
}

NodeRef Dfg::output(std::string_view name) const {
  const NodeRef node = find_output(name);
  NACRE_CHECK(node >= 0, "the DFG has no output '" + std::string(name) + "'");
  return node;
}

void Dfg::set_update(const std::string& name, NodeRef node) {
  const NodeRef leaf = find_leaf(name);
  NACRE_CHECK(leaf >= 0 && (*this)[leaf].state, "'" + name + "' is not a state parameter");
  NACRE_CHECK(node >= 0 && node < size(), "an update refers to a node that does not exist");
  NACRE_CHECK((*this)[leaf].type == (*this)[node].type, "the update of '" + name + "' has another type");
  updates_.emplace_back(name, node);
}

NodeRef Dfg::find_leaf(std::string_view name) const {
  for (int i = 0; i < size(); ++i) {
    const Node& n = (*this)[i];
    if ((n.op == Op::input || n.op == Op::param) && n.name == name) return i;
  }
  return -1;
}

int Dfg::num_layers() const {
  int layers = 0;
  for (const Node& n : nodes_) {
    if (n.type.space.on_vertices()) layers = std::max(layers, n.type.space.layer);
    if (n.type.space.is_typed()) layers = std::max(layers, n.type.space.layer + 1);
  }
  return layers;
}

void Dfg::validate() const {
  std::set<std::string_view> names;
  for (NodeRef i = 0; i < size(); ++i) {
    const Node& node = (*this)[i];
    const auto at = [&] { return "node " + std::to_string(i); };
    try {
      NACRE_CHECK(infer_type(*this, node, i) == node.type,
                  at() + " carries a type that does not follow from its inputs");
    } catch (const UserError& error) {
      throw InternalError(__FILE__, __LINE__, at() + ": " + error.what());
    }
    if (node.op == Op::input || node.op == Op::param)
      NACRE_CHECK(names.insert(node.name).second, at() + ": two leaves are named '" + node.name + "'");
  }
  for (const auto& [name, node] : outputs_)
    NACRE_CHECK(node >= 0 && node < size(), "output '" + name + "' refers to a node that does not exist");
  for (const auto& [name, node] : updates_)
    NACRE_CHECK(node >= 0 && node < size(), "update '" + name + "' refers to a node that does not exist");
}

Dfg prune(const Dfg& dfg) {
  NodeVector<char> needed(dfg, 0);
  for (const auto& [name, node] : dfg.outputs()) needed[node] = 1;
  for (const auto& [name, node] : dfg.updates()) {
    needed[node] = 1;
    needed[dfg.find_leaf(name)] = 1;
  }
  for (int i = dfg.size() - 1; i >= 0; --i) {
    if (!needed[i]) continue;
    for (const NodeRef in : dfg[i].inputs) needed[in] = 1;
  }
  Dfg out(dfg.name());
  NodeVector<NodeRef> moved(dfg, -1);
  for (int i = 0; i < dfg.size(); ++i) {
    if (!needed[i]) continue;
    Node node = dfg[i];
    for (NodeRef& in : node.inputs) in = moved[in];
    moved[i] = out.add(std::move(node));
  }
  for (const auto& [name, node] : dfg.outputs()) out.set_output(name, moved[node]);
  for (const auto& [name, node] : dfg.updates()) out.set_update(name, moved[node]);
  return out;
}

}  // namespace nacre
