#include "nacre/plan/sites.h"

#include <algorithm>
#include <optional>

#include "nacre/base/error.h"
#include "nacre/plan/copy_dfg.h"
#include "nacre/plan/match.h"
#include "nacre/plan/rewrite.h"

namespace nacre {
namespace {

bool is_product(Op op) { return op == Op::matmul || op == Op::matmul_t; }
bool is_lstm_grad(Op op) { return op == Op::lstm_grad_z || op == Op::lstm_grad_w; }
// Where a function takes a layer, kWhole stands for the layer that the DFG was written for; each
// half of its edges has a layer of its own.
constexpr int kWhole = -1;

bool on_vertices(const Dfg& dfg, NodeRef i) { return dfg[i].type.space.kind == SpaceKind::vertex; }

bool all_scalars(const Dfg& dfg, const std::vector<NodeRef>& factors) {
  return std::all_of(factors.begin(), factors.end(), [&](NodeRef f) { return dfg[f].type.row_size() == 1; });
}

// Describes rows · Σ over edges of factors · x[gather], which is a weighted sum of neighbours,
// whichever way it points.
struct Aggregation {
  NodeRef x = -1;
  Attr gather = Attr::none, reduce = Attr::none;
  bool mean = false;
  std::vector<NodeRef> factors;      // scalars on edges that multiply the messages
  std::vector<NodeRef> row_factors;  // scalars at the vertices that are reduced to
};

// If `at` is a row times a scalar of its vertex, appends the scalar to `factors`, moves `at` on to
// the row and returns true.
bool peel_row_factor(const Dfg& dfg, NodeRef& at, std::vector<NodeRef>& factors) {
  const Node& node = dfg[at];
  if (node.op != Op::mul || !on_vertices(dfg, at)) return false;
  const bool second = dfg[node.inputs[1]].type.dims.empty();
  const NodeRef factor = node.inputs[second ? 1 : 0];
  const NodeRef value = node.inputs[second ? 0 : 1];
  if (!dfg[factor].type.dims.empty() || dfg[value].type.dims.size() != 1 || !on_vertices(dfg, factor)) return false;
  factors.push_back(factor);
  at = value;
  return true;
}

std::optional<Aggregation> match_aggregation(const Dfg& dfg, NodeRef node) {
  Aggregation a;
  NodeRef at = node;
  while (peel_row_factor(dfg, at, a.row_factors)) {
  }
  const Node& sum = dfg[at];
  a.mean = sum.op == Op::index_mean;
  if ((sum.op != Op::index_add && !a.mean) || (sum.attr != Attr::src && sum.attr != Attr::dst)) return std::nullopt;
  if (dfg[sum.inputs[0]].type.space.kind != SpaceKind::edge) return std::nullopt;
  std::string why;
  const auto gather = match_gather(dfg, sum.inputs[0], &why);
  if (!gather || gather->pair || gather->end == sum.attr || !all_scalars(dfg, gather->factors)) return std::nullopt;
  if (dfg[gather->x].type.dims != dfg[node].type.dims || dfg[node].type.dims.size() != 1) return std::nullopt;
  a.x = gather->x;
  a.gather = gather->end;
  a.reduce = sum.attr;
  a.factors = gather->factors;
  return a;
}

// Builds expressions in the new DFG from operands of the old one.
class Builder {
 public:
  Builder(Dfg& out, const NodeVector<NodeRef>& moved) : out_(out), moved_(moved) {}

  NodeRef at(NodeRef old) const { return moved_[old]; }
  NodeRef add(Op op, std::vector<NodeRef> inputs, Attr attr = Attr::none, std::vector<int64_t> ints = {}) {
    return out_.add({.op = op, .inputs = std::move(inputs), .attr = attr, .ints = std::move(ints)});
  }
  // Returns a value of the old DFG at the vertices that are one end of the edges of a layer.
  NodeRef at_end(NodeRef old, Attr end, int layer) {
    if (layer == kWhole) return at(old);
    return add(Op::index, {at(old)}, Attr::self, {end == Attr::src ? layer : layer + 1});
  }
  // Returns the product of x, a value of the new DFG, and scalar factors of the old one, on the
  // edges of a layer. The factors are multiplied with each other first, because they have one
  // element per row and x has many.
  NodeRef scaled(NodeRef x, const std::vector<NodeRef>& factors, int layer = kWhole) {
    if (factors.empty()) return x;
    NodeRef product = at(factors[0]);
    for (size_t i = 1; i < factors.size(); ++i) product = add(Op::mul, {product, at(factors[i])});
    if (layer != kWhole) product = add(Op::index, {product}, Attr::self, {layer});
    return add(Op::mul, {x, product});
  }
  NodeRef aggregate(const Aggregation& a, NodeRef x) {
    const NodeRef e = scaled(add(Op::index, {x}, a.gather), a.factors);
    return scaled(add(a.mean ? Op::index_mean : Op::index_add, {e}, a.reduce), a.row_factors);
  }
  // Returns the transposed aggregation of g. It gathers rows at the end of the edges where `a` adds
  // up, and adds them up at the end where `a` gathers.
  NodeRef spread(const Aggregation& a, NodeRef g) {
    g = scaled(g, a.row_factors);
    if (a.mean) {
      const NodeRef degree = out_.add({.op = Op::degree, .type = {out_[g].type.space, {}}, .attr = a.reduce});
      g = add(Op::mul, {g, add(Op::inv, {degree})});
    }
    return add(Op::index_add, {scaled(add(Op::index, {g}, a.reduce), a.factors)}, a.gather);
  }

