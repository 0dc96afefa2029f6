#include "support/ranks.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <thread>

#include "nacre/dfg/columns.h"
#include "nacre/dfg/distribute.h"
#include "nacre/dfg/known_values.h"
#include "nacre/graph/reversed.h"

namespace nacre::test {
namespace {

// Holds what the ranks show each other.
struct Meeting {
  explicit Meeting(const std::vector<Rank>& all)
      : ranks(all), shown(all.size()), gate(static_cast<std::ptrdiff_t>(all.size())) {
    for (size_t r = 0; r < all.size(); ++r) {
      shares.push_back(2.0 - static_cast<double>(r % 3));
      for (int64_t i = 0; i < all[r].num_own; ++i) {
        owner[all[r].vertices[i]] = {r, i};
      }
    }
  }

  const std::vector<Rank>& ranks;
  std::vector<double> shares;  // the share of each rank in the columns: 2, 1, 0, 2, …
  std::vector<const void*> shown;
  std::barrier<> gate;
  std::map<NodeId, std::pair<size_t, int64_t>> owner;  // rank and row of each vertex
};

class ThreadLinks : public RankLinks {
 public:
  ThreadLinks(std::shared_ptr<Meeting> meeting, size_t rank) : meeting_(std::move(meeting)), rank_(rank) {}

  int rank() const override { return static_cast<int>(rank_); }
  const std::vector<double>& shares() const override { return meeting_->shares; }
  const Array<NodeId>& vertex_ids() const override { return me().vertices; }
  const Array<EdgeId>& edge_ids() const override { return me().edges; }

  int64_t total_rows(Space space) const override {
    if (space.kind == SpaceKind::param || space.kind == SpaceKind::type) return Blocks::full(me().graph, 1).rows(space);
    int64_t total = 0;
    for (const Rank& rank : meeting_->ranks) {
      total += space.on_vertices() ? rank.num_own : Blocks::full(rank.graph, space.layer + 1).rows(space);
    }
    return total;
  }

  void exchange(const void* own, void* all, int64_t row_bytes, bool reversed) override {
    meet(own, [&] {
      auto* to = static_cast<char*>(all);
      for (const NodeId vertex : vertices_of(me(), reversed)) {
        const auto [rank, row] = meeting_->owner.at(vertex);
        std::memcpy(to, static_cast<const char*>(meeting_->shown[rank]) + row * row_bytes, row_bytes);
        to += row_bytes;
      }
    });
  }
  void exchange_add(const float* all, float* own, int64_t width, bool reversed) override {
    add_rows(all, own, width, reversed);
  }
  void exchange_add(const double* all, double* own, int64_t width, bool reversed) override {
    add_rows(all, own, width, reversed);
  }
  void to_columns(const void* own, void* all, int64_t width, int64_t element_bytes) override {
    const std::vector<int64_t> bounds = column_bounds(width, shares());
    const int64_t begin = bounds[rank_] * element_bytes, bytes = bounds[rank_ + 1] * element_bytes - begin;
    meet(own, [&] {
      auto* to = static_cast<char*>(all);
      for (const auto& [vertex, place] : meeting_->owner) {
        const auto* from =
            static_cast<const char*>(meeting_->shown[place.first]) + place.second * width * element_bytes;
        if (bytes > 0) std::memcpy(to + vertex * bytes, from + begin, bytes);
        if (bytes == 0) std::memset(to + vertex * element_bytes, 0, element_bytes);
      }
    });
  }
  void to_rows(const void* all, void* own, int64_t width, int64_t element_bytes) override {
    const std::vector<int64_t> bounds = column_bounds(width, shares());
    meet(all, [&] {
      auto* to = static_cast<char*>(own);
      for (int64_t i = 0; i < me().num_own; ++i) {
        for (size_t r = 0; r < meeting_->ranks.size(); ++r) {
          const int64_t bytes = (bounds[r + 1] - bounds[r]) * element_bytes;
          const auto* from = static_cast<const char*>(meeting_->shown[r]) + me().vertices[i] * bytes;
          if (bytes > 0) std::memcpy(to + (i * width + bounds[r]) * element_bytes, from, bytes);
        }
      }
    });
  }
  void all_reduce(float* values, int64_t count) override { reduce(values, count); }
  void all_reduce(double* values, int64_t count) override { reduce(values, count); }

 private:
  const Rank& me() const { return meeting_->ranks[rank_]; }
  static const Array<NodeId>& vertices_of(const Rank& rank, bool reversed) {
    return reversed ? rank.reversed_vertices : rank.vertices;
  }

  // Shows the memory `shown` to the other ranks, and calls read() while all ranks show their
  // memory.
  template <class Read>
  void meet(const void* shown, Read read) {
    meeting_->shown[rank_] = shown;
    meeting_->gate.arrive_and_wait();
    read();
    meeting_->gate.arrive_and_wait();
  }

  template <class T>
  void add_rows(const T* all, T* own, int64_t width, bool reversed) {
    meet(all, [&] {
      std::copy_n(all, me().num_own * width, own);
      for (size_t r = 0; r < meeting_->ranks.size(); ++r) {
        const Rank& other = meeting_->ranks[r];
        const auto* theirs = static_cast<const T*>(meeting_->shown[r]);
        const Array<NodeId>& vertices = vertices_of(other, reversed);
        for (int64_t i = other.num_own; i < vertices.size(); ++i) {
          const auto [rank, row] = meeting_->owner.at(vertices[i]);
          for (int64_t j = 0; rank == rank_ && j < width; ++j) own[row * width + j] += theirs[i * width + j];
        }
      }
    });
  }

