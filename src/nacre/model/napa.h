// Napa: the builder a model file is written with. After GraphTensor's programming model (GT1) a
// layer is made of
//   NeighborApply  a value on every edge from the values of its two ends      neighbor_apply
//   Pull           every destination aggregates what its edges carry           pull, pull_linear, pull_lstm
//   Apply          dense work inside one space                                 linear, activation, dropout, norm, …
//
// A vertex value lives in v(l), the sources of block l; pull moves it to v(l+1). Everything about a
// block (its edge weights, its degrees) is asked for with a value that lives among the block's
// sources, so a model never counts blocks.
//
// Parameters are named `layers.<l>.<name>` inside begin_layer(l). Weights of linear maps are stored
// [in, out] (torch stores [out, in]). Initial values: glorot draws from ±√(6/(in+out)) over the
// last two dims (one dim counts as [1, n]), uniform_fan_in from ±1/√in.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/dfg/dfg.h"

namespace nacre {

class Napa;

// A handle on a value of the DFG under construction. An empty handle stands for "none".
class Value {
 public:
  Value() = default;
  Value(Napa* net, NodeRef node) : net_(net), node_(node) {}

  explicit operator bool() const { return node_ >= 0; }
  Napa& net() const;  // throws UserError when empty
  NodeRef node() const { return node_; }
  ValueType type() const;
  Dims dims() const { return type().dims; }
  int64_t width() const { return type().row_size(); }
  int layer() const { return type().space.layer; }

 private:
  Napa* net_ = nullptr;
  NodeRef node_ = -1;
};

// Elementwise; parameters and values of fewer dims are broadcast (see Op::add).
Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator*(double factor, Value x);

// `mix`: a sum whose weighting is normalised over each destination's edges already (attention,
// means by type). Where edges are sampled, sums are scaled up to all edges of the destination,
// means and mixtures stand as they are.
enum class Aggregate : uint8_t { sum, mean, max, mix };

// What the blocks hold.
enum class Sampling : uint8_t {
  none,    // the whole graph in every layer
  blocks,  // all edges of the destinations, but not of the sources: degrees are inputs
  // some edges, those of one destination alike; "edge_scale.<l>" says what each stands for
  uniform,
  importance,  // likewise, and edges of one destination may stand for different numbers of edges
};

// Vertices of one kind in a graph of several: their ids follow those of the kind before.
struct VertexKind {
  std::string name;
  int64_t vertices = 0;
  // numbers each vertex comes with; 0 = none: a row is learned for every vertex
  int64_t features = 0;

  friend bool operator==(const VertexKind&, const VertexKind&) = default;
};

// Whether there is one kind of vertices and its features are learned. On sampled blocks the
// parameter of these rows is in v0 and has the rows of a batch's vertices; on the whole graph it
// has the rows of all.
bool learns_all_rows(const std::vector<VertexKind>& kinds);
// The parameter that holds the learned rows of a kind.
std::string learned_rows_name(const VertexKind& kind);

struct NapaOptions {
  bool training = true;        // dropout, and batch norm by the batch's own statistics
  bool edge_weighted = false;  // edge_weight() gives the weights
  // in the order of their ids; empty: one kind, whose features are the input "x"
  std::vector<VertexKind> kinds = {};
  Sampling sampling = Sampling::none;
};

// How pull_linear aggregates. `weighting` is one number per edge, or none.
struct PullOptions {
  Aggregate aggregate = Aggregate::sum;
  Value weighting;
  bool bias = true;
};

class Napa {
 public:
  // g of NeighborApply: the values at the two ends of an edge, both on the edge.
  using EdgeFunction = std::function<Value(Value src, Value dst)>;

  Napa(Dfg& dfg, const NapaOptions& options) : dfg_(dfg), options_(options) {}
  Napa(const Napa&) = delete;
  Napa& operator=(const Napa&) = delete;

  const Dfg& dfg() const { return dfg_; }
  bool training() const { return options_.training; }

