#include "support/random_dfg.h"

#include <array>

#include "nacre/base/error.h"
#include "support/op_cases.h"

namespace nacre::test {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : rng_(seed) {}

  Dfg run(int nodes) {
    leaves();
    for (int i = 0; i < nodes; ++i) {
      // Most random operands do not fit together. Then shape inference throws, and other operands
      // are drawn.
      for (int attempt = 0; attempt < 100; ++attempt) {
        try {
          keep(draw());
          break;
        } catch (const UserError&) {
          continue;
        }
      }
    }
    finish();
    return net_.dfg;
  }

 private:
  void keep(NodeRef y) {
    // A bounded form of each value is kept, too, because sums over hubs and products of products
    // would grow too large to be compared.
    values_.push_back(net_.op(Op::tanh, {net_.op(Op::scale, {y}, 0.6)}));
    values_.push_back(y);
    if (rng_.uniform() < 0.1) net_.dfg.set_output("value" + std::to_string(y), y);
  }

  void leaves() {
    const std::array<ValueType, 12> types = {v(0, {3}), v(0, {2, 3}), v(0),      v(1, {3}), v(1, {2}), e(0, {2}),
                                             e(0, {3}), e(0),         e(1, {2}), t({3}),    p({3}),    p({2, 3})};
    for (const ValueType& type : types) values_.push_back(rng_.uniform() < 0.6 ? net_.param(type) : net_.input(type));
    values_.push_back(net_.op(Op::inv_sqrt, {net_.dfg.add({.op = Op::degree, .type = v(0), .attr = Attr::src})}));
    values_.push_back(net_.op(Op::inv, {net_.dfg.add({.op = Op::degree, .type = v(1), .attr = Attr::dst})}));
    values_.push_back(net_.op(Op::inv, {net_.dfg.add({.op = Op::typed_degree, .type = e(0)})}));
  }

  // Returns a random value. Recent values are drawn more often, so that expressions grow deep.
  NodeRef any() {
    const auto n = static_cast<int64_t>(values_.size());
    const int64_t back = std::min(rng_.below(n), rng_.below(n));
    return values_[static_cast<size_t>(n - 1 - back)];
  }
  Attr any_attr() {
    constexpr std::array<Attr, 4> attrs = {Attr::src, Attr::dst, Attr::self, Attr::type};
    return attrs[static_cast<size_t>(rng_.below(4))];
  }
  ValueType type_of(NodeRef i) const { return net_.dfg[i].type; }

  NodeRef draw() {
    switch (rng_.below(8)) {
      case 0:
        return gather();
      case 1:
        return aggregate();
      case 2:
        return shape();
      case 3:
        return matrix();
      case 4:
      case 5:
        return net_.op(rng_.uniform() < 0.6 ? Op::mul : rng_.uniform() < 0.5 ? Op::add : Op::sub, {any(), any()});
      default:
        return unary();
    }
  }

  NodeRef gather() {
    const Attr attr = any_attr();
    Node node{.op = Op::index, .inputs = {any()}, .attr = attr};
    if (type_of(node.inputs[0]).space == Space::vertex(2) && attr != Attr::dst)
      throw UserError("gather", "no block left");
    if (attr == Attr::type) node.ints = {rng_.below(2)};
    return net_.dfg.add(node);
  }

  NodeRef aggregate() {
    switch (rng_.below(6)) {
      case 0:
        return net_.op(Op::edge_softmax, {any()}, Attr::dst);
      case 1:
        return net_.op(Op::index_mean, {any()}, Attr::dst);
      case 2:
        return net_.op(Op::index_max, {any()}, Attr::dst);
      default:
        return net_.op(Op::index_add, {any()}, any_attr());
    }
  }

  NodeRef matrix() {
    const NodeRef x = any();
    const int64_t width = type_of(x).row_size();
    if (type_of(x).dims.size() != 1) throw UserError("matrix", "needs rows of one dim");
    if (type_of(x).space.kind == SpaceKind::edge && rng_.uniform() < 0.7) {
      return net_.op(Op::typed_matmul, {x, net_.param(t({width, 1 + rng_.below(3)}))});
    }
    if (type_of(x).space.kind == SpaceKind::vertex && type_of(x).space.layer == 0 && width % 4 == 0) {
      return net_.op(Op::lstm, {x, net_.param(p({width / 4, width}))}, Attr::dst);
    }
    return net_.linear(x, 1 + rng_.below(4));
  }

  NodeRef shape() {
    const NodeRef x = any();
    const ValueType type = type_of(x);
    if (type.dims.empty()) return net_.to(Op::expand, x, {type.space, {1 + rng_.below(3)}});
    const int64_t last = type.dims.back();
    switch (rng_.below(6)) {
      case 0:
        return net_.ints(Op::row_sum, x, {rng_.below(static_cast<int64_t>(type.dims.size()) + 1)});
      case 1: {
        const int64_t begin = rng_.below(last);
        return net_.ints(Op::slice, x, {begin, 1 + rng_.below(last - begin)});
      }
      case 2:
        return net_.ints(Op::pad, x, {1, last + 1 + rng_.below(2)});
      case 3:
        return net_.op(Op::concat, {x, any()});
      case 4:
        return net_.to(Op::reshape, x, {type.space, {type.row_size()}});
      default: {
        Dims wider = type.dims;
        wider.push_back(2);
        return net_.to(Op::expand, x, {rng_.uniform() < 0.5 ? type.space : Space::edge(0), wider});
      }
    }
  }

  NodeRef unary() {
    const NodeRef x = any();
    switch (rng_.below(8)) {
      case 0:
        return net_.op(Op::sigmoid, {x});
      case 1:
        return net_.op(Op::elu, {x}, 1.0);
      case 2:
        return net_.op(Op::row_normalize, {x}, 0.5);
      case 3:
        return net_.op(Op::log_softmax, {x});
      case 4:
        return net_.op(Op::standardize, {x, net_.op(Op::column_moments, {x})}, 0.5);
      case 5:
        return net_.op(Op::column_sum, {net_.op(Op::scale, {x}, 0.1)});
      case 6:
        return net_.dfg.add({.op = Op::dropout, .inputs = {x}, .alpha = 0.3, .salt = static_cast<uint64_t>(x) + 1});
      default:
        return net_.op(Op::tanh, {x});
    }
  }

  // Makes the loss, which is a sum over the last values, so that everything that they depend on is
  // trained.
  void finish() {
    NodeRef loss = -1;
    for (size_t i = values_.size() - std::min<size_t>(6, values_.size()); i < values_.size(); ++i) {
      const NodeRef weighted = net_.op(Op::mul, {values_[i], net_.input(type_of(values_[i]))});
      const NodeRef sum = net_.op(Op::column_sum, {net_.ints(Op::row_sum, net_.op(Op::tanh, {weighted}), {0})});
      loss = loss < 0 ? sum : net_.op(Op::add, {loss, sum});
    }
    net_.dfg.set_output("loss", loss);
  }

  Rng rng_;
  Net net_;
  std::vector<NodeRef> values_;
};

}  // namespace

Dfg random_dfg(uint64_t seed, int nodes) { return Generator(seed).run(nodes); }

}  // namespace nacre::test
