#include "nacre/train/bill.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/parallel.h"
#include "nacre/train/bill_parts.h"
#include "nacre/train/device.h"
#include "nacre/train/room.h"

namespace nacre {
namespace {

constexpr int64_t kMiB = 1 << 20;
// Memory of the code and tables of the program and its libraries, of plans, and of pages that
// allocators keep.
constexpr int64_t kProgram = 56 * kMiB;
constexpr int64_t kPerThread = kMiB;
// Bytes of the pages of the files of the program and its libraries, which held_memory() leaves out.
constexpr int64_t kProgramFiles = 12 * kMiB;
// require_parameters() never refuses parameters that take fewer bytes than this, with all that
// training keeps of them. The bill counts them later.
constexpr double kManyParameterBytes = 64.0 * kMiB;

std::string size_of(double bytes) { return human_bytes(bytes); }
std::string size_of(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

// Returns the bytes that the process would hold after another allocation. Mapped files count as if
// they were read, unless the run is embedded, because the program around it may have mapped files
// that the run does not read.
int64_t held_with(const RunConfig& config, int64_t bytes) {
  if (config.embedded) return held_memory() + kProgram / 2 + bytes;
  // The program grows a little while it prepares, so kProgram / 2 is added, as in bill_of().
  const int64_t unread = std::max<int64_t>(0, unread_file_bytes() - config.disk_bytes);
  return resident_memory() + unread + kProgram / 2 + bytes;
}

bool keeps_moments(const OptimizerOptions& o) { return o.name != "sgd"; }

}  // namespace

void refuse_memory(const std::string& what, double need, const MemoryBound& bound, const std::string& remedy) {
  const bool asked = bound.by == "--memory-limit";
  throw UserError("memory",
                  fmt::format("{} {} are needed, but only {} may be used ({}{})", what, size_of(need),
                              size_of(bound.bytes), asked ? "" : "limited by ", bound.by),
                  remedy + (asked ? ", or raise --memory-limit" : ""));
}

bool runs_on_gpu(const RunConfig& config) {
  try {
    return choose_device(config.device, config.precision).gpu;
  } catch (const UserError&) {
    return false;
  }
}

int64_t parameter_copies(const RunConfig& config, bool training) {
  if (!training) return 1;
  const int moments = keeps_moments(config.optimizer) ? 2 : config.optimizer.momentum > 0 ? 1 : 0;
  // Each track has weights and, on the host, gradients.
  const int64_t tracks = config.staleness > 0 ? (int64_t{config.staleness} + 1) * (runs_on_gpu(config) ? 1 : 2) : 0;
  return 3 + moments + (config.optimizer.ema > 0 ? 1 : 0) + tracks;
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
  std::string remedy = bill.remedy.empty() ? kSmallerModel : bill.remedy;
  if (phase.name == "reading") remedy = "use a smaller graph, or convert it to a .nacre file, which is mapped";
  refuse_memory(fmt::format("{} needs {} for {}; in all", phase.name, size_of(part->bytes), part->what),
                static_cast<double>(bill.bytes()), bound, remedy);
}

void require_parameters(const Dfg& dfg, const Blocks& blocks, const RunConfig& config, bool training) {
  const double one = parameter_bytes(dfg, blocks.rows(Space::vertex(0)), blocks.rows(Space::type()));
  const double need = one * static_cast<double>(parameter_copies(config, training));
  if (need <= kManyParameterBytes) return;
  const MemoryBound bound = host_bound(config, runs_on_gpu(config));
  if (need <= static_cast<double>(bound.bytes)) return;
  refuse_memory(
      fmt::format("the model has {} of parameters; with everything that training keeps of them,", size_of(one)), need,
      bound, kSmallerModel);
}

void require_room(const RunConfig& config, int64_t bytes, const std::string& what, const std::string& remedy) {
  if (config.program_bytes == 0) return;
  const MemoryBound bound = host_bound(config, runs_on_gpu(config));
  const int64_t need = held_with(config, bytes);
  if (need <= bound.bytes) return;
  refuse_memory(fmt::format("preparing needs {} for {}; in all", size_of(bytes), what), static_cast<double>(need),
                bound, remedy.empty() ? kSmallerModel : remedy);
}

bool has_room(const RunConfig& config, int64_t bytes) {
  return config.program_bytes == 0 || held_with(config, bytes) <= host_bound(config, runs_on_gpu(config)).bytes;
}

int64_t room_for_plans(const RunConfig& config) {
  if (config.memory_limit <= 0 || config.program_bytes == 0 || runs_on_gpu(config)) return config.memory_limit;
  return std::max(kMiB, config.memory_limit - std::max(config.program_bytes, held_memory()));
}

int64_t ranking_bytes(const std::string& metric, const Dataset& d) {
  if (metric != "roc_auc" && metric != "average_precision") return 0;
  const int64_t split = std::max({d.splits.train.size(), d.splits.val.size(), d.splits.test.size()});
  // Counts one number for each node, and a list of the nodes for each class that is being ranked.
  return split * 8 * (1 + std::min<int64_t>(num_threads(), d.num_classes));
}

Bill bill_of(const HostMemory& session, const Bill& before, int64_t mapped) {
  Bill bill;
  bill.remedy = session.remedy;
  const int64_t held = held_memory();
  const int64_t measured = peak_memory();
  // The item of the program also counts memory that the figures of the session do not name: plans,
  // tables, freed memory that the allocator keeps, and pages of a mapped file whose contents were
  // made anew.
  const int64_t known = session.held - mapped;
  int64_t program = program_bytes() + (session.gpu ? kGpuLibraries : 0);
  program = std::max(program, std::max<int64_t>(0, held - known) + kProgramFiles + kProgram / 2);
  for (const MemoryPhase& phase : before.phases) {
    if (phase.name == "reading" || phase.name == "preparing") bill.phases.push_back(phase);
  }
  const int64_t past = bill.phases.empty() ? 0 : bill.bytes();
  if (measured > past && !session.embedded) {
    if (bill.phases.empty()) bill.phases.push_back({"reading and preparing", {}});
    MemoryPhase& last = bill.phases.back();
    last.items.push_back({"further memory, as measured", measured - last.bytes()});
  }
  std::vector<MemoryItem> items = session.training;
  items.insert(items.begin(), {"the program and its plans", program});
  const auto add = [&](const std::string& name, const std::vector<MemoryItem>& more) {
    bill.phases.push_back({name, items});
    std::vector<MemoryItem>& all = bill.phases.back().items;
    all.insert(all.end(), more.begin(), more.end());
  };
  add(session.trains ? "training" : "predicting", {});
  if (!session.loading.empty()) add("loading weights", session.loading);
  add("evaluating", session.evaluating);
  if (!session.writing.empty()) add("writing predictions", session.writing);
  return bill;
}

}  // namespace nacre
