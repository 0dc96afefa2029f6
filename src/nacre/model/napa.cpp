#include "nacre/model/napa.h"

#include <charconv>
#include <utility>

#include "nacre/base/error.h"

namespace nacre {

Napa& Value::net() const {
  if (net_ == nullptr) {
    throw UserError("model", "an empty value is used as an operand",
                    "assign the result of a function of Napa to every Value first");
  }
  return *net_;
}

ValueType Value::type() const { return net().dfg()[node_].type; }

Value operator+(Value a, Value b) { return a.net().add(Op::add, {a, b}); }
Value operator-(Value a, Value b) { return a.net().add(Op::sub, {a, b}); }
Value operator*(Value a, Value b) { return a.net().add(Op::mul, {a, b}); }
Value operator*(double factor, Value x) { return x.net().add(Op::scale, {x}, Attr::none, factor); }

namespace {

// The names of a layer's parameters begin with this text, and the number of the layer follows.
constexpr std::string_view kLayers = "layers.";

// Returns the layer l of a value in v(l), which is also the number of the block whose edges start
// at these vertices.
int block_of(Value x) {
  const ValueType type = x.type();
  if (type.space.kind != SpaceKind::vertex) {
    throw UserError("model", "a vertex value is expected, not " + type_text(type), "see nacre/model/napa.h");
  }
  return type.space.layer;
}

bool on_edges(Value x) { return x.type().space.kind == SpaceKind::edge; }

}  // namespace

bool learns_all_rows(const std::vector<VertexKind>& kinds) { return kinds.size() == 1 && kinds[0].features == 0; }

std::string learned_rows_name(const VertexKind& kind) { return "embedding." + kind.name + ".weight"; }

Value Napa::add(Node node) { return {this, dfg_.add(std::move(node))}; }

Value Napa::add(Op op, std::initializer_list<Value> inputs, Attr attr, double alpha) {
  Node node;
  node.op = op;
  for (const Value& input : inputs) {
    if (!input) throw UserError("model", "an empty value is used by " + std::string(op_info(op).name));
    node.inputs.push_back(input.node());
  }
  node.attr = attr;
  node.alpha = alpha;
  return add(std::move(node));
}

void Napa::begin_layer(int layer) { scope_ = std::string(kLayers) + std::to_string(layer) + "."; }

std::optional<int> layer_of_parameter(std::string_view name) {
  if (!name.starts_with(kLayers)) return std::nullopt;
  name.remove_prefix(kLayers.size());
  int layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  return error == std::errc() && end != name.data() ? std::optional(layer) : std::nullopt;
}

// Returns a leaf. The first call for a leaf makes it, and later calls return the same node.
Value Napa::leaf(Node node) {
  const std::string key = std::string(op_info(node.op).name) + ":" + node.name + ":" +
                          std::string(attr_name(node.attr)) + ":" + space_text(node.type.space);
  if (auto it = cache_.find(key); it != cache_.end()) return it->second;
  return cache_[key] = add(std::move(node));
}

Value Napa::input(const std::string& name, const ValueType& type) {
  return leaf({.op = Op::input, .type = type, .name = name});
}

Value Napa::features(int64_t dim) {
  if (options_.kinds.empty()) return input("x", {Space::vertex(0), {dim}});
  const std::string key = "features:" + std::to_string(dim);
  if (auto it = cache_.find(key); it != cache_.end()) return it->second;
  return cache_[key] = features_of_kinds(dim);
}

Value Napa::features_of_kinds(int64_t dim) {
  // If all rows are learned, a batch reads only the rows of its own vertices.
  if (learns_all_rows(options_.kinds) && options_.sampling != Sampling::none)
    return learned_rows(options_.kinds[0], {Space::vertex(0), {dim}});
  const std::string scope = std::exchange(scope_, "");  // the leaves below belong to no layer
  const bool whole = options_.sampling == Sampling::none;
  Node join{.op = Op::join_rows, .type = {Space::vertex(0), {}}};
  for (size_t k = 0; k < options_.kinds.size(); ++k) {
    const VertexKind& kind = options_.kinds[k];
    const Space rows = whole ? Space::rows(kind.vertices) : Space::of_kind(static_cast<int64_t>(k));
    const Value y = kind.features > 0
                        ? linear(input("x." + kind.name, {rows, {kind.features}}), "input." + kind.name, dim)
                        : learned_rows(kind, {rows, {dim}});
    join.inputs.push_back(y.node());
  }
  scope_ = scope;
  return add(std::move(join));
}

Value Napa::learned_rows(const VertexKind& kind, const ValueType& type) {
  return add({.op = Op::param, .type = type, .name = learned_rows_name(kind), .init = Init::glorot});
}

Value Napa::param(const std::string& name, const Dims& dims, Init init, double constant) {
  return add({.op = Op::param, .type = {Space::param(), dims}, .alpha = constant, .name = scope_ + name, .init = init});
}

Value Napa::type_param(const std::string& name, const Dims& dims, Init init) {
  return add({.op = Op::param, .type = {Space::type(), dims}, .name = scope_ + name, .init = init});
}

Value Napa::state_param(const std::string& name, const Dims& dims, Init init) {
  return add({.op = Op::param, .type = {Space::param(), dims}, .name = scope_ + name, .init = init, .state = true});
}

Value Napa::edge_weight(Value x) {
  if (!options_.edge_weighted) return {};
  const int block = block_of(x);
  return input("edge_weight." + std::to_string(block), {Space::edge(block), {}});
}

Value Napa::edge_scale(Value x) {
  if (options_.sampling != Sampling::uniform && options_.sampling != Sampling::importance) return {};
  const int block = on_edges(x) ? x.layer() : block_of(x);
  return input("edge_scale." + std::to_string(block), {Space::edge(block), {}});
}

Value Napa::in_degree(Value x) {
  const int block = block_of(x);
  if (options_.sampling != Sampling::none)
    return input("in_degree." + std::to_string(block), {Space::vertex(block + 1), {}});
  return leaf({.op = Op::degree, .type = {Space::vertex(block_of(x) + 1), {}}, .attr = Attr::dst});
}

Value Napa::out_degree(Value x) {
  const int block = block_of(x);
  if (options_.sampling != Sampling::none)
    return input("out_degree." + std::to_string(block), {Space::vertex(block), {}});
  return leaf({.op = Op::degree, .type = {Space::vertex(block_of(x)), {}}, .attr = Attr::src});
}

Value Napa::typed_degree(Value x) { return leaf({.op = Op::typed_degree, .type = {Space::edge(block_of(x)), {}}}); }

Value Napa::src(Value x) { return add(Op::index, {x}, Attr::src); }
Value Napa::dst(Value y) { return add(Op::index, {y}, Attr::dst); }
Value Napa::self(Value x) { return add(Op::index, {x}, Attr::self); }
Value Napa::edge_softmax(Value e) { return add(Op::edge_softmax, {e}, Attr::dst); }

Value Napa::neighbor_apply(Value at_src, Value at_dst, const EdgeFunction& g) {
  const Value s = src(at_src);
  const Value d = dst(block_of(at_dst) == block_of(at_src) ? self(at_dst) : at_dst);
  return g(s, d);
}

// Returns, for each vertex at the end `end` of the edges, the sum of the weights of its edges in
// the whole graph.
Value Napa::weighted_degree(Value x, Attr end) {
  if (options_.sampling == Sampling::none) return add(Op::index_add, {edge_weight(x)}, end);
  const int block = block_of(x);
  return end == Attr::src ? input("out_weight." + std::to_string(block), {Space::vertex(block), {}})
                          : input("in_weight." + std::to_string(block), {Space::vertex(block + 1), {}});
}

Value Napa::in_weight(Value x) { return options_.edge_weighted ? weighted_degree(x, Attr::dst) : in_degree(x); }

Value Napa::symmetric_norm(Value x) {
  const std::string key = "symmetric_norm:" + std::to_string(block_of(x));
  if (auto it = cache_.find(key); it != cache_.end()) return it->second;
  const Value weight = edge_weight(x);
  const Value out = inv_sqrt(weight ? weighted_degree(x, Attr::src) : out_degree(x));
  const Value in = inv_sqrt(in_weight(x));
  Value norm = neighbor_apply(out, in, [](Value s, Value d) { return s * d; });
  if (weight) norm = weight * norm;
  return cache_[key] = norm;
}

Value Napa::pull(Value x, Aggregate aggregate, Value weighting) {
  Value message = on_edges(x) ? x : src(x);
  if (aggregate == Aggregate::sum || (aggregate == Aggregate::mean && options_.sampling == Sampling::importance)) {
    if (const Value scale = edge_scale(x)) weighting = weighting ? weighting * scale : scale;
  }
  if (weighting) message = message * weighting;
  if (aggregate == Aggregate::max) return add(Op::index_max, {message}, Attr::dst);
  if (aggregate == Aggregate::mean && !weighting) return add(Op::index_mean, {message}, Attr::dst);
  const Value sum = add(Op::index_add, {message}, Attr::dst);
  if (aggregate != Aggregate::mean) return sum;
  return sum * inv(add(Op::index_add, {weighting}, Attr::dst));
}

Value Napa::pull_linear(Value x, const std::string& name, int64_t out, const PullOptions& how) {
  const Value y = linear(pull(x, how.aggregate, how.weighting), name, out, false);
  return how.bias ? add_bias(y, name + ".bias") : y;
}

Value Napa::pull_lstm(Value x, const std::string& name, int64_t hidden) {
  const Value gates =
      add_bias(matmul(src(x), param(name + ".weight_ih", {x.width(), 4 * hidden}, Init::glorot)), name + ".bias");
  return add(Op::lstm, {gates, param(name + ".weight_hh", {hidden, 4 * hidden}, Init::uniform_fan_in)});
}

}  // namespace nacre
