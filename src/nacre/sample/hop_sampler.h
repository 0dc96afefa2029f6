// HopSampler: does what all samplers that go hop by hop have in common, which is everything except
// the choice of edges. Only files of this room include this header.
#pragma once

#include <vector>

#include "nacre/sample/sample.h"
#include "nacre/sample/vertex_table.h"
#include "nacre/tensor/pool.h"

namespace nacre {

class Locality;

// Graphs with more vertices than this use a hash table, because a table with an entry per vertex
// would take more memory and miss the cache more often.
constexpr int64_t kMaxDirectNodes = int64_t{1} << 25;

// Holds the edges of one hop, and the block that is made of them.
struct Hop {
  int64_t num_dst = 0;
  int64_t num_src = 0;
  int64_t num_edges = 0;
  Pooled<int64_t> row_ptr;  // where the edges of each destination begin: num_dst + 1 positions
  // Holds at least num_edges positions in the full graph, ascending within a destination.
  Pooled<int64_t> edges;
  Pooled<float> scale;     // scale of each edge; empty if every edge stands for itself
  Pooled<NodeId> sources;  // source of each edge: its original id, after insert() its local one
  Graph block;
};

template <class Table>
class HopSampler : public BatchSampler {
 public:
  HopSampler(const Graph& graph, const SampleOptions& options, int hops);
  int hops() const override { return static_cast<int>(hops_.size()); }
  void begin(std::span<const NodeId> seeds, const SampleKey& key) override;
  void pick(int hop) override;
  void insert(int hop) override;
  std::span<const NodeId> vertices() const override { return {vertices_.data(), static_cast<size_t>(count_)}; }
  void reindex(int hop) override;
  Sample finish() override;

 protected:
  // Chooses the edges of the destinations vertices()[0, num_dst): fills row_ptr, edges, scale and
  // num_edges.
  virtual void choose(int index, Hop& hop) = 0;

  const Graph& graph_;
  const SampleOptions& options_;
  uint64_t key_ = 0;  // key of the batch's draws
  Pool pool_;

 private:
  void make_room(int64_t more);
  std::vector<Hop> hops_;  // in the order of sampling
  Table table_;
  Buffer<NodeId> vertices_;
  int64_t count_ = 0;
  int64_t num_seeds_ = 0;
};

// These two functions return a sampler for the batches of one thread. If `locality` is given, the
// sampler prefers vertices whose rows are near (locality.h).
std::unique_ptr<BatchSampler> make_neighbor_sampler(const Graph& graph, const SampleOptions& options, int hops,
                                                    int64_t max_direct = kMaxDirectNodes,
                                                    const Locality* locality = nullptr);
std::unique_ptr<BatchSampler> make_layer_sampler(const Graph& graph, const SampleOptions& options, int hops,
                                                 int64_t max_direct = kMaxDirectNodes,
                                                 const Locality* locality = nullptr);

extern template class HopSampler<DirectTable>;
extern template class HopSampler<HashTable>;

}  // namespace nacre
