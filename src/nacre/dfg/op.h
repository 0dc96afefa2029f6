// The operations of the DFG. Indexing operations move rows between spaces along an edge attribute;
// neural operations stay inside one space; communication moves rows between ranks; leaves bring
// values in. This list is the specification that the reference interpreter, the gradients and every
// back end follow.
//
// Spaces (see dfg.h):
//   v0, v1, …  the vertices: sources of block 0, destinations of block 0 (sources of block 1), …
//   h0, h1, …  on one of several ranks: its own vertices of v0, v1, … and then its halo, which are
//              the sources of block 0, 1, …; v0, v1, … are then its own vertices only
//   e0, e1, …  the edges of a block
//   s0, d0, …  the distinct (source, type) and (destination, type) pairs of a block's edges
//   t          the edge types
//   p          parameters (one row)
//   r5, …      a space of so many rows, such as the vertices of one kind
//   k0, k1, …  on sampled blocks: the vertices of v0 that are of kind 0, 1, …, in the order of v0
// Rows are written x[i]; `…` stands for the dimensions of a row.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "nacre/dfg/activations.h"

namespace nacre {

enum class Op : uint8_t {
  // ---- leaves
  input,  // value bound by name at run time: features, labels, masks, edge weights
  param,  // value bound by name, trainable or (with `state`) kept but not trained
  // v[]: number of edges of each vertex along attr: dst gives the in-degree in v(l+1), src the
  // out-degree in v(l).
  degree,
  typed_degree,  // e[]: number of edges with the same destination and type as this edge
  constant,      // every element is alpha

  // ---- indexing
  // y[r] = x[attr(r)].  src: v(l) or h(l)→e(l) or s(l); dst: v(l+1)→e(l) or d(l);
  // type: t→e(l), s(l) or d(l); self: v(l) or h(l)→v(l+1), or with ints=m→v(m) (the first rows);
  // self with ints=m also: e(l)→e(m), where block m has some of the edges of block l (CoverLayers);
  // pair_src: s(l)→e(l); pair_dst: d(l)→e(l)
  index,
  // y[i] = Σ x[r] over attr(r) = i, the transpose of index. Rows that nothing points at are 0.
  // Along src and self the result is in v(l), or with ints=1 in h(l).
  index_add,
  index_mean,  // attr dst: mean over the edges of each destination; 0 if it has none
  index_max,   // attr dst: elementwise maximum over the edges of each destination; 0 if it has none
  // attr dst: position (i32) of the first edge with the maximum of index_max; -1 if there is none
  index_argmax,
  index_take_max,  // (g: v(l+1)[…], argmax) → e(l)[…]: g[dst(r)] if argmax[dst(r)] = r, else 0
  // attr dst: softmax over the edges of each destination, separately for each row element
  edge_softmax,
  edge_softmax_grad,  // (g, y) → y · (g − Σ y·g over the edges of the same destination)
  // (z: v(l)[4H] or e(l)[4H], w: p[H,4H]) → v(l+1)[H]: the last hidden state of an LSTM that runs
  // over the in-neighbours in edge order. The gates (i, f, g, o) of step t are z[src(t)] (z[t] on
  // edges) + h·w; h = c = 0 at first. The result is 0 for a vertex without neighbours.
  lstm,
  lstm_grad_z,  // (g: v(l+1)[H], z, w) → like z
  lstm_grad_w,  // (g, z, w) → p[H,4H]
  // The next three operations compute an LSTM and its gradients with the gates of the forward pass
  // kept, where lstm_grad_z and lstm_grad_w compute the gates again.
  lstm_gates,  // (z, w) → e(l)[4H]: the gates of every step, after their activations
  // (g: v(l+1)[H], gates: e(l)[4H], w) → e(l)[4H]: gradient of the gates before their activations
  lstm_gates_grad,
  lstm_states,  // (gates: e(l)[4H]) → e(l)[H]: h before every step

  // ---- communication between ranks (distribute.h). All ranks must call it in the same order. With
  // one rank, every operation here copies its operand.
  // v(l)[…] → h(l)[…]: the rows of the rank's own vertices, then the rows of its halo, which their
  // owners send
  exchange,
  // h(l)[…] → v(l)[…], the transpose of exchange: the rows of the rank's own vertices plus the rows
  // that the other ranks have in their halos for these vertices, added in the order of the ranks
  exchange_add,
  all_reduce,  // p[…] or t[…]: the sum over all ranks, in their order
  // v(l)[H] → v(w)[n], where w is a layer of the whole graph on each rank (RankViews):
  // columns [begin, begin+n) of the rows of all vertices, from the ranks that own them.
  // ints = w, begin, n. A rank whose n is 0 gets one column of zeros.
  to_columns,
  // v(w)[n] → v(l)[H], the transpose of to_columns: the rows of the rank's own vertices, with the
  // columns that the ranks have. ints = l, begin, n, H.
  to_rows,

