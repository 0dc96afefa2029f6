// Napa: the builder that a model file is written with. After GraphTensor's programming model (GT1),
// a layer is made of three kinds of steps:
//   NeighborApply  computes a value on every edge from the values of its two ends:
//                  neighbor_apply
//   Pull           lets every destination aggregate what its edges carry:
//                  pull, pull_linear, pull_lstm
//   Apply          does dense work inside one space:
//                  linear, activation, dropout, norm, …
//
// A vertex value lives in v(l), the sources of block l; pull moves it to v(l+1). A model asks for
// everything about a block (its edge weights, its degrees) with a value that lives at the block's
// sources, so a model never counts blocks.
//
// Parameters are named `layers.<l>.<name>` after begin_layer(l). The weights of linear maps are
// stored [in, out] (torch stores [out, in]). Initial values: glorot draws from ±√(6/(in+out)) over
// the last two dimensions (one dimension counts as [1, n]), uniform_fan_in from ±1/√in.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/dfg/dfg.h"

namespace nacre {

class Napa;

// Value is a handle on a value of the DFG under construction. An empty handle stands for "none".
class Value {
 public:
  Value() = default;
  Value(Napa* net, NodeRef node) : net_(net), node_(node) {}

  explicit operator bool() const { return node_ >= 0; }
  Napa& net() const;  // throws UserError if the handle is empty
  NodeRef node() const { return node_; }
  ValueType type() const;
  Dims dims() const { return type().dims; }
  int64_t width() const { return type().row_size(); }
  int layer() const { return type().space.layer; }

 private:
  Napa* net_ = nullptr;
  NodeRef node_ = -1;
};

// These operators work element by element. Parameters and values of fewer dimensions are broadcast
// (see Op::add).
Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator*(double factor, Value x);

// Says how a destination combines its messages. `mix` is a sum whose weighting is already
// normalised over the edges of each destination (attention, means by type). If edges are sampled,
// sums are scaled up to all edges of the destination; means and mixtures stay as they are.
enum class Aggregate : uint8_t { sum, mean, max, mix };

// Says which part of the graph the blocks hold.
enum class Sampling : uint8_t {
  none,    // the whole graph in every layer
  blocks,  // all edges of the destinations, but not of the sources, so degrees are inputs
  // The blocks hold some edges, with the same probability for all edges of a destination;
  // "edge_scale.<l>" says how many edges each of them stands for.
  uniform,
  // The blocks hold some edges, and edges of one destination may stand for different numbers of
  // edges.
  importance,
};

// VertexKind describes the vertices of one kind, in a graph with several kinds. Their ids follow
// those of the kind before.
struct VertexKind {
  std::string name;
  int64_t vertices = 0;
  // Each vertex has this many features. With 0, a row is learned for every vertex.
  int64_t features = 0;

  friend bool operator==(const VertexKind&, const VertexKind&) = default;
};

// Returns whether there is only one kind of vertices and its features are learned. If blocks are
// sampled, the parameter that holds these rows is in v0 and has one row for each vertex of the
// batch; on the whole graph it has one row for each vertex.
bool learns_all_rows(const std::vector<VertexKind>& kinds);
// Returns the name of the parameter that holds the learned rows of a kind.
std::string learned_rows_name(const VertexKind& kind);
// Returns the layer l of a parameter that is called layers.<l>.<name>, and nothing for other names.
std::optional<int> layer_of_parameter(std::string_view name);

struct NapaOptions {
  bool training = true;        // enables dropout, and batch norm by the batch's own statistics
  bool edge_weighted = false;  // whether edge_weight() returns weights
  // The list has the kinds of vertices in the order of their ids. If it is empty, there is one
  // kind, whose features are the input "x".
  std::vector<VertexKind> kinds = {};
  Sampling sampling = Sampling::none;
};

// Says how pull_linear() aggregates. `weighting` holds one number for each edge, or is empty.
struct PullOptions {
  Aggregate aggregate = Aggregate::sum;
  Value weighting;
  bool bias = true;
};

class Napa {
 public:
  // EdgeFunction is the function g of NeighborApply. It is given the values of the two ends of an
  // edge, both as values on the edge, and returns a value on the edge.
  using EdgeFunction = std::function<Value(Value src, Value dst)>;

  Napa(Dfg& dfg, const NapaOptions& options) : dfg_(dfg), options_(options) {}
  Napa(const Napa&) = delete;
  Napa& operator=(const Napa&) = delete;

  const Dfg& dfg() const { return dfg_; }
  bool training() const { return options_.training; }

  // ---- The functions below set names. Parameters made after begin_layer() are called
  // layers.<layer>.<name>; end_layers() drops the prefix.
  void begin_layer(int layer);
  void end_layers() { scope_.clear(); }

  // Makes a value a result of the DFG beside the logits, with this name.
  void output(const std::string& name, Value value) { dfg_.set_output(name, value.node()); }