  // ---- names: parameters made from now on are called layers.<layer>.<name>; end_layers() drops
  // the prefix.
  void begin_layer(int layer);
  void end_layers() { scope_.clear(); }

  // A named result of the DFG beside the logits.
  void output(const std::string& name, Value value) { dfg_.set_output(name, value.node()); }

  // ---- leaves
  Value input(const std::string& name, const ValueType& type);
  // In v0: the input "x". With several kinds of vertices, "x.<kind>" times input.<kind>.weight plus
  // input.<kind>.bias, and the trained rows embedding.<kind>.weight of kinds without features.
  Value features(int64_t dim);
  Value param(const std::string& name, const Dims& dims, Init init, double constant = 0);
  Value type_param(const std::string& name, const Dims& dims, Init init);   // one row per edge type
  Value state_param(const std::string& name, const Dims& dims, Init init);  // kept, not trained
  // Of the block whose sources x lives among.
  Value edge_weight(Value x);  // e(l)[], "edge_weight.<l>"; none when the graph has no weights
  // Degrees are the whole graph's: inputs "in_degree.<l>" and "out_degree.<l>" where blocks hold
  // less.
  Value in_degree(Value x);   // v(l+1)[]
  Value out_degree(Value x);  // v(l)[]
  // v(l+1)[]: Σ of the edges' weights; the degree when the graph has none
  Value in_weight(Value x);
  Value typed_degree(Value x);  // e(l)[]: edges of the same destination and type in the block
  // e(l)[], "edge_scale.<l>": edges each sampled one stands for; none when all are there
  Value edge_scale(Value x);

  // ---- indexing
  Value src(Value x);           // v(l) → e(l)
  Value dst(Value y);           // v(l+1) → e(l)
  Value self(Value x);          // v(l) → v(l+1): the destinations' own rows
  Value edge_softmax(Value e);  // over the edges of each destination

  // ---- NeighborApply. `at_dst` may also live among the sources: its destinations' rows are taken.
  Value neighbor_apply(Value at_src, Value at_dst, const EdgeFunction& g);
  // 1/√(out-degree of src · in-degree of dst), with edge weights w/√(…) by weighted degrees: GCN's
  // coefficients.
  Value symmetric_norm(Value x);

  // ---- Pull. x is a vertex value (its rows travel along the edges) or an edge value (the messages
  // themselves). A weighting multiplies every message; the mean is then Σ w·x / Σ w. Sampled edges
  // are scaled as Aggregate says.
  Value pull(Value x, Aggregate aggregate, Value weighting = {});
  // pull followed by linear. Where the aggregation is linear the planner may run it the other way
  // round (the same map, maybe with narrower messages). The bias always comes last.
  Value pull_linear(Value x, const std::string& name, int64_t out, const PullOptions& how = {});
  // Last hidden state of an LSTM over the messages; the planner computes the gates' input half once
  // per vertex.
  Value pull_lstm(Value x, const std::string& name, int64_t hidden);

  // ---- Apply
  // NAME.weight, NAME.bias
  Value linear(Value x, const std::string& name, int64_t out, bool bias = true);
  Value matmul(Value x, Value weight);
  Value typed_matmul(Value e, Value weight);  // weight by the type of each edge
  Value add_bias(Value x, const std::string& name = "bias");
  // the last dim against a trained vector (one per head): [H,D] → [H]
  Value dot(Value x, const std::string& name);
  Value activation(Value x, std::string_view name);  // none, relu, leaky_relu, elu, sigmoid, tanh
  Value leaky_relu(Value x, double slope);
  Value dropout(Value x, double share);
  // One number per edge, some of them dropped: in every block the edges of the same positions,
  // drawn anew each step.
  Value edge_dropout(Value e, double share);
  Value norm(Value x, const std::string& name, std::string_view kind);  // none, layer, batch
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

  // Any operation of op.h, for what the calls above do not cover.
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
  std::map<std::string, Value> cache_;  // leaves and coefficients a block has once
  uint64_t dropouts_ = 0;
  uint64_t edge_salt_ = 0;  // 0: not drawn yet
};

}  // namespace nacre
