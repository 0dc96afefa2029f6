// Defines the reference of the degrees and of the operations that move rows between spaces along an
// attribute of the edges.
#include <algorithm>
#include <cmath>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/kernel/ref/ref_impl.h"

namespace nacre::ref {
namespace {

// Returns the row that attribute `attr` of row r of the space `from` points at. For Attr::self, r
// is a destination or an edge of a half of the graph.
int64_t follow(const Blocks& blocks, Space from, Attr attr, int64_t r) {
  if (from.is_pair() && attr != Attr::type) {
    return blocks.layer(from.layer).pairs(from.kind == SpaceKind::pair_src ? End::src : End::dst).vertex[r];
  }
  switch (attr) {
    case Attr::src:
      return blocks.layer(from.layer).col_idx()[r];
    case Attr::dst:
      return blocks.layer(from.layer).edge_dst()[r];
    case Attr::type:
      return type_of(blocks, from, r);
    case Attr::pair_src:
      return blocks.layer(from.layer).pairs(End::src).of_edge[r];
    case Attr::pair_dst:
      return blocks.layer(from.layer).pairs(End::dst).of_edge[r];
    case Attr::self:
      return from.kind == SpaceKind::edge ? int64_t{blocks.whole_edges(from.layer)[r]} : r;
    case Attr::none:
      break;
  }
  throw InternalError(__FILE__, __LINE__, "the indexing operation has no attribute");
}

// Returns the block to whose edges the rows of operand i belong.
template <class T>
const Graph& edges_of(const Call<T>& c, size_t i) {
  return c.blocks.layer(c.in_type(i).space.layer);
}

template <class T>
void degree(const Call<T>& c) {
  const auto out = c.out();
  const int layer = c.out_type().space.layer;
  const bool in = c.node.attr == Attr::dst;
  const Space edges = Space::edge(in ? layer - 1 : layer);
  std::vector<double> degrees(count(out.rows()), 0);
  for (int64_t e = 0; e < c.blocks.rows(edges); ++e) degrees[count(follow(c.blocks, edges, c.node.attr, e))] += 1;
  store(out, degrees);
}

template <class T>
void typed_degree(const Call<T>& c) {
  const auto out = c.out();
  const Graph& graph = c.blocks.layer(c.out_type().space.layer);
  std::vector<int64_t> of_type(count(graph.num_edge_types()), 0);
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    const int64_t begin = graph.row_ptr()[v];
    const int64_t end = graph.row_ptr()[v + 1];
    for (int64_t e = begin; e < end; ++e) ++of_type[count(edge_type_of(graph, e))];
    for (int64_t e = begin; e < end; ++e) out(e, 0, static_cast<double>(of_type[count(edge_type_of(graph, e))]));
    for (int64_t e = begin; e < end; ++e) of_type[count(edge_type_of(graph, e))] = 0;
  }
}

template <class T>
void index(const Call<T>& c) {
  const auto x = c.in(0);
  const auto out = c.out();
  for (int64_t r = 0; r < out.rows(); ++r) {
    const int64_t from = follow(c.blocks, c.out_type().space, c.node.attr, r);
    for (int64_t j = 0; j < out.row_size(); ++j) out(r, j, x(from, j));
  }
}

template <class T>
void index_add(const Call<T>& c) {
  const auto x = c.in(0);
  const auto out = c.out();
  std::vector<double> sum(count(out.rows() * out.row_size()), 0);
  for (int64_t r = 0; r < x.rows(); ++r) {
    const int64_t to = follow(c.blocks, c.in_type(0).space, c.node.attr, r);
    for (int64_t j = 0; j < x.row_size(); ++j) sum[count(to * x.row_size() + j)] += x(r, j);
  }
  store(out, sum);
}

template <class T>
void index_mean(const Call<T>& c) {
  const auto x = c.in(0);
  const auto out = c.out();
  const Graph& graph = edges_of(c, 0);
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    const int64_t degree = graph.in_degree(v);
    for (int64_t j = 0; j < out.row_size(); ++j) {
      double sum = 0;
      for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) sum += x(e, j);
      out(v, j, degree == 0 ? 0 : sum / static_cast<double>(degree));
    }
  }
}

// Returns the edge to v on which element j of x is largest, the first one of several; -1 if v has
// no edges.
template <class T>
int64_t argmax(const Graph& graph, const Reader<T>& x, int64_t v, int64_t j) {
  if (graph.in_degree(v) == 0) return -1;
  int64_t best = graph.row_ptr()[v];
  for (int64_t e = best + 1; e < graph.row_ptr()[v + 1]; ++e) {
    if (x(e, j) > x(best, j)) best = e;
  }
  return best;
}

template <class T>
void index_max(const Call<T>& c, bool want_position) {
  const auto x = c.in(0);
  const auto out = c.out();
  const Graph& graph = edges_of(c, 0);
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    for (int64_t j = 0; j < out.row_size(); ++j) {
      const int64_t best = argmax(graph, x, v, j);
      if (want_position) {
        out(v, j, static_cast<double>(best));
      } else {
        out(v, j, best < 0 ? 0 : x(best, j));
      }
    }
  }
}

template <class T>
void index_take_max(const Call<T>& c) {
  const auto g = c.in(0);
  const auto best = c.in(1);
  const auto out = c.out();
  const auto& dst = c.blocks.layer(c.out_type().space.layer).edge_dst();
  for (int64_t e = 0; e < out.rows(); ++e) {
    for (int64_t j = 0; j < out.row_size(); ++j) {
      out(e, j, best(dst[e], j) == static_cast<double>(e) ? g(dst[e], j) : 0);
    }
  }
}

template <class T>
void edge_softmax(const Call<T>& c) {
  const auto x = c.in(0);
  const auto out = c.out();
  const Graph& graph = edges_of(c, 0);
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    for (int64_t j = 0; j < out.row_size(); ++j) {
      const int64_t best = argmax(graph, x, v, j);
      double sum = 0;
      for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) sum += std::exp(x(e, j) - x(best, j));
      for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) {
        out(e, j, std::exp(x(e, j) - x(best, j)) / sum);
      }
    }
  }
}

template <class T>
void edge_softmax_grad(const Call<T>& c) {
  const auto g = c.in(0);
  const auto y = c.in(1);
  const auto out = c.out();
  const Graph& graph = edges_of(c, 0);
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    for (int64_t j = 0; j < out.row_size(); ++j) {
      double dot = 0;
      for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) dot += y(e, j) * g(e, j);
      for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) out(e, j, y(e, j) * (g(e, j) - dot));
    }
  }
}

}  // namespace

template <class T>
bool run_index(const Call<T>& call) {
  switch (call.node.op) {
    case Op::degree:
      return degree(call), true;
    case Op::typed_degree:
      return typed_degree(call), true;
    case Op::index:
      return index(call), true;
    case Op::index_add:
      return index_add(call), true;
    case Op::index_mean:
      return index_mean(call), true;
    case Op::index_max:
      return index_max(call, false), true;
    case Op::index_argmax:
      return index_max(call, true), true;
    case Op::index_take_max:
      return index_take_max(call), true;
    case Op::edge_softmax:
      return edge_softmax(call), true;
    case Op::edge_softmax_grad:
      return edge_softmax_grad(call), true;
    default:
      return false;
  }
}
NACRE_REF_FAMILY(run_index);

}  // namespace nacre::ref
