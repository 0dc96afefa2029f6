// Code that the tests of the CPU edge kernels share: awkward graphs, programs by hand, and runs on
// several numbers of threads.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"
#include "nacre/kernel/cpu/sparse.h"

namespace nacre::testing {

inline const std::vector<int64_t> kWidths = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 40, 47, 64, 100, 256, 257, 602};

inline uint32_t random_bits(uint64_t seed, uint64_t i) { return philox(mix_key(seed, 77), 0, i)[0]; }

inline std::vector<float> random_floats(int64_t n, uint64_t seed, float low = -1, float high = 1) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = low + (high - low) * uniform01(random_bits(seed, i));
  return values;
}

struct NamedGraph {
  std::string name;
  Graph graph;
};

// Returns a graph with duplicates and self loops. The last fifth of the vertices is isolated;
// others have no in-edges or no out-edges.
inline Graph random_graph(int64_t nodes, int64_t edges, uint64_t seed, int types = 3) {
  EdgeList list;
  list.num_nodes = nodes;
  list.num_types = types;
  const auto live = static_cast<uint32_t>(std::max<int64_t>(1, nodes * 4 / 5));
  for (int64_t e = 0; e < edges; ++e) {
    const auto i = static_cast<uint64_t>(e);
    // Squaring the number skews the degrees.
    const float skew = uniform01(random_bits(seed, 3 * i));
    list.src.push_back(random_bits(seed, 3 * i + 1) % live);
    list.dst.push_back(static_cast<NodeId>(skew * skew * static_cast<float>(live - 1)));
    if (e % 17 == 0) list.src.back() = list.dst.back();
    if (e % 11 == 5) {
      list.src.back() = list.src[static_cast<size_t>(e - 1)];
      list.dst.back() = list.dst[static_cast<size_t>(e - 1)];
    }
    list.type.push_back(static_cast<uint16_t>(random_bits(seed, 3 * i + 2) % static_cast<uint32_t>(types)));
  }
  return build_graph(std::move(list), "test");
}

// Vertex 1 has 100 000 in-edges (split into pieces), vertex 2 as many out-edges.
inline Graph hub_graph() {
  EdgeList list;
  list.num_nodes = 5000;
  for (uint32_t e = 0; e < 100000; ++e) {
    list.src.push_back(random_bits(5, e) % 5000);
    list.dst.push_back(1);
    list.src.push_back(2);
    list.dst.push_back(random_bits(6, e) % 5000);
  }
  return build_graph(std::move(list), "hub");
}

inline const std::vector<NamedGraph>& awkward_graphs() {
  static const std::vector<NamedGraph> graphs = [] {
    std::vector<NamedGraph> list;
    list.push_back({"one vertex", random_graph(1, 0, 1)});
    list.push_back({"one loop", random_graph(1, 1, 2)});
    list.push_back({"no edges", random_graph(37, 0, 3)});
    list.push_back({"sparse", random_graph(211, 150, 4)});
    list.push_back({"skewed", random_graph(150, 2500, 5)});
    return list;
  }();
  return graphs;
}

// A program and the memory behind it.
class Program {
 public:
  explicit Program(Space domain) { program_.domain = domain; }

  int load(MicroOp op, const void* data, int64_t width) {
    Micro m;
    m.op = op;
    m.operand = operand(const_cast<void*>(data));
    return emit(m, width);
  }
  int root(int64_t width) {
    Micro m;
    m.op = MicroOp::root;
    return emit(m, width);
  }
  int apply(MicroOp op, int64_t width, int a, int b = -1) { return apply(op, width, a, b, Micro()); }
  // `options` gives everything but op, a, b and out.
  int apply(MicroOp op, int64_t width, int a, int b, Micro options) {
    options.op = op;
    options.a = a;
    options.b = b;
    return emit(options, width);
  }
  int apply_with(MicroOp op, int64_t width, int a, const void* data, Micro options = {}) {
    options.op = op;
    options.a = a;
    options.operand = operand(const_cast<void*>(data));
    return emit(options, width);
  }
  void store(int reg, void* data) {
    Micro m;
    m.op = MicroOp::store;
    m.a = reg;
    m.operand = operand(data);
    program_.code.push_back(m);
  }

  const RowProgram& program() const { return program_; }
  RowProgram& program() { return program_; }
  cpu::BoundProgram bound() const { return {&program_, operands_, &step_}; }
  StepContext& step() { return step_; }

 private:
  int operand(void* data) {
    operands_.push_back(data);
    program_.operands.push_back(static_cast<int>(operands_.size()) - 1);
    return static_cast<int>(operands_.size()) - 1;
  }
  int emit(Micro m, int64_t width) {
    m.out = static_cast<int>(program_.widths.size());
    program_.widths.push_back(width);
    program_.code.push_back(m);
    return m.out;
  }

  RowProgram program_;
  std::vector<void*> operands_;
  StepContext step_{11, 4};
};

class TestScratch {
 public:
  explicit TestScratch(int64_t per_thread) : memory_(static_cast<size_t>(4 * per_thread)), per_thread_(per_thread) {}
  cpu::Scratch scratch() { return {memory_.data(), per_thread_}; }

 private:
  std::vector<float> memory_;
  int64_t per_thread_;
};

inline std::vector<float> unset(int64_t n) {
  return std::vector<float>(static_cast<size_t>(n), std::numeric_limits<float>::quiet_NaN());
}

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Calls run() on 1, 2 and 4 threads. `result`, which every run fills again, must have the same
// bytes each time.
template <class T, class F>
void run_on_threads(std::vector<T>& result, const F& run) {
  std::vector<T> first;
  const int before = num_threads();
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    run();
    if (threads == 1) {
      first = result;
    } else {
      EXPECT_TRUE(same_bytes(first, result)) << "result differs on " << threads << " threads";
    }
  }
  set_num_threads(before);
}

inline void expect_close(const std::vector<float>& got, const std::vector<double>& want, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) - want[i]);
    // The comparison is written so that NaN fails.
    ASSERT_TRUE(error <= tolerance * (1 + std::abs(want[i])))
        << what << ": element " << i << " is " << got[i] << ", not " << want[i];
  }
}

// An entry of a row: in-CSR position, source, destination.
struct Edge {
  int64_t position;
  NodeId src, dst;
};
inline std::vector<std::vector<Edge>> edges_by(const Graph& graph, Direction direction) {
  const bool by_dst = direction == Direction::by_dst;
  std::vector<std::vector<Edge>> rows(static_cast<size_t>(by_dst ? graph.num_dst() : graph.num_src()));
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) {
      const NodeId u = graph.col_idx()[e];
      rows[by_dst ? static_cast<size_t>(v) : u].push_back({e, u, static_cast<NodeId>(v)});
    }
  }
  return rows;
}

}  // namespace nacre::testing
