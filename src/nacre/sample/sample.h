// Samplers turn a batch of seed vertices into the blocks (message-flow graphs) that a model runs
// on.
//
// A sample depends only on the graph, the options and the key (seed, epoch, batch). Every random
// number is a Philox counter of (key, hop, vertex, draw), so that the sample is the same on any
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
  std::string sampler = "neighbor";  // one of the names in samplers()
  int layers = 0;                    // number of blocks; 0: one for each entry of fanout
  // For each hop, the one next to the seeds first, as in PyG: the number of edges that each vertex
  // draws or, for the sampler `layer`, the number of vertices that the hop draws. -1: all.
  std::vector<int> fanout;
  // Instead of fanout, the numbers for each hop and edge type (neighbor, typed graphs):
  // [hop][type]. With 0, no edge of that type is drawn.
  std::vector<std::vector<int>> type_fanout;
  bool replace = false;   // whether an edge may be drawn more than once
  bool weighted = false;  // whether edges are drawn by their weights instead of uniformly
  int64_t budget = 0;     // saint: vertices (or edges, or roots of walks) drawn for a subgraph
  int walk_length = 2;    // saint_walk
  // For saint: the number of subgraphs that are drawn beforehand to estimate how often each vertex
  // and each edge is drawn.
  int64_t norm_samples = 50;
  uint64_t seed = 0;
};

// Says which sample to draw: equal keys give equal samples.
struct SampleKey {
  uint64_t epoch = 0;
  uint64_t batch = 0;
};

// Holds the blocks of one batch. The blocks use local ids: the destinations of a block are the
// first num_dst of its sources, and v(0) are the sources of blocks[0]. So `vertices` names the
// vertices of every space: v(l) is its first blocks[l].num_src() entries, and the seeds are its
// first num_seeds entries.
struct Sample {
  // The blocks in the order of computation. The destinations of the last one are the seeds.
  std::vector<Graph> blocks;
  Array<NodeId> vertices;  // original ids, the seeds first, then hop by hop
  int64_t num_seeds = 0;
  // For each block: the in-CSR position of every edge in the full graph. The edges of a destination
  // keep the order that they have there.
  std::vector<Array<int64_t>> edges;
  // For each block: the scale of every edge; empty if every edge stands for itself alone (a hop of
  // fan-out -1). The expectation of Σ scale·m over the sampled edges of a destination is Σ m over
  // all its edges. Edges that can never be drawn (of weight 0 when drawing by weight, or of a type
  // with fan-out 0) are left out of both sums. The scale of uniform draws is degree / drawn, of the
  // edge's type if types have fan-outs. Other scales are defined in draw.h (weighted), layer.cpp
  // (layer) and saint.h (saint, given that the destination is in the subgraph).
  std::vector<Array<float>> scale;
  // For each seed: its factor in the loss, with a mean of 1 over an epoch (saint: the rarer a
  // vertex is drawn, the more it counts). Empty: all factors are 1.
  Array<float> loss_scale;
  int64_t num_edges() const;
};

// BatchSampler: samples one batch at a time, in the subtasks that the scheduler runs. The calls for
// one hop come in the order pick, insert, reindex. pick(h + 1) needs insert(h). reindex(h) may come
// any time after insert(h), also on another thread while later hops are sampled. Apart from that,
// one thread at a time uses an object; different objects share nothing that they write. Memory is
// kept between batches: the memory of a sample returns to its sampler when the arrays of the sample
// are dropped, on whatever thread.
class BatchSampler {
 public:
  virtual ~BatchSampler() = default;
  virtual int hops() const = 0;
  virtual void begin(std::span<const NodeId> seeds, const SampleKey& key) = 0;
  // Stage S, the algorithm: chooses the edges of the hop and looks up their sources.
  virtual void pick(int hop) = 0;
  // Stage S, the hash table: numbers the vertices that are met for the first time, and replaces the
  // source of every edge by its number.
  virtual void insert(int hop) = 0;
  // Returns the original ids of the vertices known so far, whose features can be looked up. The
  // span is valid until the next insert() or begin().
  virtual std::span<const NodeId> vertices() const = 0;
  // Stage R: builds the block with local ids, edge weights and edge types.
  virtual void reindex(int hop) = 0;
  virtual Sample finish() = 0;
};

using MakeBatchSampler = std::function<std::unique_ptr<BatchSampler>()>;

