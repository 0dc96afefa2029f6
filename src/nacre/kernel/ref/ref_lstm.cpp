// Defines the reference of the LSTM aggregator: the forward pass, and the backward pass through the
// steps of each destination separately. Only the operations on gates keep values between the two
// passes.
#include <cmath>
#include <vector>

#include "nacre/kernel/ref/ref_impl.h"

namespace nacre::ref {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The states of one destination's sequence. Step t reads states t and writes states t + 1. Gate (k,
// j) of step t is at gates[(t·4 + k)·H + j], with k in the order i, f, g, o.
struct Trace {
  int64_t hidden;
  int64_t steps;
  std::vector<double> gates;
  std::vector<double> c;
  std::vector<double> h;

  double& gate(int64_t t, int64_t k, int64_t j) { return gates[count((t * 4 + k) * hidden + j)]; }
  double& c_at(int64_t t, int64_t j) { return c[count(t * hidden + j)]; }
  double& h_at(int64_t t, int64_t j) { return h[count(t * hidden + j)]; }
  // Computes the states after step t from the gates of step t.
  void advance(int64_t t) {
    for (int64_t j = 0; j < hidden; ++j) {
      c_at(t + 1, j) = gate(t, 1, j) * c_at(t, j) + gate(t, 0, j) * gate(t, 2, j);
      h_at(t + 1, j) = gate(t, 3, j) * std::tanh(c_at(t + 1, j));
    }
  }
};

// Returns the row of z that edge e reads: that of its source, or row e if z has a row for each
// edge.
int64_t gate_row(const Graph& graph, bool on_edges, int64_t e) { return on_edges ? e : graph.col_idx()[e]; }

template <class T>
Trace trace(const Call<T>& call, size_t operand, int64_t v) {
  const Graph& graph = call.blocks.layer(call.in_type(operand).space.layer);
  const bool on_edges = call.in_type(operand).space.kind == SpaceKind::edge;
  const auto z = call.in(operand);
  const auto w = call.in(operand + 1);
  const int64_t hidden = z.row_size() / 4;
  const int64_t steps = graph.in_degree(v);
  Trace run{.hidden = hidden, .steps = steps, .gates = {}, .c = {}, .h = {}};
  run.gates.resize(count(steps * 4 * hidden));
  run.c.resize(count((steps + 1) * hidden));
  run.h.resize(count((steps + 1) * hidden));
  for (int64_t t = 0; t < steps; ++t) {
    const int64_t row = gate_row(graph, on_edges, graph.row_ptr()[v] + t);
    for (int64_t column = 0; column < 4 * hidden; ++column) {
      double sum = z(row, column);
      for (int64_t k = 0; k < hidden; ++k) sum += run.h_at(t, k) * w(0, k * 4 * hidden + column);
      run.gates[count(t * 4 * hidden + column)] = column / hidden == 2 ? std::tanh(sum) : sigmoid(sum);
    }
    run.advance(t);
  }
  return run;
}

template <class T>
void lstm(const Call<T>& call) {
  const auto out = call.out();
  const Graph& graph = call.blocks.layer(call.in_type(0).space.layer);
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    Trace run = trace(call, 0, v);
    for (int64_t j = 0; j < run.hidden; ++j) out(v, j, run.h_at(run.steps, j));
  }
}

// Returns the gradient of the gates of step t before their activations. dc is the gradient of the
// cell state after the step on entry, and of the cell state before the step on return.
std::vector<double> gate_gradient(Trace& run, int64_t t, const std::vector<double>& dh, std::vector<double>& dc) {
  std::vector<double> grad(count(4 * run.hidden));
  for (int64_t j = 0; j < run.hidden; ++j) {
    const double i = run.gate(t, 0, j);
    const double f = run.gate(t, 1, j);
    const double g = run.gate(t, 2, j);
    const double o = run.gate(t, 3, j);
    const double squashed = std::tanh(run.c_at(t + 1, j));
    const double d = dc[count(j)] + dh[count(j)] * o * (1 - squashed * squashed);
    grad[count(j)] = d * g * i * (1 - i);
    grad[count(run.hidden + j)] = d * run.c_at(t, j) * f * (1 - f);
    grad[count(2 * run.hidden + j)] = d * i * (1 - g * g);
    grad[count(3 * run.hidden + j)] = dh[count(j)] * squashed * o * (1 - o);
    dc[count(j)] = d * f;
  }
  return grad;
}

