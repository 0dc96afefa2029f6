// Functions that make the bill before anything is read.
#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/machine.h"
#include "nacre/graph/reorder.h"
#include "nacre/train/bill.h"
#include "nacre/train/bill_parts.h"
#include "nacre/train/device.h"

namespace nacre {
namespace {

// Returns the counts of the graph after the run has added the edge types and self loops that the
// model needs.
GraphCounts prepared(const ModelInfo& model, GraphCounts graph) {
  if (model.needs_types) graph.typed = true;
  if (model.needs_self_loops) graph.edges += graph.nodes;
  return graph;
}

// Returns whether every node has a learned row among the parameters: with --features learned,
// unless nodes have several kinds.
bool learns_rows(const RunConfig& config, const DataSizes& sizes) {
  return config.load.features_file == "learned" && !sizes.heterogeneous;
}

bool knows_parameters(const RunConfig& config, const DataSizes& sizes) {
  if (!sizes.counted) return false;
  return sizes.users_and_items || learns_rows(config, sizes) || (!sizes.heterogeneous && sizes.features > 0);
}

// Returns whether a step passes gradients from edges to their sources, which walks the edges by
// source. On a GPU, the sums of the first layer's features are computed once, and no gradient
// passes through them.
bool walks_by_source(const RunConfig& config, const DataSizes& sizes) {
  if (config.mode != "full" || config.model.model == "mlp" || !sizes.counted) return false;
  return !runs_on_gpu(config) || config.model.layers > 1;
}

double bytes_of_parameters(const RunConfig& config, const DataSizes& sizes) {
  // Recommenders learn a row for each user and item; their other parameters are few.
  const int64_t width = config.model.in_dim > 0 ? config.model.in_dim : config.model.hidden;
  if (sizes.users_and_items) return 4 * static_cast<double>(sizes.graph.nodes) * static_cast<double>(width);
  const ModelOptions options = model_for(config, sizes);
  return parameter_bytes(build_model(options), sizes.graph.nodes, options.num_edge_types);
}

// Returns the bytes on the host that evaluation takes at least; 0 if it may take none. A run with
// mini-batches computes all nodes layer by layer and holds the values of the last two layers. They
// take no memory of the host if a GPU has room for them, the features and the edges.
int64_t bytes_of_evaluation(const RunConfig& config, const DataSizes& sizes) {
  if (config.mode != "minibatch" || sizes.users_and_items || !knows_parameters(config, sizes)) return 0;
  const ModelOptions& model = config.model;
  const int64_t width = sizes.classes + (model.layers > 1 ? static_cast<int64_t>(model.hidden) : 0);
  const int64_t values = sizes.graph.nodes * width * 4;
  if (!runs_on_gpu(config)) return values;
  const DeviceChoice choice = choose_device(config.device, config.precision);
  const int64_t least = values + sizes.feature_bytes + sizes.graph.edges * 4;
  return least <= device_plugin()->devices()[choice.index].memory_bytes ? 0 : values;
}

}  // namespace

ModelOptions model_for(const RunConfig& config, const DataSizes& sizes) {
  const ModelInfo& model = model_info(config.model.model);
  if (model.needs_types && !sizes.graph.typed && (config.relations < 1 || config.relations > 65535))
    throw UserError("--relations", "must lie between 1 and 65535");
  ModelOptions options = config.model;
  if (learns_rows(config, sizes)) {
    options.kinds = {{"node", sizes.graph.nodes, 0}};
  } else {
    options.in_dim = sizes.features;
  }
  options.out_dim = std::max<int64_t>(2, sizes.classes);
  options.num_edge_types = sizes.graph.typed ? sizes.edge_types : model.needs_types ? config.relations : 0;
  // Files do not always tell the number of edge types, so at least as many types as bases are
  // counted. Too many bases are refused once the graph is read.
  if (sizes.graph.typed && model.needs_types) options.num_edge_types = std::max(sizes.edge_types, options.num_bases);
  options.edge_weighted = sizes.graph.weighted && model.supports_edge_weight && !config.load.ignore_edge_weights;
  options.loss = sizes.multilabel ? "bce" : "cross_entropy";
  return complete_options(options);
}

Bill bill_before_reading(const RunConfig& config, const DataSizes& sizes, const RunPurpose& purpose) {
  check_most_staleness(config.staleness);
  Bill bill;
  const bool gpu = runs_on_gpu(config);
  const int64_t held = purpose.embedded ? held_memory() : 0;
  const MemoryItem program{"the program", std::max(program_bytes(), held) + (gpu ? kGpuLibraries : 0)};
  bill.phases.push_back({"reading", {program, {"the data while they are read", sizes.reading}}});

  const ModelInfo& model = model_info(config.model.model);
  const GraphCounts graph = prepared(model, sizes.graph);
  const bool changed = model.needs_types || model.needs_self_loops;
  const int64_t new_graph = changed ? graph.bytes() : 0;
  const MemoryItem data{sizes.mapped > 0 ? "data (mapped file and memory)" : "data", sizes.mapped + sizes.held};
  std::vector<MemoryItem> making{program, data, {"graph as the model wants it", new_graph}};
  if (model.needs_types && !sizes.graph.typed) making.push_back({"edges by destination", sizes.graph.edges * 4});
  if (config.normalize_features == "row") making.push_back({"features, divided by their sums", sizes.feature_bytes});
  if (config.mode == "full" && purpose.trains && config.reorder != "auto" && config.reorder != "none") {
    const int64_t moving = reorder_bytes(graph, parse_reorder(config.reorder)) - graph.bytes();
    making.push_back({"nodes in another order", moving + sizes.feature_bytes});
  }
  const int64_t narrow = config.features.type == "f32" ? 0 : sizes.feature_bytes / 2;
  if (narrow > 0) making.push_back({"features, stored as " + config.features.type, narrow});
  bill.phases.push_back({"preparing", making});

  // Data that were read and exist in another form are freed, unless they are part of a mapped file.
  const int64_t freed = sizes.mapped > 0 ? 0 : (changed ? sizes.graph.bytes() : 0) + 2 * narrow;
  const int64_t kept = sizes.mapped + sizes.held - freed + new_graph + narrow;
  std::vector<MemoryItem> training{program, {"data and graph", kept}};
  if (config.mode == "full" && purpose.trains) training.push_back({"labels and loss weights", graph.nodes * 8});
  if (purpose.trains && walks_by_source(config, sizes))
    training.push_back({"edges by source, while they are sorted", making_out_bytes(graph)});
  if (knows_parameters(config, sizes)) {
    const auto copies = static_cast<double>(parameter_copies(config, purpose.trains));
    const double bytes = bytes_of_parameters(config, sizes) * copies;
    training.push_back(
        {"parameters and all that training keeps of them", static_cast<int64_t>(std::min(kMostBytes, bytes))});
  }
  bill.phases.push_back({purpose.trains ? "training" : "predicting", training});
  if (const int64_t values = bytes_of_evaluation(config, sizes); values > 0) {
    bill.phases.push_back({"evaluating", training});
    bill.phases.back().items.push_back({"values of two layers, for evaluation", values});
  }
  if (purpose.loaded > 0) {
    training.push_back({"weights of the checkpoint", purpose.loaded});
    bill.phases.push_back({"loading weights", training});
  }
  return bill;
}

std::vector<MemoryItem> device_before_reading(const RunConfig& config, const DataSizes& sizes, bool trains) {
  if (!knows_parameters(config, sizes)) return {};
  std::vector<MemoryItem> items;
  const double bytes = bytes_of_parameters(config, sizes);
  // The best weights so far are kept on the host, so a GPU holds one copy less.
  const auto copies = static_cast<double>(trains ? parameter_copies(config, true) - 1 : 1);
  items.push_back(
      {"parameters and their gradients and moments", static_cast<int64_t>(std::min(kMostBytes, bytes * copies))});
  const ModelOptions& model = config.model;
  if (config.mode != "full" || sizes.users_and_items) return items;
  const int64_t value = config.precision == "bf16" ? 2 : 4;
  const GraphCounts graph = prepared(model_info(model.model), sizes.graph);
  if (model.model != "mlp" && model.layers > 1) items.push_back({"edges", graph.edges * 4 * (trains ? 2 : 1)});
  // While the last layer passes its gradients back, the values of the layer before it are in
  // memory, too. The layers of recommenders are as wide as their input.
  const bool has_hidden = model.layers > 1 && model.model != "lightgcn" && model.model != "ngcf";
  const int64_t hidden = has_hidden ? static_cast<int64_t>(model.hidden) : 0;
  items.push_back({"values of the last layers", graph.nodes * (hidden + sizes.classes) * value});
  if (trains) items.push_back({"labels and loss weights", graph.nodes * 8});
  return items;
}

void require_device(const RunConfig& config, const DataSizes& sizes, bool trains) {
  const DeviceChoice choice = choose_device(config.device, config.precision);
  if (!choice.gpu) return;
  const int64_t need = total_bytes(device_before_reading(config, sizes, trains));
  const DeviceInfo device = device_plugin()->devices()[choice.index];
  MemoryBound bound{device.free_bytes > 0 ? device.free_bytes : device.memory_bytes, "what is free on the device"};
  if (config.memory_limit > 0 && config.memory_limit < bound.bytes) bound = {config.memory_limit, "--memory-limit"};
  if (need <= bound.bytes) return;
  refuse_memory("the run needs at least this much of the device's memory:", static_cast<double>(need), bound,
                std::string(kSmallerModel) + (config.mode == "full" ? ", or --mode minibatch" : ""));
}

}  // namespace nacre
