#include "nacre/train/bill.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/parallel.h"
#include "nacre/train/device.h"
#include "nacre/train/room.h"

namespace nacre {
namespace {

constexpr int64_t kMiB = 1 << 20;
// Code and tables of the program and its libraries, plans, and pages that allocators keep.
constexpr int64_t kProgram = 56 * kMiB;
constexpr int64_t kPerThread = kMiB;
// Drivers and compilers of a GPU.
constexpr int64_t kGpuLibraries = 768 * kMiB;
// Less than this is not worth a refusal of its own: the bill will tell.
constexpr double kManyParameterBytes = 64.0 * kMiB;

std::string size_of(double bytes) { return human_bytes(bytes); }
std::string size_of(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

bool keeps_moments(const OptimizerOptions& o) { return o.name != "sgd"; }

// Copies of the parameters' size that a run holds: values, moments, the best so far, gradients.
int parameter_copies(const RunConfig& config, bool training) {
  if (!training) return 1;
  return 3 + (keeps_moments(config.optimizer) ? 2 : config.optimizer.momentum > 0 ? 1 : 0);
}

double parameter_bytes(const Dfg& dfg, int64_t nodes, int64_t edge_types) {
  double sum = 0;
  for (const Node& node : dfg.nodes()) {
    if (node.op != Op::param) continue;
    double size = 4;
    for (const int64_t d : node.type.dims) size *= static_cast<double>(d);
    const Space space = node.type.space;
    if (space.kind == SpaceKind::type) size *= static_cast<double>(std::max<int64_t>(1, edge_types));
    if (space.kind == SpaceKind::vertex) size *= static_cast<double>(nodes);
    if (space.kind == SpaceKind::rows) size *= static_cast<double>(space.count);
    sum += size;
  }
  return sum;
}

void refuse(const std::string& what, double need, const MemoryBound& bound, const std::string& remedy) {
  const bool asked = bound.by == "--memory-limit";
  throw UserError("memory",
                  fmt::format("{} {} but only {} may be used ({}{})", what, size_of(need), size_of(bound.bytes),
                              asked ? "" : "limited by ", bound.by),
                  remedy + (asked ? ", or raise --memory-limit" : ""));
}

constexpr const char* kSmaller = "use a smaller --hidden, fewer --layers, --heads or --relations, or a smaller graph";

// The graph as the model wants it.
GraphCounts prepared(const ModelInfo& model, GraphCounts graph) {
  if (model.needs_types) graph.typed = true;
  if (model.needs_self_loops) graph.edges += graph.nodes;
  return graph;
}

bool on_gpu(const RunConfig& config) {
  try {
    return choose_device(config.device, config.precision).gpu;
  } catch (const UserError&) {
    return false;  // said elsewhere
  }
}

}  // namespace

ModelOptions model_for(const RunConfig& config, const DataSizes& sizes) {
  const ModelInfo& model = model_info(config.model.model);
  if (model.needs_types && !sizes.graph.typed && (config.relations < 1 || config.relations > 65535))
    throw UserError("--relations", "must lie between 1 and 65535");
  ModelOptions options = config.model;
  options.in_dim = sizes.features;
  options.out_dim = std::max<int64_t>(2, sizes.classes);
  options.num_edge_types = sizes.graph.typed ? sizes.edge_types : model.needs_types ? config.relations : 0;
  // Files do not always tell how many types there are; too many bases are refused when the graph is there.
  if (sizes.graph.typed && model.needs_types) options.num_edge_types = std::max(sizes.edge_types, options.num_bases);
  options.edge_weighted = sizes.graph.weighted && model.supports_edge_weight && !config.load.ignore_edge_weights;
  options.loss = sizes.multilabel ? "bce" : "cross_entropy";
  return complete_options(options);
}

int64_t program_bytes() { return kProgram + kPerThread * num_threads(); }

const MemoryPhase& Bill::largest() const {
  return *std::max_element(phases.begin(), phases.end(),
                           [](const MemoryPhase& a, const MemoryPhase& b) { return a.bytes() < b.bytes(); });
}

std::string Bill::text() const {
  std::vector<std::pair<std::string, int64_t>> rows;
  for (const MemoryPhase& phase : phases) {
    rows.emplace_back(phase.name, phase.bytes());
    if (&phase != &largest()) continue;
    for (const MemoryItem& item : phase.items) {
      if (item.bytes > 0) rows.emplace_back("  " + item.what, item.bytes);
    }
  }
  rows.emplace_back("in all, at most", bytes());
  size_t longest = 0;
  for (const auto& [what, bytes] : rows) longest = std::max(longest, what.size());
  std::string text;
  for (const auto& [what, bytes] : rows) text += fmt::format("  {:<{}}  {:>11}\n", what, longest, size_of(bytes));
  return text;
}

MemoryBound host_bound(const RunConfig& config, bool gpu) {
  const MemoryLeft left = memory_left();
  MemoryBound machine{left.bytes + std::min(held_memory(), std::numeric_limits<int64_t>::max() - left.bytes),
                      left.limited_by};
  if (!gpu && config.memory_limit > 0 && config.memory_limit < machine.bytes)
    return {config.memory_limit, "--memory-limit"};
  return machine;
}

void require_fit(const Bill& bill, const MemoryBound& bound) {
  if (bill.bytes() <= bound.bytes) return;
  const MemoryPhase& phase = bill.largest();
  const auto part = std::max_element(phase.items.begin(), phase.items.end(),
                                     [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  refuse(fmt::format("{} needs {} for {}; in all", phase.name, size_of(part->bytes), part->what),
         static_cast<double>(bill.bytes()), bound,
         phase.name == "reading" ? "use a smaller graph, or convert it to a .nacre file, which is mapped" : kSmaller);
}

void require_parameters(const Dfg& dfg, const Blocks& blocks, const RunConfig& config, bool training) {
  const double one = parameter_bytes(dfg, blocks.rows(Space::vertex(0)), blocks.rows(Space::type()));
  const double need = one * parameter_copies(config, training);
  if (need <= kManyParameterBytes) return;
  const MemoryBound bound = host_bound(config, on_gpu(config));
  if (need <= static_cast<double>(bound.bytes)) return;
  refuse(fmt::format("the model has {} of parameters; with all that training keeps of them they take", size_of(one)),
         need, bound, kSmaller);
}

void require_room(const RunConfig& config, int64_t bytes, const std::string& what) {
  if (config.program_bytes == 0) return;
  const MemoryBound bound = host_bound(config, on_gpu(config));
  const int64_t need = resident_memory() + bytes;
  if (need <= bound.bytes) return;
  refuse(fmt::format("preparing needs {} for {}; in all", size_of(bytes), what), static_cast<double>(need), bound,
         kSmaller);
}

int64_t room_for_plans(const RunConfig& config) {
  if (config.memory_limit <= 0 || config.program_bytes == 0 || on_gpu(config)) return config.memory_limit;
  return std::max(kMiB, config.memory_limit - std::max(config.program_bytes, held_memory()));
}

int64_t ranking_bytes(const std::string& metric, const Dataset& d) {
  if (metric != "roc_auc") return 0;
  const int64_t split = std::max({d.splits.train.size(), d.splits.val.size(), d.splits.test.size()});
  return split * 8 * std::min<int64_t>(num_threads(), d.num_classes);
}

Bill bill_before_reading(const RunConfig& config, const DataSizes& sizes, bool trains) {
  Bill bill;
  const MemoryItem program{"the program", program_bytes() + (on_gpu(config) ? kGpuLibraries : 0)};
  bill.phases.push_back({"reading", {program, {"the data while they are read", sizes.reading}}});

  const ModelInfo& model = model_info(config.model.model);
  const GraphCounts graph = prepared(model, sizes.graph);
  const bool changed = model.needs_types || model.needs_self_loops;
  const int64_t new_graph = changed ? graph.bytes() : 0;
  const MemoryItem data{sizes.mapped > 0 ? "data (mapped file and memory)" : "data", sizes.mapped + sizes.held};
  std::vector<MemoryItem> making{program, data, {"graph as the model wants it", new_graph}};
  if (model.needs_types && !sizes.graph.typed) making.push_back({"edges by destination", sizes.graph.edges * 4});
  if (config.normalize_features == "row") making.push_back({"features, divided by their sums", sizes.feature_bytes});
  bill.phases.push_back({"preparing", making});

  // The graph that was read is given back, unless it is a mapped file's.
  const int64_t kept = sizes.mapped + sizes.held - (changed && sizes.mapped == 0 ? sizes.graph.bytes() : 0) + new_graph;
  std::vector<MemoryItem> training{program, {"data and graph", kept}};
  if (config.mode == "full" && trains && !on_gpu(config)) {
    training.push_back({"labels and loss weights", graph.nodes * 8});
    if (model.name != "mlp") training.push_back({"edges by source, while they are sorted", making_out_bytes(graph)});
  }
  if (!sizes.heterogeneous && sizes.features > 0) {
    const ModelOptions options = model_for(config, sizes);
    const double most = 0x1p59;
    const double bytes = parameter_bytes(build_model(options), graph.nodes, options.num_edge_types);
    training.push_back({"parameters and all that training keeps of them",
                        static_cast<int64_t>(std::min(most, bytes * parameter_copies(config, trains)))});
  }
  bill.phases.push_back({trains ? "training" : "predicting", training});
  return bill;
}
Bill bill_of(const HostMemory& session, const Bill& before, int64_t mapped) {
  Bill bill;
  const int64_t held = held_memory();
  const int64_t measured = peak_memory();
  // What the session's own figures do not name: plans, tables, memory that was freed and stays with the allocator, and
  // pages of a mapped file whose contents were made anew.
  const int64_t known = session.held - mapped;
  int64_t program = program_bytes() + (session.gpu ? kGpuLibraries : 0);
  program = std::max(program, std::max<int64_t>(0, held - known) + kProgram / 2);
  for (const MemoryPhase& phase : before.phases) {
    if (phase.name == "reading" || phase.name == "preparing") bill.phases.push_back(phase);
  }
  const int64_t past = bill.phases.empty() ? 0 : bill.bytes();
  if (measured > past) {
    if (bill.phases.empty()) bill.phases.push_back({"reading and preparing", {}});
    MemoryPhase& last = bill.phases.back();
    last.items.push_back({"more, as measured", measured - last.bytes()});
  }
  std::vector<MemoryItem> items = session.training;
  items.insert(items.begin(), {"the program and its plans", program});
  bill.phases.push_back({"training", items});
  for (const MemoryItem& item : session.evaluating) items.push_back(item);
  bill.phases.push_back({"evaluating", items});
  return bill;
}

}  // namespace nacre
