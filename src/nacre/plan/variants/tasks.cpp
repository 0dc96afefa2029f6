#include "nacre/plan/variants/tasks.h"

#include <fmt/format.h>

#include "nacre/base/log.h"

namespace nacre {
namespace {

// The host cuts a smaller graph in less time than copying it takes.
constexpr int64_t kWorthCopying = int64_t{1} << 21;
// Device memory for each edge: columns twice, keys and values twice (a sort moves them from one
// buffer to the other), bounds, links and sums.
constexpr int64_t kBytesOfEdge = 72;
constexpr int64_t kBytesOfVertex = 8;
// The factors of a gradient that are in memory at the same time take at most this many bytes.
constexpr int64_t kFactors = int64_t{256} << 20;
constexpr int64_t kFewestEdges = 1024;

std::string device_cut_declines(const TaskFacts& f, const DeviceTraits& device) {
  if (device.batches) return "the edges of a batch are cut while the GPU works on other batches";
  if (f.edges < kWorthCopying)
    return fmt::format("{} edges are cut on the host in less time than copying them takes", f.edges);
  const int64_t bytes = f.edges * kBytesOfEdge + f.vertices * kBytesOfVertex;
  if (bytes < f.free_bytes) return "";
  return fmt::format("cutting would take {} of the GPU's memory, and {} are free",
                     human_bytes(static_cast<double>(bytes)), human_bytes(static_cast<double>(f.free_bytes)));
}

std::string windows_decline(const TaskFacts& f, const DeviceTraits&) {
  return f.edges == 0 ? "there are no edges" : "";
}

int64_t most_pieces(const TaskFacts& f, const DeviceTraits&) { return 4 * f.rows + 4096; }

}  // namespace

TaskFacts task_facts(const PlannedKernel& k, int64_t free_bytes) {
  const Graph& graph = k.graph();
  const int64_t rows = k.kernel.direction == Direction::by_dst ? graph.num_dst() : graph.num_src();
  return {graph.num_edges(), graph.num_src() + graph.num_dst(), rows, free_bytes};
}

const VariantList<TaskFacts>& task_cut_variants() {
  static const VariantList<TaskFacts> list = {
      "gTasks", false, {{"cut on the GPU", device_cut_declines, nullptr}, {"cut on the host", nullptr, nullptr}}};
  return list;
}

const VariantList<TaskFacts>& task_window_variants() {
  static const VariantList<TaskFacts> list = {
      "gTasks walked together",
      false,
      {{"until rows are in few pieces", windows_decline, nullptr, most_pieces}, {"each by itself", nullptr, nullptr}},
      {"at most {}"}};
  return list;
}

ChunkFacts task_chunks(const PlannedKernel& k) {
  const RowProgram& program = k.kernel.program;
  const int64_t row = 4 * (program.widths[k.kernel.value] + program.widths[k.kernel.second_value]);
  return {k.graph().num_edges(), row, kFactors, kFewestEdges};
}

}  // namespace nacre
