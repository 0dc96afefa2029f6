#include "nacre/partition/local_graph.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

constexpr int64_t kChunk = 1 << 12;

// A set of numbers to which several threads add.
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
  LocalBuilder(const Graph& graph, const Partition& partition, int part)
      : graph_(graph), partition_(partition), part_(part), local_(graph.num_dst()) {}

  LocalGraph build() {
    find_own();
    const std::vector<Marks> sent = mark_sent();
    find_halo();
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

  void find_own() {
    std::vector<NodeId> own;
    for (int64_t v = 0; v < graph_.num_dst(); ++v) {
      if (!is_own(v)) continue;
      local_[v] = static_cast<NodeId>(own.size());
      own.push_back(static_cast<NodeId>(v));
    }
    result_.own = std::move(own);
  }

  // Marks, for each part, the own vertices that it needs.
  std::vector<Marks> mark_sent() const {
    std::vector<Marks> sent;
    sent.reserve(partition_.num_parts);
    for (int p = 0; p < partition_.num_parts; ++p) sent.emplace_back(p == part_ ? 0 : result_.own.size());
    parallel_for(graph_.num_dst(), kChunk, [&](int64_t b, int64_t e) {
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
    for (int64_t i = 0; i < result_.own.size(); ++i) {
      if (marks.has(i)) rows.push_back(static_cast<NodeId>(i));
    }
    return rows;
  }

  void find_halo() {
    Marks needed(graph_.num_dst());
    parallel_for(result_.own.size(), kChunk, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const int64_t v = result_.own[i];
        for (int64_t k = graph_.row_ptr()[v]; k < graph_.row_ptr()[v + 1]; ++k) {
          if (!is_own(graph_.col_idx()[k])) needed.add(graph_.col_idx()[k]);
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
      local_[v] = static_cast<NodeId>(result_.own.size() + at);
    }
    result_.halo = std::move(halo);
  }

  template <class T>
  Array<T> rows_of(const Array<T>& values, const Buffer<int64_t>& row_ptr) const {
    if (values.empty()) return {};
    Buffer<T> out(row_ptr[result_.own.size()]);
    parallel_for(result_.own.size(), kChunk, [&](int64_t b, int64_t e) {
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
    parallel_for(own, kChunk, [&](int64_t b, int64_t e) {
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
  Buffer<NodeId> local_;  // of each vertex of the whole graph that is own or in the halo
  std::vector<int64_t> halo_begin_;
  LocalGraph result_;
};

}  // namespace

LocalGraph local_graph(const Graph& graph, const Partition& partition, int part) {
  NACRE_CHECK(graph.num_src() == graph.num_dst() && partition.part.size() == graph.num_dst(),
              "a partition of another graph");
  NACRE_CHECK(part >= 0 && part < partition.num_parts, "there is no such part");
  return LocalBuilder(graph, partition, part).build();
}

}  // namespace nacre