// Describes a sampler. A file NAME.cpp of this room that has samplers defines
// `std::vector<SamplerInfo> samplers_in_NAME()`, and NAME stands in the list `samplers` of the
// room's CMakeLists.txt (docs/add_a_sampler.md).
struct SamplerInfo {
  std::string name;  // name that --sampler takes
  // The method's name in its paper, for --help; may be empty.
  std::string paper;
  std::vector<std::string> synonyms = {};  // further names that --sampler takes
  // Whether it draws one subgraph for all layers. It then takes --budget instead of --fanout, and
  // batches have no seeds of their own.
  bool draws_subgraph = false;
  // Whether every in-edge of a vertex has the same chance unless options.weighted is set, so that
  // Sample::scale is degree / drawn.
  bool uniform = false;
  bool type_fanout = false;  // whether it takes a fan-out for each edge type
  int usual_fanout = 10;     // fan-out of every hop if none is given
  // Computes what all batches share and returns a function that makes a sampler for the batches of
  // one thread. The graph and the checked options live as long as that function. `hops` is the
  // number of blocks.
  MakeBatchSampler (*prepare)(const Graph& graph, const SampleOptions& options, int hops) = nullptr;
};

// Returns all samplers, in the order in which people see them.
const std::vector<SamplerInfo>& samplers();
// Returns the sampler of this name. Throws a UserError that suggests the nearest name if there is
// none.
const SamplerInfo& sampler_info(const std::string& name);

class Sampler {
 public:
  // Checks the options against the graph (throws a UserError that names the option) and computes
  // what all batches share. The arrays of the graph are shared, not copied.
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
  // Replaces the batch samplers of the host by those that `make` returns, which must draw the same
  // samples. With `beside_host`, code that draws many batches at once lets samplers of both kinds
  // draw. Must be called before any other thread uses this object.
  void draw_with(MakeBatchSampler make, bool beside_host = false);
  // Returns a sampler of the host if the host draws beside the samplers of draw_with(); otherwise
  // null.
  std::unique_ptr<BatchSampler> make_second_sampler() const;
  // Draws one batch on the calling thread. The seeds must be distinct. If draws_seeds(), `seeds` is
  // empty, and the seeds of the sample are all vertices of the subgraph.
  Sample sample(std::span<const NodeId> seeds, const SampleKey& key) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// BatchPart: says which batches one of several ranks takes. The batches of an epoch are divided
// into groups of `group` consecutive batches. Of each group, the rank takes `count` batches,
// beginning with number `begin` of the group.
struct BatchPart {
  int64_t group = 1;
  int64_t begin = 0;
  int64_t count = 1;

  // Returns how many of the first `batches` batches of an epoch the rank takes.
  int64_t taken(int64_t batches) const;
  // Returns the number in the epoch of the rank's batch `index`.
  int64_t number(int64_t index) const { return index / count * group + begin + index % count; }
};

// BatchOrder: deals out seeds to the batches of an epoch. It puts `ids` in an order drawn from
// (seed, epoch), and cuts them into runs of `batch_size`. If several ranks share the batches, the
// order of a rank has its own batches only, numbered from 0 on.
class BatchOrder {
 public:
  // `shuffle` says whether all epochs are shuffled or none. An epoch that is not shuffled takes the
  // vertices in the order of `ids`.
  BatchOrder(Array<NodeId> ids, int64_t batch_size, uint64_t seed, bool shuffle, const BatchPart& part = {});
  // Says that the epochs from this one on are shuffled, and those before it are not. The epoch that
  // has begun stays as it is.
  void shuffle_from(uint64_t epoch) { shuffled_from_ = epoch; }
  int64_t num_batches() const { return part_.taken(all_batches()); }
  // Returns the number of batches that all ranks have together.
  int64_t all_batches() const;
  void begin_epoch(uint64_t epoch);
  std::span<const NodeId> batch(int64_t index) const;
  // Returns the number in the epoch of batch `index` of this order. It is part of the key of the
  // batch's sample, so that batches do not depend on the number of ranks.
  int64_t number(int64_t index) const { return part_.number(index); }
  // Returns how many batches of this order have a smaller number in the epoch than `number`.
  int64_t before(int64_t number) const { return part_.taken(number); }

 private:
  Array<NodeId> ids_;
  std::vector<NodeId> order_;
  int64_t batch_size_;
  uint64_t seed_;
  uint64_t shuffled_from_;  // the first epoch that is shuffled
  BatchPart part_;
};

// Returns the block of all in-edges of `destinations`, which must be distinct. Inference layer by
// layer runs on such blocks.
Sample full_neighbours(const Graph& graph, std::span<const NodeId> destinations);

}  // namespace nacre