  // ---- neural: matrices
  matmul,       // (x: s[K], w: p[K,N]) → s[N]: x[r]·w
  matmul_t,     // (g: s[N], w: p[K,N]) → s[K]: g[r]·wᵀ
  weight_grad,  // (x: s[K], g: s[N]) → p[K,N]: Σ x[r]ᵀ·g[r]
  // (x: e[K], w: t[K,N]) → e[N]: x[r]·w[type(r)]; likewise on s and d, whose rows have a type, too
  typed_matmul,
  typed_matmul_t,     // (g: e[N], w: t[K,N]) → e[K]: g[r]·w[type(r)]ᵀ
  typed_weight_grad,  // (x: e[K], g: e[N]) → t[K,N]: Σ x[r]ᵀ·g[r] over the edges of each type

  // ---- neural: elementwise. add, sub and mul broadcast: an operand in p stands for every row; an
  // operand whose dims are a prefix of the other's is repeated along the rest ([H] with [H,D]; []
  // with anything).
  add,
  sub,
  mul,
  scale,  // alpha · x
// The functions of activations.h (relu, leaky_relu, elu, …), then their gradients (relu_grad, …) of
// the operands (g, y), where y is the result of the function or, if its row says so, its operand.
#define NACRE_OP(name, ...) name,
#define NACRE_GRADIENT_OP(name, ...) name##_grad,
  NACRE_ACTIVATIONS(NACRE_OP) NACRE_ACTIVATIONS(NACRE_GRADIENT_OP)
#undef NACRE_OP
#undef NACRE_GRADIENT_OP
      inv,   // 1/x, 0 where x = 0
  inv_sqrt,  // 1/√x, 0 where x ≤ 0
  // x/(1−alpha) if kept, else 0; element i of the tensor is kept if dropout_keep(…, salt, i)
  // (random.h)
  dropout,

  // ---- neural: row shapes
  row_sum,  // dims [d0 … dn] → the first `rank` of them, summed over the rest
  // repeats x to the (space, dims) of the node: from p to every row of the space, or from a prefix
  // of the dims to all dims, or both
  expand,
  reshape,  // the same row elements under other dims
  concat,   // (a, b): along the last dim
  slice,    // elements [begin, begin+len) of the last dim
  // Transpose of slice: the last dim becomes `total`, x is at [begin, begin+len), 0 elsewhere.
  pad,

  // ---- neural: across rows
  column_sum,      // s[…] → p[…]: Σ over all rows
  column_moments,  // s[F] → p[2,F]: mean and (biased) variance of every column over all rows
  // (x: s[F], m: p[2,F]) → (x − m0)/√(m1 + alpha). If m = column_moments(x), gradients flow through
  // m.
  standardize,
  standardize_grad,  // (g, x, m): gradient of standardize(x, column_moments(x)) for x
  // (x − mean)/√(variance + alpha) over the elements of each row (the core of layer norm)
  row_normalize,
  row_normalize_grad,  // (g, x)

  // ---- neural: spaces of so many rows
  // (a: r[…], b: r[…], …) → v[…] or r[…]: the rows of all operands, in order; or (a: k0[…], b:
  // k1[…], …) → v0[…]: each vertex has its row of the operand of its kind
  join_rows,
  // v[…] or r[…] → r<len>[…]: rows [begin, begin+len); or with ints=k, v0[…] → k<k>[…]: the rows of
  // the vertices of kind k
  slice_rows,

  // ---- neural: losses (scalars are p[]). For nll, bce and their gradients, alpha is the label
  // smoothing (kernel/cpu/loss.h).
  log_softmax,       // over the last dim (row dims [C])
  log_softmax_grad,  // (g, y) → g − eʸ·Σg
  // (lp: s[C], label: s[] i32, weight: s[]) → p[]: −Σ weight[r]·lp[r, label[r]]; rows with a
  // negative label are left out
  nll,
  nll_grad,  // (lp, label, weight, g: p[]) → s[C]
  // (x: s[C] logits, target: s[C] u8, weight: s[]) → p[]: Σ weight[r]·Σ_c (log(1+eˣ) − target·x)
  bce,
  bce_grad,  // (x, target, weight, g: p[]) → s[C]
  l2,        // x → p[]: ½·Σ x²
  count_     // number of operations
};

// The attribute that an indexing operation follows.
enum class Attr : uint8_t { none, src, dst, type, self, pair_src, pair_dst };

enum class OpClass : uint8_t { leaf, indexing, communication, neural };

inline constexpr int kAnyInputs = -1;  // one input or more

struct OpInfo {
  std::string_view name;
  OpClass op_class;
  int num_inputs;
  // Whether element i of an output row depends only on element i of the operands' rows (or on what
  // is broadcast to it).
  bool elementwise;
};

const OpInfo& op_info(Op op);

// Holds a row of activations.h.
struct ActivationInfo {
  std::string_view name;
  Op op;
  Op gradient;
  double alpha;       // kNoAlpha: the function has none
  bool reads_output;  // the gradient reads the result of the function; false: its operand
  std::string_view cuda_value;
  std::string_view cuda_gradient;
  bool has_alpha() const { return alpha == alpha; }
};
std::span<const ActivationInfo> activations();
// Returns the row that defines `op` as a function or as a gradient; nullptr if there is none.
const ActivationInfo* find_activation(Op op);

Op parse_op(std::string_view name);  // throws UserError
std::string_view attr_name(Attr attr);
Attr parse_attr(std::string_view name);  // throws UserError

}  // namespace nacre
