// Samplers: from a batch of seed vertices to the blocks (message-flow graphs) a model runs on.
//
// What is drawn depends on the graph, the options and the key (seed, epoch, batch) alone: every
// number is a Philox counter of (key, hop, vertex, draw), so the same sample comes out on any
// number of threads and on any device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/graph/graph.h"

namespace nacre {

struct SampleOptions {
  std::string sampler = "neighbor";  // a name of samplers()
  int layers = 0;                    // blocks; 0: one per entry of fanout
  // Per hop; the first is the hop next to the seeds, as in PyG. -1: all. The number of edges that
  // each vertex draws, or, of the sampler `layer`, the number of vertices that the hop draws.
  std::vector<int> fanout;
  // Per hop and edge type instead (neighbor, typed graphs): [hop][type]. 0: none of that type.
  std::vector<std::vector<int>> type_fanout;
  bool replace = false;       // an edge may be drawn more than once
  bool weighted = false;      // by edge weights instead of uniformly
  int64_t budget = 0;         // saint: vertices (or edges, or roots of walks) drawn for a subgraph
  int walk_length = 2;        // saint_walk
  int64_t norm_samples = 50;  // saint: subgraphs drawn beforehand to estimate how often vertices and edges come up
  uint64_t seed = 0;
};

// Which sample: the same key, the same sample.
struct SampleKey {
  uint64_t epoch = 0;
  uint64_t batch = 0;
};

// Local ids: the destinations of a block are the first num_dst of its sources; v0 is blocks[0]'s
// sources. So `vertices` names the vertices of every space: v(l) is its first blocks[l].num_src(),
// the seeds its first num_seeds.
struct Sample {
  std::vector<Graph> blocks;  // in the order of computation: the last one's destinations are the seeds
  Array<NodeId> vertices;     // original ids, the seeds first, then hop by hop
  int64_t num_seeds = 0;
  // Per block: the in-CSR position of every edge in the full graph. Edges of a destination keep
  // their order there.
  std::vector<Array<int64_t>> edges;
  // Per block, or empty where every edge stands for itself alone (a hop of fan-out -1): Σ scale·m
  // over a destination's sampled edges has Σ m over all its edges as its expectation; edges that
  // can never be drawn (weight 0 when drawing by weight, a type of fan-out 0) are left out of both.
  // Uniform draws: degree / drawn, of the edge's type where types have fan-outs; weighted ones:
  // draw.h; layer: layer.cpp; saint (given that the destination is in the subgraph): saint.h.
  std::vector<Array<float>> scale;
  Array<float> loss_scale;  // per seed, mean 1 over an epoch (saint: how rarely it comes up); empty: 1
  int64_t num_edges() const;
};

// One batch on its way through the hops, in the subtasks the scheduler runs. Calls for one hop come
// in the order pick, insert, reindex; pick(h + 1) needs insert(h), reindex(h) may come any time
// after insert(h), also on another thread while later hops are sampled. Otherwise one batch at a
// time and thread per object; different objects share nothing they write. Memory is kept between
// batches: that of a sample comes back when its arrays are dropped, on whatever thread.
class BatchSampler {
 public:
  virtual ~BatchSampler() = default;
  virtual int hops() const = 0;
  virtual void begin(std::span<const NodeId> seeds, const SampleKey& key) = 0;
  // S, the algorithm: chooses the edges of the hop and looks up where they come from.
  virtual void pick(int hop) = 0;
  // S, the hash table: numbers the vertices met for the first time; every edge gets its source's
  // number on the way.
  virtual void insert(int hop) = 0;
  // Original ids known so far (valid until the next insert or begin): what features can be looked
  // up for.
  virtual std::span<const NodeId> vertices() const = 0;
  // R: the block with local ids, edge weights and types.
  virtual void reindex(int hop) = 0;
  virtual Sample finish() = 0;
};

using MakeBatchSampler = std::function<std::unique_ptr<BatchSampler>()>;

// A way to sample. A file NAME.cpp of this room that has samplers defines `std::vector<SamplerInfo>
// samplers_in_NAME()`, and its name stands in the list `samplers` of the room's CMakeLists.txt
// (docs/add_a_sampler.md).
struct SamplerInfo {
  std::string name;                        // as --sampler takes it
  std::string paper;                       // the method's name in its paper, for --help; may be empty
  std::vector<std::string> synonyms = {};  // further names that --sampler takes
  // It draws one subgraph for all layers: it takes --budget instead of --fanout, and batches have
  // no seeds of their own.
  bool draws_subgraph = false;
  // Every in-edge of a vertex has the same chance unless options.weighted is set, so Sample::scale
  // is degree / drawn.
  bool uniform = false;
  bool type_fanout = false;  // takes a fan-out for each edge type
  int usual_fanout = 10;     // of every hop where none is given
  // Computes what all batches share and returns a function that makes a sampler for the batches of
  // one thread. The graph and the checked options live as long as that function. `hops` is the
  // number of blocks.
  MakeBatchSampler (*prepare)(const Graph& graph, const SampleOptions& options, int hops) = nullptr;
};

// All samplers, in the order in which people see them.
const std::vector<SamplerInfo>& samplers();
// Throws UserError, with the nearest name, if there is no sampler of this name.
const SamplerInfo& sampler_info(const std::string& name);

class Sampler {
 public:
  // Checks the options against the graph (UserError naming the command line's flag) and computes
  // what all batches share. The graph's arrays are shared, not copied.
  Sampler(Graph graph, SampleOptions options);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  const Graph& graph() const;
  const SampleOptions& options() const;
  int layers() const;
  // Returns whether batches have no seeds of their own (SamplerInfo::draws_subgraph).
  bool draws_seeds() const { return sampler_info(options().sampler).draws_subgraph; }
  std::unique_ptr<BatchSampler> make_batch_sampler() const;
  // Who makes them instead of the host; the samples must be the same. Before others use this.
  void draw_with(MakeBatchSampler make);
  // All subtasks of one batch, on the calling thread. Seeds must be distinct. For a sampler that
  // draws_seeds(), `seeds` is empty, and the sample's seeds are all vertices of the subgraph.
  Sample sample(std::span<const NodeId> seeds, const SampleKey& key) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The seeds of batch `batch` of an epoch: `ids` in an order drawn from (seed, epoch), cut into runs
// of `batch_size`.
class BatchOrder {
 public:
  BatchOrder(Array<NodeId> ids, int64_t batch_size, uint64_t seed, bool shuffle);
  int64_t num_batches() const;
  void begin_epoch(uint64_t epoch);
  std::span<const NodeId> batch(int64_t index) const;

 private:
  Array<NodeId> ids_;
  std::vector<NodeId> order_;
  int64_t batch_size_;
  uint64_t seed_;
  bool shuffle_;
};

// The block of all in-edges of `destinations` (distinct): what layer-wise inference runs on.
Sample full_neighbours(const Graph& graph, std::span<const NodeId> destinations);

}  // namespace nacre