 private:
  Dfg& out_;
  const NodeVector<NodeRef>& moved_;
};

Attr pair_of(Attr end) { return end == Attr::src ? Attr::pair_src : Attr::pair_dst; }

// Recognises a kind of site at a node, and builds each option there.
class Finder {
 public:
  Finder(const Dfg& dfg, CoverLayers cover)
      : dfg_(dfg), cover_(cover), consumers_(count_consumers(dfg)), constant_(constants(dfg)) {}

  std::optional<Site> find(NodeRef i) {
    const Node& node = dfg_[i];
    std::string why;
    if (node.op == Op::index_add && (node.attr == Attr::src || node.attr == Attr::dst)) {
      const auto typed = match_typed_sum(i);
      if (typed) {
        const Node& product = dfg_[typed->typed];
        return typed_site(i, op_info(product.op).name, product.inputs[1], can_divide(typed->factors));
      }
    }
    if (node.op == Op::typed_weight_grad) {
      const auto grad = match_typed_grad(dfg_, i, &why);
      if (grad)
        return typed_site(i, "typed_weight_grad", i, can_divide(grad->x.factors) && can_divide(grad->g.factors));
    }
    if (is_product(node.op) && on_vertices(dfg_, i) && match_aggregation(dfg_, node.inputs[0])) {
      return site(i, op_info(node.op).name, node.inputs[1], "aggregate");
    }
    if (is_lstm_grad(node.op)) return site(i, op_info(node.op).name, node.inputs[2], "recompute");
    if (const auto sum = match_sum_of_product(i)) {
      const Node& product = dfg_[sum->product];
      return site(i, op_info(product.op).name, product.inputs[1], "combine");
    }
    if (node.op == Op::weight_grad && on_vertices(dfg_, node.inputs[0])) {
      if (match_aggregation(dfg_, node.inputs[0])) return site(i, "weight_grad", i, "aggregate");
      if (match_aggregation(dfg_, node.inputs[1])) return site(i, "weight_grad", i, "combine");
    }
    return std::nullopt;
  }

  // Builds node i in the new DFG by another option than the written one.
  NodeRef build(NodeRef i, const std::string& option, Builder& b) const {
    const Node& node = dfg_[i];
    std::string why;
    if (node.op == Op::typed_weight_grad) return build_typed_grad(*match_typed_grad(dfg_, i, &why), option, b);
    if (node.op == Op::weight_grad) return build_weight_grad(node, b);
    if (is_lstm_grad(node.op)) return build_lstm_grad(node, b);
    if (is_product(node.op)) {
      const Aggregation a = *match_aggregation(dfg_, node.inputs[0]);
      return b.aggregate(a, b.add(node.op, {b.at(a.x), b.at(node.inputs[1])}));
    }
    if (const auto typed = match_typed_sum(i)) return build_typed_sum(i, *typed, option, b);
    const SumOfProduct sum = *match_sum_of_product(i);
    const Node& product = dfg_[sum.product];
    const NodeRef x = b.scaled(b.at(product.inputs[0]), sum.scales);
    return b.add(product.op, {b.aggregate(sum.aggregation, x), b.at(product.inputs[1])});
  }

 private:
  Site site(NodeRef i, std::string_view op, NodeRef weight, const std::string& written) {
    Site s;
    s.node = i;
    s.written = written;
    s.options = written == "edge"        ? std::vector<std::string>{"edge", "src", "dst"}
                : written == "recompute" ? std::vector<std::string>{"recompute", "keep"}
                                         : std::vector<std::string>{"aggregate", "combine"};
    s.key = std::string(op) + "@" + name_of(weight);
    const int seen = ++keys_[s.key];
    if (seen > 1) s.key += "#" + std::to_string(seen);
    return s;
  }

