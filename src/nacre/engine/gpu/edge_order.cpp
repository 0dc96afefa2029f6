#include "nacre/engine/gpu/edge_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>

#include "nacre/engine/gpu/row_binding.h"

namespace nacre {
namespace {

constexpr int64_t kPiece = 1 << 22;  // entries that are copied at a time

}  // namespace

Step order_edges(const GpuKernel& g, NodeRef value, const EdgeId* edges, int64_t count, void* to) {
  RowProgram copy;
  copy.domain = {SpaceKind::edge, g.layer()};
  copy.operands = {value, value};
  copy.widths = {g.width(value)};
  copy.code.resize(2);
  copy.code[0].op = MicroOp::load;
  copy.code[0].out = 0;
  copy.code[0].operand = 0;
  copy.code[1].op = MicroOp::store;
  copy.code[1].a = 0;
  copy.code[1].operand = 1;
  const cuda::RowSource source = cuda::map_listed_edges_source(copy);
  cuda::LaunchParams params(cuda::MapListedEdgesParams{.count = count,
                                                       .order = edges,
                                                       .first = 0,
                                                       .col = nullptr,
                                                       .edge_dst = nullptr,
                                                       .edge_type = nullptr,
                                                       .step = g.context.step()});
  params.operands(std::array{g.pointer(value), to});
  return g.context.launch(source.source, blocks_for(count, source), params);
}

GpuContext::Derived& kept_edges(const GpuKernel& g, NodeRef value, const KeptOrder& order) {
  // Layers over the same graph have the same constants. The order identifies the graph, so the
  // number of the layer is removed from the key.
  const std::string key =
      order.key + " " +
      std::regex_replace(expression_key(g.executor.plan().dfg, value), std::regex(R"( e\d+\[)"), " e[");
  return g.context.derived(key, (order.entries * g.width(value) * 4 + 255) / 256 * 256);
}

// Returns the step that fills the memory of kept_edges(). The numbers of the edges are copied from
// the host piece by piece, and the device does not keep them.
Step order_kept_edges(const GpuKernel& g, NodeRef value, const KeptOrder& order) {
  GpuContext::Derived& kept = kept_edges(g, value, order);
  std::vector<std::pair<int64_t, Step>> pieces;
  const int64_t piece = std::min(kPiece, order.entries);
  const std::shared_ptr<void> ids = g.context.derived(fmt::format("{} edge numbers", piece), piece * 4).memory;
  for (int64_t first = 0; first < order.entries; first += kPiece) {
    const int64_t count = std::min(kPiece, order.entries - first);
    void* to = static_cast<char*>(kept.memory.get()) + first * g.width(value) * 4;
    pieces.emplace_back(first, order_edges(g, value, static_cast<const EdgeId*>(ids.get()), count, to));
  }
  return [&kept, &context = g.context, ids, order, pieces = std::move(pieces)] {
    if (kept.made_at == context.constants()) return;
    for (const auto& [first, step] : pieces) {
      context.device().upload(ids.get(), order.edges + first, std::min(kPiece, order.entries - first) * 4);
      step();
    }
    kept.made_at = context.constants();
  };
}

}  // namespace nacre
