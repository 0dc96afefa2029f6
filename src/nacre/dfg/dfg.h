// Dfg: a model and its gradient as a data flow graph (WG1). Node i only reads nodes before it. A
// value has no number of rows of its own: the space it lives in gives that number, in most cases
// when a graph is bound.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nacre/dfg/op.h"
#include "nacre/tensor/dtype.h"

namespace nacre {

enum class SpaceKind : uint8_t { vertex, edge, type, param, pair_src, pair_dst, rows, halo, kind };

// Block l carries messages from vertex(l) over edge(l) to vertex(l+1). In full-graph training, all
// vertex spaces are the same vertices and all edge spaces the same edges. pair_src(l) and
// pair_dst(l) are the distinct (source, type) and (destination, type) pairs of the edges of block
// l, which are the unique values that rewriting extracts (WG5). rows(n) is a space of n rows,
// whatever the graph: the vertices of one kind, with features or embeddings of their own. On
// sampled blocks, of_kind(k) holds the vertices of vertex(0) that are of kind k, in their order. If
// several ranks share the graph, vertex(l) holds the own vertices of one rank, and halo(l) these
// and, after them, the vertices of other ranks that its edges start at.
struct Space {
  SpaceKind kind = SpaceKind::param;
  int layer = 0;  // 0 for type, param, rows and kind
  // The number of rows of a rows space, or the number of the kind of a kind space; 0 for all other
  // spaces.
  int64_t count = 0;

  static Space vertex(int layer) { return {SpaceKind::vertex, layer}; }
  static Space halo(int layer) { return {SpaceKind::halo, layer}; }
  static Space edge(int layer) { return {SpaceKind::edge, layer}; }
  static Space type() { return {SpaceKind::type, 0}; }
  static Space param() { return {SpaceKind::param, 0}; }
  static Space pair_src(int layer) { return {SpaceKind::pair_src, layer}; }
  static Space pair_dst(int layer) { return {SpaceKind::pair_dst, layer}; }
  static Space rows(int64_t count) { return {SpaceKind::rows, 0, count}; }
  static Space of_kind(int64_t kind) { return {SpaceKind::kind, 0, kind}; }
  // Returns whether the rows are vertices.
  bool on_vertices() const { return kind == SpaceKind::vertex || kind == SpaceKind::halo; }
  bool is_pair() const { return kind == SpaceKind::pair_src || kind == SpaceKind::pair_dst; }
  // Returns whether the rows have an edge type.
  bool is_typed() const { return kind == SpaceKind::edge || is_pair(); }
  friend auto operator<=>(const Space&, const Space&) = default;
};
// Returns "v0", "h0" (with the halo), "e2", "s0" and "d0" (pairs), "t", "p", "r9" (rows) or "k1"
// (of a kind).
std::string space_text(Space space);

using Dims = std::vector<int64_t>;

struct ValueType {
  Space space;
  Dims dims;  // dimensions of one row
  DType dtype = DType::f32;

  int64_t row_size() const;
  friend bool operator==(const ValueType&, const ValueType&) = default;
};
std::string type_text(const ValueType& type);  // for example "e0[4,64]" or "v2[]:i32"

using NodeRef = int;  // index of a node in its Dfg

enum class Init : uint8_t { zeros, ones, glorot, uniform_fan_in, constant };

struct Node {
  Op op = Op::input;
  std::vector<NodeRef> inputs;
  ValueType type;          // inferred by Dfg::add, except for leaves
  Attr attr = Attr::none;  // used by indexing operations and degree
  double alpha = 0;        // scale, slope, dropout share, epsilon or constant initial value
  // The whole numbers that some operations need. row_sum: {rank}; slice and slice_rows: {begin,
  // len}, or slice_rows to the vertices of a kind: {kind}; pad: {begin, total}; index along type:
  // {layer}, or {layer, 1} to pairs of sources, {layer, 2} to pairs of destinations; index along
  // src or dst to the pairs of that end: {1}; index along self to another layer than the next:
  // {layer}; index_add along src or self to h: {1}; to_columns: {layer, begin, len}; to_rows:
  // {layer, begin, len, total}.
  std::vector<int64_t> ints;
  std::string name;         // name of a leaf
  uint64_t salt = 0;        // used by dropout
  Init init = Init::zeros;  // used by param
  // Whether a param is kept in checkpoints but not trained (running statistics).
  bool state = false;

  friend bool operator==(const Node&, const Node&) = default;
};

class Dfg {
 public:
  explicit Dfg(std::string name = "dfg") : name_(std::move(name)) {}

  // Infers the type of the node, validates it and appends it. Throws UserError, which names the
  // operation and the types that do not fit.
  NodeRef add(Node node);

  const std::string& name() const { return name_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& operator[](NodeRef i) const { return nodes_[i]; }
  int size() const { return static_cast<int>(nodes_.size()); }

  // Gives a node a name as a result: "logits", "loss", "grad:NAME". The results keep the order in
  // which they were named.
  void set_output(const std::string& name, NodeRef node);
  const std::vector<std::pair<std::string, NodeRef>>& outputs() const { return outputs_; }
  NodeRef output(std::string_view name) const;       // throws InternalError if there is none
  NodeRef find_output(std::string_view name) const;  // -1 if there is none
  // After a training step, the state parameter `name` takes the value of `node`.
  void set_update(const std::string& name, NodeRef node);
  const std::vector<std::pair<std::string, NodeRef>>& updates() const { return updates_; }

  // Returns the leaf of that name; -1 if there is none.
  NodeRef find_leaf(std::string_view name) const;
  // Returns the number of blocks (message-passing layers) that the DFG spans.
  int num_layers() const;

  // Checks every invariant again, after parsing or rewriting. Throws InternalError.
  void validate() const;

  friend bool operator==(const Dfg&, const Dfg&) = default;

 private:
  std::string name_;
  std::vector<Node> nodes_;
  std::vector<std::pair<std::string, NodeRef>> outputs_;
  std::vector<std::pair<std::string, NodeRef>> updates_;
};

// Returns the type of the node's value, inferred from the types of its inputs. Throws UserError if
// they do not fit, or if one of them is not among the first `position` nodes of `dfg`.
ValueType infer_type(const Dfg& dfg, const Node& node, NodeRef position);
// Returns the type of a node that would be appended to `dfg`.
inline ValueType infer_type(const Dfg& dfg, const Node& node) { return infer_type(dfg, node, dfg.size()); }

// Returns the text form, with one node on each line; parse_dfg(print_dfg(d)) == d.
std::string print_dfg(const Dfg& dfg);
Dfg parse_dfg(std::string_view text);  // throws UserError with the line

// Appends the gradient of the scalar output `loss` to `dfg` and registers "grad:NAME" for every
// trainable parameter that the loss depends on. No gradient is computed for values that depend on
// no trainable parameter, so the first layer has no input gradient.
void differentiate(Dfg& dfg, std::string_view loss = "loss");

// Removes the nodes that no output or update needs; keeps the order.
Dfg prune(const Dfg& dfg);

}  // namespace nacre