  // ---- The functions below make leaves, and values that belong to a block.
  Value input(const std::string& name, const ValueType& type);
  // Returns the features in v0, which are the input "x". With several kinds of vertices, a kind
  // with features contributes "x.<kind>" times input.<kind>.weight plus input.<kind>.bias, and a
  // kind without features contributes its learned rows embedding.<kind>.weight. On sampled blocks
  // these inputs and learned rows have one row for each vertex of the kind in v0.
  Value features(int64_t dim);
  Value param(const std::string& name, const Dims& dims, Init init, double constant = 0);
  // Makes a parameter with one row for each edge type.
  Value type_param(const std::string& name, const Dims& dims, Init init);
  // Makes a value that is kept with the parameters but not trained.
  Value state_param(const std::string& name, const Dims& dims, Init init);
  // Returns e(l)[], the input "edge_weight.<l>", or an empty handle if the graph has no weights.
  // This value and those of the functions below, down to edge_scale(), belong to the block l whose
  // sources x lives at.
  Value edge_weight(Value x);
  // These functions return degrees in the whole graph. If blocks are sampled, they are the inputs
  // "in_degree.<l>" and "out_degree.<l>".
  Value in_degree(Value x);   // v(l+1)[]
  Value out_degree(Value x);  // v(l)[]
  // Returns v(l+1)[]: the sum of the weights of the incoming edges, or the degree if the graph has
  // no weights.
  Value in_weight(Value x);
  // Returns e(l)[]: for each edge, the number of edges of the same destination and type in the
  // block.
  Value typed_degree(Value x);
  // Returns e(l)[], the input "edge_scale.<l>": the number of edges that each sampled edge stands
  // for. Returns an empty handle if the blocks hold all edges.
  Value edge_scale(Value x);

  // ---- The functions below move rows between spaces (indexing operations).
  Value src(Value x);           // v(l) → e(l)
  Value dst(Value y);           // v(l+1) → e(l)
  Value self(Value x);          // v(l) → v(l+1): the rows of the destinations themselves
  Value edge_softmax(Value e);  // softmax over the edges of each destination

  // ---- NeighborApply: returns the values of g on all edges of a block. `at_dst` may also live at
  // the sources; then neighbor_apply() takes the rows of the destinations from it.
  Value neighbor_apply(Value at_src, Value at_dst, const EdgeFunction& g);
  // Returns the coefficients of GCN on the edges: 1/√(out-degree of src · in-degree of dst) or,
  // with edge weights, w/√(…) with weighted degrees.
  Value symmetric_norm(Value x);

  // ---- Pull: returns the aggregated messages of each destination. x is a vertex value, whose rows
  // travel along the edges, or an edge value, which holds the messages themselves. A weighting
  // multiplies every message; the mean is then Σ w·x / Σ w. Sampled edges are scaled as described
  // at Aggregate.
  Value pull(Value x, Aggregate aggregate, Value weighting = {});
  // Does pull() and then linear(). If the aggregation is linear, the planner may exchange the order
  // of the two, which gives the same values, perhaps with shorter messages. The bias is always
  // added last.
  Value pull_linear(Value x, const std::string& name, int64_t out, const PullOptions& how = {});
  // Returns the last hidden state of an LSTM over the messages of each destination. The planner
  // computes the part of the gates that depends on the messages once per vertex.
  Value pull_lstm(Value x, const std::string& name, int64_t hidden);

  // ---- The functions below are Apply: dense work inside one space.

  // Multiplies x by the parameter NAME.weight and, if `bias` is true, adds NAME.bias.
  Value linear(Value x, const std::string& name, int64_t out, bool bias = true);
  Value matmul(Value x, Value weight);
  Value typed_matmul(Value e, Value weight);  // multiplies each edge by the weight of its type
  Value add_bias(Value x, const std::string& name = "bias");
  // Multiplies the last dimension of x by a trained vector (one for each head) and sums over it:
  // [H,D] → [H].
  Value dot(Value x, const std::string& name);
  Value activation(Value x, std::string_view name);  // none, or a name of dfg/activations.h
  Value leaky_relu(Value x, double slope);
  Value dropout(Value x, double share);
  // Drops some elements of an edge value that has one number for each edge. All blocks drop the
  // edges at the same positions, which are drawn anew in each step.
  Value edge_dropout(Value e, double share);
  Value norm(Value x, const std::string& name, std::string_view kind);  // none, layer or batch
  Value constant(double number);
  Value inv(Value x);
  Value inv_sqrt(Value x);
  Value row_sum(Value x, int rank);
  Value reshape(Value x, const Dims& dims);
  Value concat(Value a, Value b);
  Value slice(Value x, int64_t begin, int64_t len);
  Value split_heads(Value x, int64_t heads);  // [H·D] → [H,D]
  Value merge_heads(Value x);                 // [H,D] → [H·D]
  Value mean_heads(Value x);                  // [H,D] → [D]

  // Adds an operation of op.h, for models that need more than the functions above.
  Value add(Node node);
  Value add(Op op, std::initializer_list<Value> inputs, Attr attr = Attr::none, double alpha = 0);

 private:
  Value leaf(Node node);
  Value features_of_kinds(int64_t dim);
  Value learned_rows(const VertexKind& kind, const ValueType& type);
  Value batch_norm(Value x, const std::string& name);
  Value weighted_degree(Value x, Attr end);

  Dfg& dfg_;
  NapaOptions options_;
  std::string scope_;
  std::map<std::string, Value> cache_;  // leaves and coefficients that are made once for each block
  uint64_t dropouts_ = 0;
  uint64_t edge_salt_ = 0;  // the salt of edge_dropout(); 0: not drawn yet
};

}  // namespace nacre