  Site typed_site(NodeRef i, std::string_view op, NodeRef weight, bool divides) {
    Site s = site(i, op, weight, "edge");
    if (divides) s.options.emplace_back(kCoverOption);
    return s;
  }

  // Returns whether the edges of a typed product can be divided. Factors are carried to the halves
  // by a plain kernel, which is fast enough for constants only: these are computed once.
  bool can_divide(const std::vector<NodeRef>& factors) const {
    return cover_.exist() && std::all_of(factors.begin(), factors.end(), [&](NodeRef f) { return constant_[f] != 0; });
  }

  // Returns the parameter that a weight comes from (through reshapes and bases), or the one that a
  // gradient belongs to.
  std::string name_of(NodeRef i) const {
    for (const auto& [name, node] : dfg_.outputs()) {
      if (node == i && name.starts_with("grad:")) return name.substr(5);
    }
    for (NodeRef at = i; at >= 0;) {
      if (dfg_[at].op == Op::param) return dfg_[at].name;
      const auto& inputs = dfg_[at].inputs;
      const bool product = op_info(dfg_[at].op).name.find("weight_grad") != std::string_view::npos;
      at = inputs.empty() || product ? -1 : inputs[0];
    }
    return "derived";
  }

  // Matches a sum at the other end of a typed product with scalar factors that nobody else reads.
  std::optional<TypedProduct> match_typed_sum(NodeRef i) const {
    const Node& node = dfg_[i];
    if (dfg_[node.inputs[0]].type.space.kind != SpaceKind::edge) return std::nullopt;
    std::string why;
    auto match = match_typed(dfg_, node.inputs[0], &why);
    if (!match || node.attr == match->gather.end || node.op != Op::index_add) return std::nullopt;
    if (consumers_[match->typed] != 1) return std::nullopt;
    return match;
  }

  // A weighted sum of neighbours of a product that nobody else reads, maybe scaled row by row in
  // between (as in the gradient of a mean).
  struct SumOfProduct {
    Aggregation aggregation;
    NodeRef product = -1;
    std::vector<NodeRef> scales;  // scalars at the vertices that are gathered from
  };
  std::optional<SumOfProduct> match_sum_of_product(NodeRef i) const {
    const Node& node = dfg_[i];
    if (node.op != Op::index_add && node.op != Op::index_mean) return std::nullopt;
    const auto a = match_aggregation(dfg_, i);
    if (!a) return std::nullopt;
    SumOfProduct sum{*a, a->x, {}};
    const auto read_once = [&] { return consumers_[sum.product] == 1; };
    while (read_once() && peel_row_factor(dfg_, sum.product, sum.scales)) {
    }
    if (!is_product(dfg_[sum.product].op) || !read_once()) return std::nullopt;
    return sum;
  }

  NodeRef build_weight_grad(const Node& node, Builder& b) const {
    if (const auto a = match_aggregation(dfg_, node.inputs[0])) {
      return b.add(Op::weight_grad, {b.at(a->x), b.spread(*a, b.at(node.inputs[1]))});
    }
    const auto a = match_aggregation(dfg_, node.inputs[1]);
    return b.add(Op::weight_grad, {b.spread(*a, b.at(node.inputs[0])), b.at(a->x)});
  }

  NodeRef build_lstm_grad(const Node& node, Builder& b) const {
    const NodeRef z = node.inputs[1];
    const NodeRef w = b.at(node.inputs[2]);
    const NodeRef gates = b.add(Op::lstm_gates, {b.at(z), w});
    const NodeRef grads = b.add(Op::lstm_gates_grad, {b.at(node.inputs[0]), gates, w});
    if (node.op == Op::lstm_grad_w) return b.add(Op::weight_grad, {b.add(Op::lstm_states, {gates}), grads});
    return on_vertices(dfg_, z) ? b.add(Op::index_add, {grads}, Attr::src) : grads;
  }

  // Calls build(end, layer) for each half of the edges and adds the results. build() gets the end
  // whose pairs the edges of the half belong to, and the layer of the half.
  template <class Build>
  NodeRef divided(Builder& b, const Build& build) const {
    return b.add(Op::add, {build(Attr::dst, cover_.at_dst), build(Attr::src, cover_.at_src)});
  }

  NodeRef build_typed_sum(NodeRef sum, const TypedProduct& m, const std::string& option, Builder& b) const {
    if (option != kCoverOption) return typed_sum_by(option == "src" ? Attr::src : Attr::dst, kWhole, sum, m, b);
    return divided(b, [&](Attr end, int layer) {
      const NodeRef half = typed_sum_by(end, layer, sum, m, b);
      return b.add(Op::index, {half}, Attr::self, {dfg_[sum].type.space.layer});
    });
  }

