#include "nacre/engine/rank_block.h"

#include <charconv>
#include <map>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/engine/rank_messages.h"

namespace nacre {
namespace {

constexpr int64_t kChunkRows = 1 << 12;

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

// Returns the numbers in the whole graph of the edges of a block, whose destinations are `own`.
Array<EdgeId> edge_numbers(const Graph& whole, const LocalGraph& local) {
  std::vector<EdgeId> numbers(static_cast<size_t>(local.graph.num_edges()));
  parallel_for(local.num_own(), kChunkRows, [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      auto number = static_cast<EdgeId>(whole.row_ptr()[local.own[v]]);
      for (int64_t e = local.graph.row_ptr()[v]; e < local.graph.row_ptr()[v + 1]; ++e) numbers[e] = number++;
    }
  });
  return numbers;
}

Array<NodeId> vertex_numbers(const LocalGraph& local) {
  std::vector<NodeId> numbers(local.own.begin(), local.own.end());
  numbers.insert(numbers.end(), local.halo.begin(), local.halo.end());
  return numbers;
}

class CommunicatorLinks : public RankLinks {
 public:
  CommunicatorLinks(const Graph& whole, std::shared_ptr<const LocalGraph> local, Communicator& communicator,
                    const std::shared_ptr<Device>& device)
      : local_(std::move(local)),
        communicator_(communicator),
        vertices_(vertex_numbers(*local_)),
        edges_(edge_numbers(whole, *local_)),
        messages_(local_, communicator, device) {
    count_rows();
  }

  const Array<NodeId>& vertex_ids() const override { return vertices_; }
  const Array<EdgeId>& edge_ids() const override { return edges_; }

  int64_t total_rows(Space space) const override {
    if (space.kind == SpaceKind::type) return local_->graph.num_edge_types();
    if (space.kind == SpaceKind::param) return 1;
    if (space.kind == SpaceKind::rows) return space.count;
    return totals_.at(space.kind == SpaceKind::halo ? SpaceKind::vertex : space.kind);
  }

  void exchange(const void* own, void* all, int64_t row_bytes) override {
    messages_.start_exchange(own, all, row_bytes)->finish();
  }
  void exchange_add(const float* all, float* own, int64_t width) override {
    messages_.start_add(SumType::f32, all, own, width)->finish();
  }
  void exchange_add(const double* all, double* own, int64_t width) override {
    messages_.start_add(SumType::f64, all, own, width)->finish();
  }
  void all_reduce(float* values, int64_t count) override { communicator_.all_reduce(values, count); }
  void all_reduce(double* values, int64_t count) override { communicator_.all_reduce(values, count); }

  std::unique_ptr<PendingCommunication> start(const Communication& what) override {
    if (what.op == Op::exchange) {
      return messages_.start_exchange(what.from, what.to, what.width * static_cast<int64_t>(sizeof(float)));
    }
    if (what.op == Op::exchange_add) return messages_.start_add(SumType::f32, what.from, what.to, what.width);
    return messages_.start_all_reduce(what.from, what.to, what.rows * what.width);
  }

 private:
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
  std::map<SpaceKind, int64_t> totals_;
  RankMessages messages_;
};

}  // namespace

std::shared_ptr<RankLinks> make_rank_links(const Graph& whole, std::shared_ptr<const LocalGraph> local,
                                           Communicator& communicator, const std::shared_ptr<Device>& device) {
  NACRE_CHECK(whole.num_edges() <= int64_t{UINT32_MAX}, "edges of graphs on several ranks have 32-bit numbers");
  return std::make_shared<CommunicatorLinks>(whole, std::move(local), communicator, device);
}

}  // namespace nacre
