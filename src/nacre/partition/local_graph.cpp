#include "nacre/partition/local_graph.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

constexpr int64_t kLocalChunk = 1 << 12;

// Marks is a set of numbers to which several threads may add at once.
class Marks {
 public:
  explicit Marks(int64_t count) : words_((count + 63) / 64) {}
  void add(int64_t i) {
    const uint64_t bit = uint64_t{1} << (i % 64);
    std::atomic<uint64_t>& word = words_[i / 64];
    if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_relaxed);
  }
  bool has(int64_t i) const { return (words_[i / 64].load(std::memory_order_relaxed) >> (i % 64) & 1) != 0; }

 private:
  std::vector<std::atomic<uint64_t>> words_;
};

class LocalBuilder {
 public:
  LocalBuilder(const Graph& graph, const Partition& partition, int part, EdgeSense sense)
      : graph_(graph), partition_(partition), part_(part), sense_(sense), local_(graph.num_dst()) {}

  LocalGraph build() {
    find_own();
    const std::vector<Marks> sent = mark_sent();
    find_halo();
    order_own(sent);
    for (int p = 0; p < partition_.num_parts; ++p) {
      if (p == part_) continue;
      PeerRows peer{p, sent_to(sent[p]), halo_begin_[p], halo_begin_[p + 1]};
      if (!peer.send.empty() || peer.halo_end > peer.halo_begin) result_.peers.push_back(std::move(peer));
    }
    result_.graph = block();
    return std::move(result_);
  }

 private:
  bool is_own(int64_t v) const { return partition_.part[v] == part_; }

  // Numbers the own vertices in ascending order. order_own() gives them their final numbers.
  void find_own() {
    for (int64_t v = 0; v < graph_.num_dst(); ++v) {
      if (!is_own(v)) continue;
      local_[v] = static_cast<NodeId>(ascending_.size());
      ascending_.push_back(static_cast<NodeId>(v));
    }
    needs_halo_.resize(ascending_.size());
  }

  int64_t num_own() const { return static_cast<int64_t>(ascending_.size()); }

  // Brings the own vertices into the order of LocalGraph::own, and gives them their local numbers.
  void order_own(const std::vector<Marks>& sent) {
    const auto is_sent = [&](int64_t i) {
      for (int p = 0; p < partition_.num_parts; ++p) {
        if (p != part_ && sent[p].has(i)) return true;
      }
      return false;
    };
    // The order is that of the block with edges in their direction. If all edges are turned around
    // here, the rows that need the halo in that block are those that are sent here, and the other
    // way round.
    const bool forward = sense_ == EdgeSense::forward;
    std::vector<uint8_t> group(ascending_.size());
    int64_t end[3] = {0, 0, 0};  // where each group ends
    for (int64_t i = 0; i < num_own(); ++i) {
      const bool needs = forward ? needs_halo_[i] != 0 : is_sent(i), sends = forward ? is_sent(i) : needs_halo_[i] != 0;
      group[i] = needs ? 2 : sends ? 1 : 0;
      for (int g = group[i]; g < 3; ++g) ++end[g];
    }
    result_.alone = end[0];
    result_.inside = end[1];
    int64_t next[3] = {0, end[0], end[1]};
    std::vector<NodeId> own(ascending_.size());
    row_of_.resize(ascending_.size());
    for (int64_t i = 0; i < num_own(); ++i) {
      const int64_t row = next[group[i]]++;
      own[row] = ascending_[i];
      row_of_[i] = local_[ascending_[i]] = static_cast<NodeId>(row);
    }
    result_.own = std::move(own);
  }

  // Returns, for each part, marks at the own vertices of this part that it needs.
  std::vector<Marks> mark_sent() const {
    std::vector<Marks> sent;
    sent.reserve(partition_.num_parts);
    for (int p = 0; p < partition_.num_parts; ++p) sent.emplace_back(p == part_ ? 0 : num_own());
    parallel_for(graph_.num_dst(), kLocalChunk, [&](int64_t b, int64_t e) {
      for (int64_t v = b; v < e; ++v) {
        if (is_own(v)) continue;
        Marks& marks = sent[partition_.part[v]];
        for (int64_t i = graph_.row_ptr()[v]; i < graph_.row_ptr()[v + 1]; ++i) {
          if (is_own(graph_.col_idx()[i])) marks.add(local_[graph_.col_idx()[i]]);
        }
      }
    });
    return sent;
  }

  Array<NodeId> sent_to(const Marks& marks) const {
    std::vector<NodeId> rows;
    for (int64_t i = 0; i < num_own(); ++i) {
      if (marks.has(i)) rows.push_back(row_of_[i]);
    }
    return rows;
  }