  NodeRef typed_sum_by(Attr end, int layer, NodeRef sum, const TypedProduct& m, Builder& b) const {
    const Node& typed = dfg_[m.typed];
    const Attr reduce = dfg_[sum].attr;
    const NodeRef x = b.at_end(m.gather.x, m.gather.end, layer);
    const NodeRef w = b.at(typed.inputs[1]);
    if (end == reduce) {
      const NodeRef messages = b.scaled(b.add(Op::index, {x}, m.gather.end), m.factors, layer);
      const NodeRef sums = b.add(Op::index_add, {messages}, pair_of(end));
      return b.add(Op::index_add, {b.add(typed.op, {sums, w})}, end);
    }
    const NodeRef products = b.add(typed.op, {b.add(Op::index, {x}, end, {1}), w});
    const NodeRef messages = b.scaled(b.add(Op::index, {products}, pair_of(end)), m.factors, layer);
    return b.add(Op::index_add, {messages}, reduce);
  }

  NodeRef build_typed_grad(const TypedGrad& m, const std::string& option, Builder& b) const {
    if (option != kCoverOption) return typed_grad_by(option == "src" ? Attr::src : Attr::dst, kWhole, m, b);
    return divided(b, [&](Attr end, int layer) { return typed_grad_by(end, layer, m, b); });
  }

  static NodeRef typed_grad_by(Attr end, int layer, const TypedGrad& m, Builder& b) {
    const bool src = end == Attr::src;
    const GatherProduct& kept = src ? m.x : m.g;
    const GatherProduct& summed = src ? m.g : m.x;
    std::vector<NodeRef> factors = summed.factors;
    factors.insert(factors.end(), kept.factors.begin(), kept.factors.end());
    const NodeRef gathered = b.add(Op::index, {b.at_end(summed.x, summed.end, layer)}, summed.end);
    const NodeRef sums = b.add(Op::index_add, {b.scaled(gathered, factors, layer)}, pair_of(kept.end));
    const NodeRef rows = b.add(Op::index, {b.at_end(kept.x, kept.end, layer)}, kept.end, {1});
    return src ? b.add(Op::typed_weight_grad, {rows, sums}) : b.add(Op::typed_weight_grad, {sums, rows});
  }

  const Dfg& dfg_;
  CoverLayers cover_;
  NodeVector<int> consumers_;
  NodeVector<char> constant_;
  std::map<std::string, int> keys_;
};

}  // namespace

std::vector<Site> find_sites(const Dfg& dfg, CoverLayers cover) {
  Finder finder(dfg, cover);
  std::vector<Site> sites;
  for (NodeRef i = 0; i < dfg.size(); ++i) {
    if (auto site = finder.find(i)) sites.push_back(std::move(*site));
  }
  return sites;
}

bool divides_edges(const Choices& choices) {
  return std::any_of(choices.begin(), choices.end(), [](const auto& choice) { return choice.second == kCoverOption; });
}

void leave_edges_together(Choices& choices) {
  for (auto& [site, option] : choices) {
    if (option == kCoverOption) option = "dst";
  }
}

Dfg apply_choices(const Dfg& dfg, const Choices& choices, bool all, CoverLayers cover) {
  std::map<NodeRef, std::string> change;
  size_t found = 0;
  for (const Site& site : find_sites(dfg, cover)) {
    const auto choice = choices.find(site.key);
    if (choice == choices.end()) continue;
    ++found;
    if (std::find(site.options.begin(), site.options.end(), choice->second) == site.options.end()) {
      std::string known;
      for (const std::string& option : site.options) known += (known.empty() ? "" : ", ") + option;
      throw UserError("plan", "'" + site.key + "' has no option '" + choice->second + "'", "use one of " + known);
    }
    if (choice->second != site.written) change[site.node] = choice->second;
  }
  if (all && found < choices.size())
    throw UserError("plan", "holds choices for parts that this model does not have",
                    "make the plan again with nacre plan --output FILE");
  const Finder finder(dfg, cover);
  const Dfg chosen = copy_dfg(dfg, [&](Dfg& out, NodeRef i, Node node, const NodeVector<NodeRef>& moved) {
    const auto found_change = change.find(i);
    if (found_change == change.end()) return out.add(std::move(node));
    Builder builder(out, moved);
    return finder.build(i, found_change->second, builder);
  });
  return merge_equal_nodes(chosen);
}

}  // namespace nacre