  template <class T>
  void reduce(T* values, int64_t count) {
    std::vector<T> sum(static_cast<size_t>(count), 0);
    meet(values, [&] {
      for (const void* shown : meeting_->shown) {
        for (int64_t i = 0; i < count; ++i) sum[i] += static_cast<const T*>(shown)[i];
      }
    });
    std::copy(sum.begin(), sum.end(), values);
  }

  std::shared_ptr<Meeting> meeting_;
  size_t rank_;
};

std::vector<double> rows_of(const std::vector<double>& values, int64_t width, const uint32_t* ids, int64_t count) {
  std::vector<double> rows;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < width; ++j) rows.push_back(values[int64_t{ids[i]} * width + j]);
  }
  return rows;
}

}  // namespace

namespace {

std::vector<Rank> split_edges(const Graph& graph, const std::vector<int>& part, int ranks) {
  std::vector<Rank> shares;
  for (int r = 0; r < ranks; ++r) {
    std::vector<NodeId> vertices;
    for (size_t v = 0; v < part.size(); ++v) {
      if (part[v] == r) vertices.push_back(static_cast<NodeId>(v));
    }
    Rank rank;
    rank.num_own = static_cast<int64_t>(vertices.size());
    std::map<NodeId, NodeId> local;
    for (size_t i = 0; i < vertices.size(); ++i) local[vertices[i]] = static_cast<NodeId>(i);
    std::vector<int64_t> row_ptr{0};
    std::vector<NodeId> sources;
    std::vector<EdgeId> edges;
    std::vector<float> weight;
    std::vector<uint16_t> type;
    for (int64_t i = 0; i < rank.num_own; ++i) {
      for (int64_t e = graph.row_ptr()[vertices[i]]; e < graph.row_ptr()[vertices[i] + 1]; ++e) {
        const NodeId source = graph.col_idx()[e];
        if (local.try_emplace(source, static_cast<NodeId>(vertices.size())).second) vertices.push_back(source);
        sources.push_back(local[source]);
        edges.push_back(static_cast<EdgeId>(e));
        if (graph.weighted()) weight.push_back(graph.edge_weight()[e]);
        if (graph.typed()) type.push_back(graph.edge_type()[e]);
      }
      row_ptr.push_back(static_cast<int64_t>(sources.size()));
    }
    GraphArrays arrays;
    arrays.num_src = static_cast<int64_t>(vertices.size());
    arrays.num_dst = rank.num_own;
    arrays.row_ptr = std::move(row_ptr);
    arrays.col_idx = std::move(sources);
    arrays.edge_weight = std::move(weight);
    arrays.edge_type = std::move(type);
    arrays.num_edge_types = graph.num_edge_types();
    rank.graph = Graph::trusted(std::move(arrays));
    rank.vertices = std::move(vertices);
    rank.edges = std::move(edges);
    shares.push_back(std::move(rank));
  }
  return shares;
}

}  // namespace

std::vector<Rank> split_graph(const Graph& graph, const std::vector<int>& part, int ranks) {
  std::vector<Rank> shares = split_edges(graph, part, ranks);
  const std::vector<Rank> reversed = split_edges(reversed_graph(graph), part, ranks);
  for (int r = 0; r < ranks; ++r) {
    shares[r].reversed = reversed[r].graph;
    shares[r].reversed_vertices = reversed[r].vertices;
    shares[r].reversed_edges = edges_of_reversed(graph, reversed[r].edges);
  }
  return shares;
}

Array<EdgeId> edges_of_reversed(const Graph& graph, const Array<EdgeId>& edges) {
  std::vector<EdgeId> numbers;
  for (const EdgeId e : edges) numbers.push_back(graph.out().edge_id[e]);
  return numbers;
}

void run_ranks(const std::vector<Rank>& ranks, int layers, const Graph& whole,
               const std::function<void(int, const Blocks&)>& run) {
  const auto meeting = std::make_shared<Meeting>(ranks);
  std::vector<std::exception_ptr> errors(ranks.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < ranks.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        run(static_cast<int>(r), Blocks::of_rank({ranks[r].graph, whole, ranks[r].reversed}, layers,
                                                 std::make_shared<ThreadLinks>(meeting, r)));
      } catch (...) {
        errors[r] = std::current_exception();
      }
      // A rank that has failed leaves the barrier, so that the others do not wait for it.
      meeting->gate.arrive_and_drop();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

ref::Bindings bindings_of(const Rank& rank, const Dfg& dfg, const ref::Bindings& whole) {
  ref::Bindings bindings;
  for (const Node& leaf : dfg.nodes()) {
    if (leaf.op != Op::input && leaf.op != Op::param) continue;
    const std::vector<double>& values = whole.at(leaf.name);
    const int64_t width = leaf.type.row_size();
    bindings[whole_leaf(leaf.name)] = values;
    if (leaf.type.space.kind == SpaceKind::vertex) {
      bindings[leaf.name] = rows_of(values, width, rank.vertices.data(), rank.num_own);
      bindings[halo_leaf(leaf.name)] = rows_of(values, width, rank.vertices.data(), rank.vertices.size());
      bindings[reversed_leaf(leaf.name)] =
          rows_of(values, width, rank.reversed_vertices.data(), rank.reversed_vertices.size());
    } else if (leaf.type.space.kind == SpaceKind::edge) {
      bindings[leaf.name] = rows_of(values, width, rank.edges.data(), rank.edges.size());
      bindings[reversed_leaf(leaf.name)] =
          rows_of(values, width, rank.reversed_edges.data(), rank.reversed_edges.size());
    } else {
      bindings[leaf.name] = values;
    }
  }
  return bindings;
}

}  // namespace nacre::test
