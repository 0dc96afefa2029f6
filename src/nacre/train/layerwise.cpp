#include "nacre/train/layerwise.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/base/trace.h"
#include "nacre/plan/search.h"

namespace nacre {
namespace {

int64_t row_size(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// Returns a sample of the vertices from `begin` to `end` − 1, whose one block has no edges. Stages
// that pass no messages compute on it.
Sample rows_only(int64_t begin, int64_t end) {
  GraphArrays arrays;
  arrays.num_src = arrays.num_dst = end - begin;
  arrays.row_ptr = std::vector<int64_t>(static_cast<size_t>(end - begin + 1), 0);
  std::vector<NodeId> ids(end - begin);
  std::iota(ids.begin(), ids.end(), static_cast<NodeId>(begin));
  Sample sample;
  sample.blocks.emplace_back(std::move(arrays), "a block without edges");
  sample.vertices = std::move(ids);
  sample.num_seeds = end - begin;
  return sample;
}

}  // namespace

LayerwiseInference::LayerwiseInference(const RunData& run, const BatchInputs& inputs, const Dfg& dfg,
                                       std::shared_ptr<Backend> backend, const LayerwiseOptions& options)
    : run_(run), inputs_(inputs), backend_(std::move(backend)), options_(options) {
  std::map<std::string, size_t> last;  // stage that reads a value last
  for (LayerStage& stage : split_layers(dfg)) {
    for (const StageValue& value : stage.reads) last[value.name] = layers_.size();
    layers_.push_back({std::move(stage), nullptr, {}});
  }
  for (const auto& [name, layer] : last) {
    if (dfg.find_output(name) < 0) layers_[layer].dead.push_back(name);
  }
}

// Returns the end of the block that begins at vertex `begin`. The block has as many vertices as fit
// in LayerwiseOptions::block_bytes, but at least one.
int64_t LayerwiseInference::end_of_block(const Layer& layer, int64_t begin) const {
  const Graph& graph = run_.dataset.graph;
  int64_t width = 1;
  for (const Node& node : layer.stage.dfg.nodes()) {
    const SpaceKind kind = node.type.space.kind;
    if (kind == SpaceKind::vertex || kind == SpaceKind::kind) width = std::max(width, node.type.row_size());
  }
  const int64_t rows = std::max<int64_t>(1, options_.block_bytes / (width * 4));
  const auto weight = [&](int64_t v) { return (layer.stage.layer < 0 ? 0 : graph.row_ptr()[v]) + 2 * v; };
  int64_t low = begin + 1, high = graph.num_dst();
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (weight(middle) - weight(begin) <= rows) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

Sample LayerwiseInference::block_of(const Layer& layer, int64_t begin, int64_t end) const {
  Sample sample = rows_only(begin, end);
  return layer.stage.layer < 0 ? sample : full_neighbours(run_.dataset.graph, sample.vertices.span());
}

void LayerwiseInference::plan_layer(Layer& layer, const Sample& sample) {
  if (layer.runner) return;
  PlanOptions base;
  base.hoist = false;
  const Blocks blocks = inputs_.blocks(sample);
  const Dfg& dfg = layer.stage.dfg;
  const DeviceTraits traits = backend_->traits().of_batches();
  const PlanOptions how = search_plan(dfg, blocks, base, {}).options;
  layer.runner = std::make_unique<BlockRunner>(make_plan(dfg, blocks, how, {.device = &traits}), backend_);
}

int64_t LayerwiseInference::work_bytes(Layer& layer, int64_t begin) {
  const Sample sample = block_of(layer, begin, end_of_block(layer, begin));
  plan_layer(layer, sample);
  const std::unique_ptr<Executor> block = layer.runner->prepare(inputs_.blocks(sample));
  int64_t width = 8;  // floats for each vertex; 8 of them for degrees and ids
  for (const StageValue& value : layer.stage.reads) width += row_size(value.dims);
  int64_t bytes = sample.vertices.size() * width * 4 + block->arena_bytes();
  if (reads_features(layer.stage.dfg)) bytes += inputs_.row_bytes(sample);
  // Adds the bytes of the blocks' arrays, of what drawing the blocks takes, and of the forms of the
  // graph that kernels walk.
  for (const Graph& g : sample.blocks) bytes += 2 * g.bytes() + g.num_edges() * 24 + (g.num_src() + g.num_dst()) * 24;
  return bytes;
}

int64_t LayerwiseInference::work_bytes() {
  int64_t most = 0;
  const int64_t vertices = run_.dataset.num_nodes();
  for (Layer& layer : layers_) {
    for (const int64_t begin : {int64_t{0}, vertices / 3, vertices / 3 * 2}) {
      if (begin < vertices) most = std::max(most, work_bytes(layer, begin));
    }
  }
  return most + most / 4;  // a quarter more, because arenas grow with room to spare
}

void LayerwiseInference::run_block(Layer& layer, int64_t begin, int64_t end, const ParameterMemory& parameter) {
  const LayerStage& stage = layer.stage;
  const Sample sample = block_of(layer, begin, end);
  plan_layer(layer, sample);
  std::vector<LeafValue> leaves = inputs_.gather(stage.dfg, sample);
  for (const StageValue& value : stage.reads)
    leaves.push_back({"value." + value.name, gather_rows(tables_.at(value.name), sample.vertices.span())});
  if (reads_features(stage.dfg)) add_features(sample.vertices.span(), leaves);
  const auto is_row = [&](const Node& node) {
    return std::any_of(leaves.begin(), leaves.end(), [&](const LeafValue& leaf) { return leaf.name == node.name; });
  };
  for (const Node& node : stage.dfg.nodes()) {
    if (node.op == Op::param && !is_row(node)) layer.runner->bind(node.name, parameter(node.name));
  }
  const std::unique_ptr<Executor> block = layer.runner->prepare(inputs_.blocks(sample));
  layer.runner->run(*block, leaves, {}, {options_.seed, 0});
  for (const StageValue& value : stage.writes) {
    const int64_t width = row_size(value.dims);
    std::copy_n(block->output(value.name), (end - begin) * width, tables_.at(value.name).data<float>() + begin * width);
  }
}

void LayerwiseInference::run_layer(Layer& layer, const ParameterMemory& parameter) {
  const TraceSpan span("evaluate", "layer");
  const int64_t vertices = run_.dataset.num_nodes();
  for (const StageValue& value : layer.stage.writes)
    tables_[value.name] = Tensor(DType::f32, {vertices, row_size(value.dims)});
  for (int64_t begin = 0; begin < vertices;) {
    const int64_t end = end_of_block(layer, begin);
    run_block(layer, begin, end, parameter);
    begin = end;
  }
  if (layer.runner) layer.runner->release();
  for (const std::string& name : layer.dead) tables_.erase(name);
}

std::string LayerwiseInference::features_leaf() const {
  const std::vector<VertexKind>& kinds = run_.config.model.kinds;
  return kinds.empty() ? "x" : learned_rows_name(kinds[0]);
}

bool LayerwiseInference::reads_features(const Dfg& dfg) const {
  const KindTables* kinds = inputs_.kinds();
  return dfg.find_leaf(kinds == nullptr ? features_leaf() : kinds->list().front().leaf) >= 0;
}

void LayerwiseInference::add_features(std::span<const NodeId> vertices, std::vector<LeafValue>& leaves) {
  const KindTables* kinds = inputs_.kinds();
  if (kinds == nullptr) return leaves.push_back({features_leaf(), feature_rows(vertices)});
  const KindBatch batch = kinds->split(vertices);
  for (LeafValue& rows : kinds->features(batch, true)) leaves.push_back(std::move(rows));
  for (LeafValue& rows : kinds->learned_rows(batch)) leaves.push_back(std::move(rows));
}

void LayerwiseInference::run(const Tensor& features, const ParameterMemory& parameter, RowSource* source) {
  features_ = features;
  source_ = source;
  blocks_read_ = 0;
  tables_.clear();
  for (Layer& layer : layers_) run_layer(layer, parameter);
}

Tensor LayerwiseInference::feature_rows(std::span<const NodeId> ids) {
  if (source_ == nullptr) return gather_rows(features_, ids);
  const BatchTurn turn{0, blocks_read_++};
  Tensor rows(DType::f32, {static_cast<int64_t>(ids.size()), features_.row_size()});
  const int64_t bytes = rows.row_size() * 4;
  source_->wait(turn);
  parallel_for(rows.rows(), std::max<int64_t>(1, (1 << 20) / std::max<int64_t>(1, bytes)), [&](int64_t b, int64_t e) {
    source_->look_up(turn, b, ids.subspan(static_cast<size_t>(b), static_cast<size_t>(e - b)),
                     static_cast<char*>(rows.raw()) + b * bytes, bytes);
  });
  source_->release(turn);
  return rows;
}

std::unique_ptr<BatchSequence> LayerwiseInference::feature_blocks() const {
  struct Block {
    const Layer* layer;
    int64_t begin, end;
  };
  std::vector<Block> blocks;
  for (const Layer& layer : layers_) {
    if (!reads_features(layer.stage.dfg)) continue;
    for (int64_t begin = 0; begin < run_.dataset.num_nodes();) {
      const int64_t end = end_of_block(layer, begin);
      blocks.push_back({&layer, begin, end});
      begin = end;
    }
  }
  const auto count = static_cast<int64_t>(blocks.size());
  return listed_batches(count, [this, blocks = std::move(blocks)](int64_t i, std::vector<NodeId>& rows) {
    const Block& block = blocks[static_cast<size_t>(i)];
    const Sample sample = block_of(*block.layer, block.begin, block.end);
    rows.assign(sample.vertices.begin(), sample.vertices.end());
  });
}

const float* LayerwiseInference::values(const std::string& output) const { return tables_.at(output).data<float>(); }

int64_t LayerwiseInference::width(const std::string& output) const {
  for (const Layer& layer : layers_) {
    for (const StageValue& value : layer.stage.writes) {
      if (value.name == output) return row_size(value.dims);
    }
  }
  return 0;
}

int64_t LayerwiseInference::bytes() const {
  int64_t now = 0, most = 0;
  std::map<std::string, int64_t> widths;
  for (const Layer& layer : layers_) {
    for (const StageValue& value : layer.stage.writes) now += widths[value.name] = row_size(value.dims);
    most = std::max(most, now);
    for (const std::string& name : layer.dead) now -= widths[name];
  }
  return most * run_.dataset.num_nodes() * 4;
}

}  // namespace nacre
