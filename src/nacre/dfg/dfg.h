// Dfg: a model and its gradient as a data flow graph (WG1). Node i only reads nodes before it. A value has no number of
// rows: that comes from the space it lives in, mostly when a graph is bound.
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

enum class SpaceKind : uint8_t { vertex, edge, type, param, pair_src, pair_dst, rows };

// Block l carries messages from vertex(l) over edge(l) to vertex(l+1). In full-graph training all vertex spaces are the
// same vertices and all edge spaces the same edges. pair_src(l) and pair_dst(l) are the distinct (source, type) and
// (destination, type) pairs of block l's edges: the unique values that rewriting extracts (WG5). rows(n) is n rows,
// whatever the graph: the vertices of one kind, with features or embeddings of their own.
struct Space {
  SpaceKind kind = SpaceKind::param;
  int layer = 0;      // 0 for type, param and rows
  int64_t count = 0;  // of rows; 0 elsewhere: the graph says

  static Space vertex(int layer) { return {SpaceKind::vertex, layer}; }
  static Space edge(int layer) { return {SpaceKind::edge, layer}; }
  static Space type() { return {SpaceKind::type, 0}; }
  static Space param() { return {SpaceKind::param, 0}; }
  static Space pair_src(int layer) { return {SpaceKind::pair_src, layer}; }
  static Space pair_dst(int layer) { return {SpaceKind::pair_dst, layer}; }
  static Space rows(int64_t count) { return {SpaceKind::rows, 0, count}; }
  bool is_pair() const { return kind == SpaceKind::pair_src || kind == SpaceKind::pair_dst; }
  // Its rows have an edge type.
  bool is_typed() const { return kind == SpaceKind::edge || is_pair(); }
  friend auto operator<=>(const Space&, const Space&) = default;
};
std::string space_text(Space space);  // "v0", "e2", "s0" and "d0" (pairs), "t", "p", "r9" (rows)

using Dims = std::vector<int64_t>;

struct ValueType {
  Space space;
  Dims dims;  // of one row
  DType dtype = DType::f32;

  int64_t row_size() const;
  friend bool operator==(const ValueType&, const ValueType&) = default;
};
std::string type_text(const ValueType& type);  // "e0[4,64]", "v2[]:i32"

using NodeRef = int;  // index of a node in its Dfg

enum class Init : uint8_t { zeros, ones, glorot, uniform_fan_in, constant };

struct Node {
  Op op = Op::input;
  std::vector<NodeRef> inputs;
  ValueType type;             // inferred by Dfg::add, except for leaves
  Attr attr = Attr::none;     // indexing operations and degree
  double alpha = 0;           // scale, slope, dropout share, epsilon, constant initial value
  std::vector<int64_t> ints;  // row_sum {rank}; slice, slice_rows {begin, len}; pad {begin, total}; index along type
                              // {layer} or {layer, 1}, {layer, 2} to pairs of sources, destinations; index along src or
                              // dst to the pairs of that end {1}
  std::string name;           // leaves
  uint64_t salt = 0;          // dropout
  Init init = Init::zeros;    // param
  bool state = false;         // param: kept in checkpoints, not trained (running statistics)

  friend bool operator==(const Node&, const Node&) = default;
};

class Dfg {
 public:
  explicit Dfg(std::string name = "dfg") : name_(std::move(name)) {}

  // Infers the type, validates, appends. Throws UserError naming the operation and the types that do not fit.
  NodeRef add(Node node);

  const std::string& name() const { return name_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& operator[](NodeRef i) const { return nodes_[i]; }
  int size() const { return static_cast<int>(nodes_.size()); }

  // Named results: "logits", "loss", "grad:NAME". Order is kept.
  void set_output(const std::string& name, NodeRef node);
  const std::vector<std::pair<std::string, NodeRef>>& outputs() const { return outputs_; }
  NodeRef output(std::string_view name) const;       // throws InternalError when absent
  NodeRef find_output(std::string_view name) const;  // -1 when absent
  // After a training step the state parameter `name` takes the value of `node`.
  void set_update(const std::string& name, NodeRef node);
  const std::vector<std::pair<std::string, NodeRef>>& updates() const { return updates_; }

  // The leaf of that name; -1 when there is none.
  NodeRef find_leaf(std::string_view name) const;
  // Number of blocks (message-passing layers) the DFG spans.
  int num_layers() const;

  // Checks every invariant again (after parsing or rewriting). Throws InternalError.
  void validate() const;

  friend bool operator==(const Dfg&, const Dfg&) = default;

 private:
  std::string name_;
  std::vector<Node> nodes_;
  std::vector<std::pair<std::string, NodeRef>> outputs_;
  std::vector<std::pair<std::string, NodeRef>> updates_;
};

// The type of `node`'s value from its inputs' types; throws UserError when they do not fit.
ValueType infer_type(const Dfg& dfg, const Node& node);

// Text form, one node a line; parse_dfg(print_dfg(d)) == d.
std::string print_dfg(const Dfg& dfg);
Dfg parse_dfg(std::string_view text);  // throws UserError with the line

// Appends the gradient of the scalar output `loss` to `dfg` and registers "grad:NAME" for every trainable parameter
// the loss depends on. Nothing is computed for values that depend on no trainable parameter (so the first layer has no
// input gradient).
void differentiate(Dfg& dfg, std::string_view loss = "loss");

// Removes nodes no output or update needs; keeps order.
Dfg prune(const Dfg& dfg);

}  // namespace nacre
