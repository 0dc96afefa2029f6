#include "nacre/gtask/attributes.h"

#include <fmt/format.h>

#include <algorithm>

namespace nacre {
namespace {

// Which attributes one operation follows, and which ones shape its work.
struct Use {
  bool src = false;
  bool dst = false;
  bool type = false;
  bool edge = false;      // reads or writes rows by the number of the edge
  bool sequence = false;  // walks the edges of a destination one after another
  bool edges = false;     // has a row for every edge
};

Use follow(Attr attr) {
  switch (attr) {
    case Attr::src:
      return {.src = true};
    case Attr::dst:
      return {.dst = true};
    case Attr::type:
      return {.type = true};
    case Attr::pair_src:
      return {.src = true, .type = true};
    case Attr::pair_dst:
      return {.dst = true, .type = true};
    default:
      return {};  // Attr::self follows no edge
  }
}

Use use_of(const Dfg& dfg, const Node& node) {
  const bool on_edges = node.type.space.kind == SpaceKind::edge;
  Use use;
  switch (node.op) {
    case Op::lstm:
    case Op::lstm_grad_z:
    case Op::lstm_grad_w: {
      const Node& z = dfg[node.inputs[node.op == Op::lstm ? 0 : 1]];
      use.src = z.type.space.on_vertices();
      use.edge = !use.src;
      use.dst = true;
      use.sequence = true;
      break;
    }
    case Op::typed_matmul:
    case Op::typed_matmul_t:
    case Op::typed_weight_grad:
      use.type = true;
      break;
    case Op::input:
      use.edge = on_edges;
      break;
    case Op::index_argmax:
    case Op::index_take_max:
      use = follow(node.attr);
      use.edge = true;
      break;
    default:
      if (op_info(node.op).op_class == OpClass::indexing) use = follow(node.attr);
      break;
  }
  use.edges = on_edges || use.sequence;
  return use;
}

struct RoleOf {
  bool Use::*followed;
  bool Use::*shapes;  // null if the attribute shapes no work
};

RoleOf role_of(Location location, Attribute attribute) {
  if (attribute == Attribute::type) return {&Use::type, nullptr};
  if (attribute == Attribute::degree) return {nullptr, location == Location::dst ? &Use::sequence : nullptr};
  if (location == Location::edge) return {&Use::edge, &Use::edges};
  return {location == Location::src ? &Use::src : &Use::dst, nullptr};
}

bool used(const std::vector<AttributeRole>& roles, Location location, Attribute attribute) {
  return std::any_of(roles.begin(), roles.end(), [&](const AttributeRole& r) {
    return r.location == location && r.attribute == attribute && r.role != Role::unused;
  });
}

bool names_only(const PartitionTable& table, const std::vector<AttributeRole>& roles) {
  return std::all_of(roles.begin(), roles.end(), [&](const AttributeRole& r) {
    return r.role != Role::unused || table.free(r.location, r.attribute);
  });
}

constexpr const char* kAlways[] = {
    "dst-id=1",  "edge-id=1", "dst-id=1,edge-id=32", "dst-id=64",  "src-id=64,dst-id=64",   "edge-id=256",
    "src-id=64", "src-id=1",  "dst-id=16",           "dst-id=256", "src-id=256,dst-id=256", "edge-id=1024"};
constexpr const char* kTyped[] = {
    "dst-id=1,edge-type=1",   "src-id=64,edge-type=1",   "src-id=256,edge-type=1", "dst-id=64,edge-type=1",
    "dst-id=256,edge-type=1", "dst-id=1024,edge-type=1", "edge-type=1,edge-id=64", "edge-type=1"};
constexpr const char* kSequences[] = {"dst-id=8,dst-degree=min", "dst-id=16,dst-degree=min", "dst-id=32,dst-degree=min",
                                      "dst-id=64,dst-degree=min", "dst-degree=1"};

}  // namespace

std::vector<AttributeRole> attribute_roles(const Dfg& dfg) {
  std::vector<Use> uses;
  for (const Node& node : dfg.nodes()) uses.push_back(use_of(dfg, node));
  const auto nodes_with = [&](bool Use::*flag) {
    std::vector<NodeRef> nodes;
    for (size_t i = 0; flag != nullptr && i < uses.size(); ++i) {
      if (uses[i].*flag) nodes.push_back(static_cast<NodeRef>(i));
    }
    return nodes;
  };
  std::vector<AttributeRole> roles;
  for (int l = 0; l < kLocations; ++l) {
    for (int a = 0; a < kAttributes; ++a) {
      AttributeRole role{static_cast<Location>(l), static_cast<Attribute>(a), Role::unused, {}};
      if (!entry_exists(role.location, role.attribute)) continue;
      const RoleOf flags = role_of(role.location, role.attribute);
      role.nodes = nodes_with(flags.followed);
      if (!role.nodes.empty()) {
        role.role = Role::indexing;
      } else if (!nodes_with(flags.shapes).empty()) {
        role.role = Role::inherent;
      }
      roles.push_back(std::move(role));
    }
  }
  return roles;
}

std::string attribute_text(const std::vector<AttributeRole>& roles) {
  constexpr const char* names[] = {"indexing", "inherent", "unused"};
  std::string text;
  for (const AttributeRole& role : roles) {
    text +=
        fmt::format("  {:<12} {:<8}", entry_name(role.location, role.attribute), names[static_cast<size_t>(role.role)]);
    for (const NodeRef node : role.nodes) text += fmt::format(" %{}", node);
    text += '\n';
  }
  return text;
}

std::vector<PartitionTable> candidate_tables(const Dfg& dfg) {
  const std::vector<AttributeRole> roles = attribute_roles(dfg);
  std::vector<PartitionTable> tables;
  const auto propose = [&](const auto& texts) {
    for (const char* text : texts) {
      const PartitionTable table = PartitionTable::parse(text);
      if (names_only(table, roles)) tables.push_back(table);
    }
  };
  propose(kAlways);
  if (used(roles, Location::edge, Attribute::type)) propose(kTyped);
  if (used(roles, Location::dst, Attribute::degree)) propose(kSequences);
  if (tables.empty()) tables.emplace_back();
  return tables;
}

}  // namespace nacre