// Computes a gradient of lstm from the operands (g, z, w): that of z if want_z is set, otherwise
// that of w.
template <class T>
void lstm_grad(const Call<T>& call, bool want_z) {
  const auto g = call.in(0);
  const auto z = call.in(1);
  const auto w = call.in(2);
  const Graph& graph = call.blocks.layer(call.in_type(1).space.layer);
  const bool on_edges = call.in_type(1).space.kind == SpaceKind::edge;
  const int64_t width = z.row_size();
  std::vector<double> dz(count(z.rows() * width), 0);
  std::vector<double> dw(count(w.row_size()), 0);
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    Trace run = trace(call, 1, v);
    std::vector<double> dc(count(run.hidden), 0);
    std::vector<double> dh(count(run.hidden));
    for (int64_t j = 0; j < run.hidden; ++j) dh[count(j)] = g(v, j);
    for (int64_t t = run.steps - 1; t >= 0; --t) {
      const std::vector<double> grad = gate_gradient(run, t, dh, dc);
      const int64_t row = gate_row(graph, on_edges, graph.row_ptr()[v] + t);
      for (int64_t column = 0; column < width; ++column) dz[count(row * width + column)] += grad[count(column)];
      for (int64_t k = 0; k < run.hidden; ++k) {
        double sum = 0;
        for (int64_t column = 0; column < width; ++column) {
          sum += grad[count(column)] * w(0, k * width + column);
          dw[count(k * width + column)] += run.h_at(t, k) * grad[count(column)];
        }
        dh[count(k)] = sum;
      }
    }
  }
  store(call.out(), want_z ? dz : dw);
}

template <class T>
void lstm_gates(const Call<T>& call) {
  const auto out = call.out();
  const Graph& graph = call.blocks.layer(call.in_type(0).space.layer);
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    const Trace run = trace(call, 0, v);
    const int64_t width = 4 * run.hidden;
    for (int64_t i = 0; i < run.steps * width; ++i) {
      out(graph.row_ptr()[v] + i / width, i % width, run.gates[count(i)]);
    }
  }
}

// Returns the states of the sequence of v, recomputed from kept gates.
template <class T>
Trace replay(const Call<T>& call, size_t operand, int64_t v) {
  const Graph& graph = call.blocks.layer(call.in_type(operand).space.layer);
  const auto gates = call.in(operand);
  const int64_t width = gates.row_size();
  const int64_t hidden = width / 4;
  const int64_t steps = graph.in_degree(v);
  Trace run{.hidden = hidden, .steps = steps, .gates = {}, .c = {}, .h = {}};
  run.gates.resize(count(steps * width));
  run.c.resize(count((steps + 1) * hidden));
  run.h.resize(count((steps + 1) * hidden));
  for (int64_t i = 0; i < steps * width; ++i) {
    run.gates[count(i)] = gates(graph.row_ptr()[v] + i / width, i % width);
  }
  for (int64_t t = 0; t < steps; ++t) run.advance(t);
  return run;
}

template <class T>
void lstm_gates_grad(const Call<T>& call) {
  const auto g = call.in(0);
  const auto w = call.in(2);
  const auto out = call.out();
  const Graph& graph = call.blocks.layer(call.in_type(1).space.layer);
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    Trace run = replay(call, 1, v);
    const int64_t width = 4 * run.hidden;
    std::vector<double> dc(count(run.hidden), 0);
    std::vector<double> dh(count(run.hidden));
    for (int64_t j = 0; j < run.hidden; ++j) dh[count(j)] = g(v, j);
    for (int64_t t = run.steps - 1; t >= 0; --t) {
      const std::vector<double> grad = gate_gradient(run, t, dh, dc);
      for (int64_t column = 0; column < width; ++column) out(graph.row_ptr()[v] + t, column, grad[count(column)]);
      for (int64_t k = 0; k < run.hidden; ++k) {
        dh[count(k)] = 0;
        for (int64_t column = 0; column < width; ++column) {
          dh[count(k)] += grad[count(column)] * w(0, k * width + column);
        }
      }
    }
  }
}

template <class T>
void lstm_states(const Call<T>& call) {
  const auto out = call.out();
  const Graph& graph = call.blocks.layer(call.in_type(0).space.layer);
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    Trace run = replay(call, 0, v);
    for (int64_t i = 0; i < run.steps * run.hidden; ++i) {
      out(graph.row_ptr()[v] + i / run.hidden, i % run.hidden, run.h[count(i)]);
    }
  }
}

}  // namespace

template <class T>
bool run_lstm(const Call<T>& call) {
  switch (call.node.op) {
    case Op::lstm:
      return lstm(call), true;
    case Op::lstm_grad_z:
      return lstm_grad(call, true), true;
    case Op::lstm_grad_w:
      return lstm_grad(call, false), true;
    case Op::lstm_gates:
      return lstm_gates(call), true;
    case Op::lstm_gates_grad:
      return lstm_gates_grad(call), true;
    case Op::lstm_states:
      return lstm_states(call), true;
    default:
      return false;
  }
}
NACRE_REF_FAMILY(run_lstm);

}  // namespace nacre::ref