  void find_halo() {
    Marks needed(graph_.num_dst());
    parallel_for(num_own(), kLocalChunk, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const int64_t v = ascending_[i];
        for (int64_t k = graph_.row_ptr()[v]; k < graph_.row_ptr()[v + 1]; ++k) {
          if (is_own(graph_.col_idx()[k])) continue;
          needed.add(graph_.col_idx()[k]);
          needs_halo_[i] = 1;
        }
      }
    });
    halo_begin_.assign(partition_.num_parts + 1, 0);
    for (int64_t v = 0; v < graph_.num_dst(); ++v) {
      if (needed.has(v)) ++halo_begin_[partition_.part[v] + 1];
    }
    for (int p = 0; p < partition_.num_parts; ++p) halo_begin_[p + 1] += halo_begin_[p];
    std::vector<int64_t> next(halo_begin_.begin(), halo_begin_.end() - 1);
    std::vector<NodeId> halo(halo_begin_.back());
    for (int64_t v = 0; v < graph_.num_dst(); ++v) {
      if (!needed.has(v)) continue;
      const int64_t at = next[partition_.part[v]]++;
      halo[at] = static_cast<NodeId>(v);
      local_[v] = static_cast<NodeId>(num_own() + at);
    }
    result_.halo = std::move(halo);
  }

  template <class T>
  Array<T> rows_of(const Array<T>& values, const Buffer<int64_t>& row_ptr) const {
    if (values.empty()) return {};
    Buffer<T> out(row_ptr[result_.own.size()]);
    parallel_for(result_.own.size(), kLocalChunk, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const int64_t v = result_.own[i];
        std::copy(values.begin() + graph_.row_ptr()[v], values.begin() + graph_.row_ptr()[v + 1],
                  out.data() + row_ptr[i]);
      }
    });
    return std::move(out).freeze();
  }

  Graph block() const {
    const int64_t own = result_.own.size();
    Buffer<int64_t> row_ptr(own + 1);
    row_ptr[0] = 0;
    for (int64_t i = 0; i < own; ++i) row_ptr[i + 1] = row_ptr[i] + graph_.in_degree(result_.own[i]);
    Buffer<NodeId> columns(row_ptr[own]);
    parallel_for(own, kLocalChunk, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const NodeId* from = graph_.col_idx().data() + graph_.row_ptr()[result_.own[i]];
        for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; ++k) columns[k] = local_[*from++];
      }
    });
    GraphArrays arrays;
    arrays.num_src = own + result_.halo.size();
    arrays.num_dst = own;
    arrays.edge_weight = rows_of(graph_.edge_weight(), row_ptr);
    arrays.edge_type = rows_of(graph_.edge_type(), row_ptr);
    arrays.num_edge_types = graph_.num_edge_types();
    arrays.row_ptr = std::move(row_ptr).freeze();
    arrays.col_idx = std::move(columns).freeze();
    return Graph::trusted(std::move(arrays));
  }

  const Graph& graph_;
  const Partition& partition_;
  int part_;
  EdgeSense sense_;
  Buffer<NodeId> local_;           // local number of each vertex that is own or in the halo
  std::vector<NodeId> ascending_;  // own vertices by their numbers in the whole graph
  std::vector<char> needs_halo_;   // for each vertex in ascending_, whether it needs the halo
  std::vector<NodeId> row_of_;     // for each vertex in ascending_, its local number
  std::vector<int64_t> halo_begin_;
  LocalGraph result_;
};

}  // namespace

LocalGraph local_graph(const Graph& graph, const Partition& partition, int part, EdgeSense sense) {
  NACRE_CHECK(graph.num_src() == graph.num_dst() && partition.part.size() == graph.num_dst(),
              "the partition belongs to another graph");
  NACRE_CHECK(part >= 0 && part < partition.num_parts, "there is no such part");
  return LocalBuilder(graph, partition, part, sense).build();
}

int64_t count_far_destinations(const Graph& graph, const Partition& partition, int part) {
  std::atomic<int64_t> count = 0;
  parallel_for(graph.num_dst(), kLocalChunk, [&](int64_t begin, int64_t end) {
    int64_t found = 0;
    for (int64_t v = begin; v < end; ++v) {
      if (partition.part[v] == part) continue;
      const NodeId* sources = graph.col_idx().data() + graph.row_ptr()[v];
      found += std::any_of(sources, sources + graph.in_degree(v), [&](NodeId s) { return partition.part[s] == part; });
    }
    count += found;
  });
  return count;
}

Array<NodeId> rows_by_number(const LocalGraph& local) {
  if (std::is_sorted(local.own.begin(), local.own.end())) return {};
  std::vector<NodeId> rows(static_cast<size_t>(local.num_own()));
  std::iota(rows.begin(), rows.end(), NodeId{0});
  // Each of the three groups of rows is ascending, so merging them sorts all rows.
  const auto at = [&](int64_t row) { return rows.begin() + static_cast<std::ptrdiff_t>(row); };
  const auto before = [&](NodeId a, NodeId b) { return local.own[a] < local.own[b]; };
  std::inplace_merge(at(0), at(local.alone), at(local.inside), before);
  std::inplace_merge(at(0), at(local.inside), rows.end(), before);
  return rows;
}

Array<NodeId> vertex_numbers(const LocalGraph& local) {
  std::vector<NodeId> numbers(local.own.begin(), local.own.end());
  numbers.insert(numbers.end(), local.halo.begin(), local.halo.end());
  return numbers;
}

Array<EdgeId> edge_numbers(const Graph& whole, const LocalGraph& local) {
  std::vector<EdgeId> numbers(static_cast<size_t>(local.graph.num_edges()));
  parallel_for(local.num_own(), kLocalChunk, [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      auto number = static_cast<EdgeId>(whole.row_ptr()[local.own[v]]);
      for (int64_t e = local.graph.row_ptr()[v]; e < local.graph.row_ptr()[v + 1]; ++e) numbers[e] = number++;
    }
  });
  return numbers;
}

}  // namespace nacre
