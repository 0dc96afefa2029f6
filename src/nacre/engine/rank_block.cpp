#include "nacre/engine/rank_block.h"

#include <charconv>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/engine/gpu/compiler.h"
#include "nacre/engine/rank_messages.h"

namespace nacre {
namespace {

// The kinds of spaces whose numbers of rows differ between ranks.
constexpr SpaceKind kCounted[] = {SpaceKind::vertex, SpaceKind::edge, SpaceKind::pair_src, SpaceKind::pair_dst};

int64_t rows_of(const LocalGraph& local, SpaceKind kind) {
  switch (kind) {
    case SpaceKind::vertex:
      return local.num_own();
    case SpaceKind::edge:
      return local.graph.num_edges();
    default:
      return local.graph.count_pairs(kind == SpaceKind::pair_src ? End::src : End::dst);
  }
}

using Totals = std::map<SpaceKind, int64_t>;

int64_t total_of(Space space, const Graph& graph, const Totals& totals) {
  if (space.kind == SpaceKind::type) return graph.num_edge_types();
  if (space.kind == SpaceKind::param) return 1;
  if (space.kind == SpaceKind::rows) return space.count;
  return totals.at(space.kind == SpaceKind::halo ? SpaceKind::vertex : space.kind);
}

class PlanningLinks : public RankLinks {
 public:
  PlanningLinks(const LocalGraph& local, const TotalRows& totals)
      : graph_(local.graph),
        vertices_(vertex_numbers(local)),
        early_{local.alone, local.inside},
        totals_{{SpaceKind::vertex, totals.vertices},
                {SpaceKind::edge, totals.edges},
                {SpaceKind::pair_src, totals.pairs_src},
                {SpaceKind::pair_dst, totals.pairs_dst}} {}

  // Ranks that only plan are all rank 0 and have no shares in the columns, so that their plans are
  // alike.
  int rank() const override { return 0; }
  const std::vector<double>& shares() const override { return shares_; }
  const Array<NodeId>& vertex_ids() const override { return vertices_; }
  const Array<EdgeId>& edge_ids() const override { return edges_; }
  EarlyRows early_rows() const override { return early_; }
  int64_t total_rows(Space space) const override { return total_of(space, graph_, totals_); }
  void exchange(const void*, void*, int64_t, bool) override { fail(); }
  void exchange_add(const float*, float*, int64_t, bool) override { fail(); }
  void exchange_add(const double*, double*, int64_t, bool) override { fail(); }
  void to_columns(const void*, void*, int64_t, int64_t) override { fail(); }
  void to_rows(const void*, void*, int64_t, int64_t) override { fail(); }
  void all_reduce(float*, int64_t) override { fail(); }
  void all_reduce(double*, int64_t) override { fail(); }

 private:
  static void fail() { NACRE_CHECK(false, "a rank that only plans cannot communicate"); }

  Graph graph_;
  Array<NodeId> vertices_;
  Array<EdgeId> edges_;
  EarlyRows early_;
  Totals totals_;
  std::vector<double> shares_;
};

class CommunicatorLinks : public RankLinks {
 public:
  CommunicatorLinks(const Graph& whole, std::shared_ptr<const LocalGraph> local,
                    std::shared_ptr<const LocalGraph> reversed, const RankColumns& columns, Communicator& communicator,
                    const std::shared_ptr<GpuCompiler>& compiler)
      : local_(std::move(local)),
        communicator_(communicator),
        vertices_(vertex_numbers(*local_)),
        edges_(edge_numbers(whole, *local_)),
        shares_(columns.shares()),
        messages_(local_, columns, communicator, compiler) {
    if (reversed != nullptr) reversed_messages_.emplace(std::move(reversed), columns, communicator, compiler);
    count_rows();
  }

  int rank() const override { return communicator_.rank(); }
  const std::vector<double>& shares() const override { return shares_; }
  const Array<NodeId>& vertex_ids() const override { return vertices_; }
  const Array<EdgeId>& edge_ids() const override { return edges_; }
  EarlyRows early_rows() const override { return {local_->alone, local_->inside}; }

