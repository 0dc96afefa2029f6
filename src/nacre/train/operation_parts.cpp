// This file finds the operation that each kernel of a plan belongs to, the sizes of a batch that
// its EPG is built from, and the times of operations by nominal rates.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "nacre/cost/nominal.h"
#include "nacre/dfg/node_vector.h"
#include "nacre/engine/gpu/sampler.h"
#include "nacre/model/napa.h"
#include "nacre/plan/work.h"
#include "nacre/train/operation_samples.h"

namespace nacre {
namespace {

bool walks_edges(KernelKind kind) {
  switch (kind) {
    case KernelKind::map_edges:
    case KernelKind::reduce:
    case KernelKind::spmm:
    case KernelKind::typed_reduce:
    case KernelKind::typed_weight_grad:
    case KernelKind::gtask:
    case KernelKind::gtask_grad:
    case KernelKind::softmax:
    case KernelKind::softmax_grad:
      return true;
    default:
      return is_sequence(kind);
  }
}

// Returns the layer of a parameter or of its gradient, for example 1 for
// "grad:layers.1.lin.weight". The space of a product does not tell its layer: rows of v(1) may be
// multiplied after the sums of layer 0 or before those of layer 1.
std::optional<int> layer_of_name(std::string_view name) {
  constexpr std::string_view kGradient = "grad:";
  if (name.starts_with(kGradient)) name.remove_prefix(kGradient.size());
  return layer_of_parameter(name);
}

// Returns 1 for each node that the loss depends on, and 0 for the others.
NodeVector<char> before_loss(const Dfg& dfg) {
  NodeVector<char> before(dfg, 0);
  const NodeRef loss = dfg.find_output("loss");
  if (loss < 0) return before;
  before[loss] = 1;
  for (NodeRef i = loss; i >= 0; --i) {
    if (before[i] == 0) continue;
    for (const NodeRef input : dfg[i].inputs) {
      if (input >= 0) before[input] = 1;
    }
  }
  return before;
}

// Returns the layer of a kernel. It is the layer whose edges the kernel walks. If the kernel walks
// none, it is that of the parameter which the kernel reads or whose gradient it makes, and if there
// is no such parameter, that of the rows which the kernel makes.
int layer_of(const Dfg& dfg, const Kernel& kernel, const std::map<NodeRef, int>& by_output) {
  if (walks_edges(kernel.kind)) return walked_layer(dfg, kernel);
  for (const NodeRef node : kernel.nodes) {
    if (const auto found = by_output.find(node); found != by_output.end()) return found->second;
    for (const NodeRef input : dfg[node].inputs) {
      if (input < 0 || dfg[input].op != Op::param) continue;
      if (const std::optional<int> layer = layer_of_name(dfg[input].name)) return *layer;
    }
  }
  const Space space = dfg[kernel.root].type.space;
  return space.on_vertices() ? space.layer - 1 : space.layer;
}

// LayerWidths holds how many elements a row has before and after the products of a layer with its
// weights. Both are 0 if the layer has no such product.
struct LayerWidths {
  int64_t in = 0, out = 0;
};

std::map<int, LayerWidths> product_widths(const Dfg& dfg) {
  std::map<int, LayerWidths> widths;
  for (const Node& node : dfg.nodes()) {
    if (node.op != Op::matmul && node.op != Op::typed_matmul) continue;
    const Node& weight = dfg[node.inputs[1]];
    const std::optional<int> layer = layer_of_name(weight.name);
    if (!layer || weight.type.dims.size() < 2) continue;
    LayerWidths& w = widths[*layer];
    w.in = std::max(w.in, weight.type.dims[weight.type.dims.size() - 2]);
    w.out = std::max(w.out, weight.type.dims.back());
  }
  return widths;
}

}  // namespace

std::vector<KernelPart> kernel_parts(const Plan& plan, int layers) {
  const Dfg& dfg = plan.dfg;
  const NodeVector<char> forward = before_loss(dfg);
  std::map<NodeRef, int> by_output;
  for (const auto& [name, node] : dfg.outputs()) {
    if (const std::optional<int> layer = layer_of_name(name)) by_output[node] = *layer;
  }
  std::vector<KernelPart> parts;
  for (const Kernel& kernel : plan.kernels) {
    KernelPart part;
    part.layer = std::clamp(layer_of(dfg, kernel, by_output), 0, std::max(0, layers - 1));
    const bool back = forward[kernel.root] == 0;
    const bool edges = walks_edges(kernel.kind);
    if (!kernel.once)
      part.operation = edges ? (back ? "aggregate_grad" : "aggregate") : (back ? "combine_grad" : "combine");
    parts.push_back(std::move(part));
  }
  return parts;
}

BatchShape batch_shape(const BatchSession& session, const Sample& sample) {
  const Dfg& dfg = session.dfg();
  const ModelOptions& model = session.config().model;
  const std::map<int, LayerWidths> widths = product_widths(dfg);
  const std::vector<Site> sites = find_sites(prepare_dfg(dfg, session.blocks(sample), session.plan().options));
  BatchShape shape;
  const auto layers = static_cast<int>(sample.blocks.size());
  for (int l = 0; l < layers; ++l) {
    const Graph& block = sample.blocks[l];
    BatchShape::Layer layer;
    layer.sources = static_cast<double>(block.num_src());
    layer.destinations = static_cast<double>(block.num_dst());
    layer.edges = static_cast<double>(block.num_edges());
    const auto known = widths.find(l);
    layer.width_in = static_cast<double>(known != widths.end() ? known->second.in
                                         : l == 0              ? model.in_dim
                                                               : model.hidden);
    layer.width_out = static_cast<double>(known != widths.end() ? known->second.out
                                          : l + 1 == layers     ? model.out_dim
                                                                : model.hidden);
    for (const Node& node : dfg.nodes()) {
      if (node.op == Op::param && layer_of_name(node.name) == l)
        layer.weights += static_cast<double>(node.type.row_size());
      if (node.op == Op::index && node.attr == Attr::self && node.type.space == Space::vertex(l + 1))
        layer.reads_self = true;
    }
    layer.may_combine_first = std::any_of(sites.begin(), sites.end(), [&](const Site& site) {
      const bool forward = site.key.starts_with("matmul@");
      const bool free = std::find(site.options.begin(), site.options.end(), "combine") != site.options.end();
      return forward && free && layer_of_name(std::string_view(site.key).substr(site.key.find('@') + 1)) == l;
    });
    shape.layers.push_back(layer);
  }
  return shape;
}

std::vector<TimedOperation> count_operations(const BatchSession& session, const std::vector<Sample>& batches,
                                             const std::string& device) {
  const NominalProfile& gpu = nominal_gpu();
  const NominalLoading& loading = nominal_loading();
  const bool samples = GpuSampler::why_not(session.config().sampling).empty();
  std::vector<TimedOperation> times;
  const auto add = [&](size_t batch, const std::string& operation, int layer, const std::string& order, MfgSize size,
                       double seconds) {
    times.push_back({{device, operation, layer, order}, {size, seconds}, static_cast<int>(batch)});
  };
  for (size_t b = 0; b < batches.size(); ++b) {
    const std::vector<MfgSize> sizes = block_sizes(batches[b]);
    const Blocks blocks = session.blocks(batches[b]);
    MfgSize whole = sizes.front();
    for (size_t l = 1; l < sizes.size(); ++l) whole.edges += sizes[l].edges;
    const double rate = gpu.rates.bytes_per_second;
    const auto hops = static_cast<double>(sizes.size());
    if (samples)
      add(b, "sample", 0, {}, whole, loading.hop_seconds * hops + whole.edges * loading.sampled_edge_bytes / rate);
    for (const char* order : {"plan", "aggregate", "combine"}) {
      PlanOptions options = session.plan().options;
      for (const Site& site : find_sites(prepare_dfg(session.dfg(), blocks, options))) {
        const bool named = std::find(site.options.begin(), site.options.end(), order) != site.options.end();
        if (named) options.choices[site.key] = order;
      }
      const Plan plan = make_plan(session.dfg(), blocks, options);
      const std::vector<KernelPart> parts = kernel_parts(plan, static_cast<int>(sizes.size()));
      std::map<std::pair<std::string, int>, double> sums;
      for (size_t k = 0; k < parts.size(); ++k) {
        if (parts[k].operation.empty()) continue;
        sums[{parts[k].operation, parts[k].layer}] +=
            gpu.model.predict(kernel_work(plan.kernels[k], plan, blocks, gpu.cache_bytes));
      }
      for (const auto& [part, seconds] : sums) add(b, part.first, part.second, order, sizes[part.second], seconds);
    }
  }
  for (double bytes = 4096; bytes < 1e9; bytes *= 4)
    add(0, "transfer", 0, {}, {bytes, 0}, loading.transfer_seconds + bytes / loading.link_bytes_per_second);
  add(0, "update", 0, {}, {}, loading.update_seconds);
  return times;
}

}  // namespace nacre