  int64_t total_rows(Space space) const override { return total_of(space, local_->graph, totals_); }

  void exchange(const void* own, void* all, int64_t row_bytes, bool reversed) override {
    messages(reversed).start_exchange(own, all, row_bytes)->finish();
  }
  void exchange_add(const float* all, float* own, int64_t width, bool reversed) override {
    messages(reversed).start_add(SumType::f32, all, own, width)->finish();
  }
  void exchange_add(const double* all, double* own, int64_t width, bool reversed) override {
    messages(reversed).start_add(SumType::f64, all, own, width)->finish();
  }
  void to_columns(const void* own, void* all, int64_t width, int64_t element_bytes) override {
    messages_.start_to_columns(own, all, width, element_bytes)->finish();
  }
  void to_rows(const void* all, void* own, int64_t width, int64_t element_bytes) override {
    messages_.start_to_rows(all, own, width, element_bytes)->finish();
  }
  void all_reduce(float* values, int64_t count) override { communicator_.all_reduce(values, count); }
  void all_reduce(double* values, int64_t count) override { communicator_.all_reduce(values, count); }

  std::unique_ptr<PendingCommunication> start(const Communication& what) override {
    switch (what.op) {
      case Op::exchange:
        return messages(what.reversed).start_exchange(what.from, what.to, what.row_bytes(), what.types);
      case Op::exchange_add:
        return messages(what.reversed)
            .start_add(what.types.narrow ? SumType::bf16 : SumType::f32, what.from, what.to, what.width, what.types);
      case Op::to_columns:
        return messages_.start_to_columns(what.from, what.to, what.width, sizeof(float));
      case Op::to_rows:
        return messages_.start_to_rows(what.from, what.to, what.width, sizeof(float));
      default:
        return messages_.start_all_reduce(static_cast<const float*>(what.from), static_cast<float*>(what.to),
                                          what.rows * what.width);
    }
  }

 private:
  RankMessages& messages(bool reversed) {
    NACRE_CHECK(!reversed || reversed_messages_,
                "a call asks for reversed edges, which the links of this rank do not have");
    return reversed ? *reversed_messages_ : messages_;
  }

  void count_rows() {
    std::string text;
    for (const SpaceKind kind : kCounted) text += std::to_string(rows_of(*local_, kind)) + " ";
    for (const std::string& theirs : communicator_.all_gather(text)) {
      const char* at = theirs.data();
      for (const SpaceKind kind : kCounted) {
        int64_t rows = 0;
        const auto [end, error] = std::from_chars(at, theirs.data() + theirs.size(), rows);
        NACRE_CHECK(error == std::errc() && *end == ' ', "a rank has sent other sizes than were asked for");
        totals_[kind] += rows;
        at = end + 1;
      }
    }
  }

  std::shared_ptr<const LocalGraph> local_;
  Communicator& communicator_;
  Array<NodeId> vertices_;
  Array<EdgeId> edges_;
  Totals totals_;
  std::vector<double> shares_;
  RankMessages messages_;
  std::optional<RankMessages> reversed_messages_;
};

}  // namespace

std::shared_ptr<RankLinks> make_rank_links(const SharedGraph& shared, std::shared_ptr<const LocalGraph> local,
                                           Communicator& communicator, const std::shared_ptr<GpuCompiler>& compiler) {
  if (shared.graph.num_edges() > int64_t{UINT32_MAX})
    throw UserError("--devices", "several devices cannot share a graph of more than 4,294,967,295 edges",
                    "use one device");
  const RankColumns columns(shared.partition, shared.shares, communicator.rank(),
                            compiler ? compiler->device() : nullptr, rows_by_number(*local));
  return std::make_shared<CommunicatorLinks>(shared.graph, std::move(local), shared.reversed, columns, communicator,
                                             compiler);
}

std::shared_ptr<RankLinks> make_planning_links(const LocalGraph& local, const TotalRows& totals) {
  return std::make_shared<PlanningLinks>(local, totals);
}

}  // namespace nacre
