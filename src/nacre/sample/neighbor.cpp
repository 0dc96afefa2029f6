// Node-wise sampling: every vertex draws among its own in-edges.
#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/sample/draw.h"
#include "nacre/sample/hop_sampler.h"
#include "nacre/sample/locality.h"
#include "nacre/sample/pick.h"

namespace nacre {
namespace {

constexpr uint32_t kSmallCount = 32;

// Does what draw::distinct does, for `count` ≤ lanes < degree ≤ 2^31, and writes positions from
// `begin` on, ascending. The draws do not depend on each other, so all are made first. In most
// cases they are distinct, and then the place of each is the number of smaller ones. Only one
// branch depends on the draws: whether they are distinct.
template <uint32_t lanes>
void few_distinct(const draw::Stream& stream, uint32_t degree, uint32_t count, int64_t begin, int64_t* out) {
  int32_t drawn[lanes];
  for (uint32_t i = 0; i < count; i += 4) {
    const PhiloxBlock words = stream.four(i / 4);
    for (uint32_t k = 0; k < 4; ++k) {
      drawn[i + k] = static_cast<int32_t>(draw::below(words[k], uint64_t{degree - count + i + k} + 1));
    }
  }
  for (uint32_t i = count; i < lanes; ++i) drawn[i] = -1 - static_cast<int32_t>(i);
  int32_t smaller[lanes] = {};
  int32_t equal[lanes] = {};
  for (uint32_t m = 0; m < count; ++m) {
    for (uint32_t i = 0; i < lanes; ++i) smaller[i] += static_cast<int32_t>(drawn[m] < drawn[i]);
    for (uint32_t i = 0; i < lanes; ++i) equal[i] += static_cast<int32_t>(drawn[m] == drawn[i]);
  }
  uint32_t pairs = 0;
  for (uint32_t i = 0; i < lanes; ++i) pairs += static_cast<uint32_t>(equal[i]);
  if (pairs == count) {  // each draw equals only itself
    for (uint32_t i = 0; i < count; ++i) out[smaller[i]] = begin + drawn[i];
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const int64_t drawn_before = begin + drawn[i];
    int64_t pick = drawn_before;
    uint32_t place = i;
    for (uint32_t m = 0; m < i; ++m) pick = out[m] == drawn_before ? begin + degree - count + i : pick;
    for (; place > 0 && out[place - 1] > pick; --place) out[place] = out[place - 1];
    out[place] = pick;
  }
}

inline void small_distinct(const draw::Stream& stream, uint32_t degree, uint32_t count, int64_t begin, int64_t* out) {
  if (count <= 8) return few_distinct<8>(stream, degree, count, begin, out);
  if (count <= 16) return few_distinct<16>(stream, degree, count, begin, out);
  few_distinct<32>(stream, degree, count, begin, out);
}

struct Row {
  int64_t begin;
  int64_t degree;
};

template <class Table>
class NeighborSampler final : public HopSampler<Table> {
 public:
  NeighborSampler(const Graph& graph, const SampleOptions& options, int hops, const Locality* locality)
      : HopSampler<Table>(graph, options, hops), locality_(locality) {}

 private:
  using HopSampler<Table>::graph_;
  using HopSampler<Table>::options_;
  using HopSampler<Table>::key_;

  void choose(int index, Hop& hop) override {
    const bool by_type = !options_.type_fanout.empty();
    fanout_ = by_type ? options_.type_fanout[index] : std::vector<int>{options_.fanout[index]};
    near_scale_ = locality_ != nullptr ? locality_->scale() : 1;
    if (near_scale_ != 1) preferred_ = locality_->preferred(index);
    find_rows(hop);
    hop.edges = this->pool_.template take<int64_t>(bound(hop.num_dst));
    const bool whole = std::all_of(fanout_.begin(), fanout_.end(), [](int k) { return k < 0; });
    if (!whole) hop.scale = this->pool_.template take<float>(hop.edges.size());
    hop.row_ptr[0] = 0;
    if (whole) {
      take_all(hop);
    } else if (by_type || options_.weighted || near_scale_ != 1) {
      choose_by_channel(index, hop);
    } else {
      choose_uniform(index, hop);
    }
    hop.num_edges = hop.row_ptr[hop.num_dst];
  }

  void find_rows(const Hop& hop) {
    if (rows_.size() < hop.num_dst) rows_ = Buffer<Row>(hop.num_dst * 2);
    const NodeId* vertices = this->vertices().data();
    const int64_t* row_ptr = graph_.row_ptr().data();
    constexpr int64_t ahead = 32;
    for (int64_t i = 0; i < hop.num_dst; ++i) {
      if (i + ahead < hop.num_dst) __builtin_prefetch(row_ptr + vertices[i + ahead]);
      const int64_t* row = row_ptr + vertices[i];
      rows_[i] = {row[0], row[1] - row[0]};
    }
  }

  // Returns an upper bound on the number of edges that the first `num_dst` destinations can draw.
  int64_t bound(int64_t num_dst) const {
    int64_t most = 0;
    for (const int k : fanout_) most = k < 0 || most < 0 ? -1 : most + k;
    int64_t total = 0;
    for (int64_t i = 0; i < num_dst; ++i) {
      const int64_t degree = rows_[i].degree;
      if (most < 0) {
        total += options_.replace && fanout_.size() > 1 ? degree + replaced() : degree;
      } else {
        total += options_.replace ? (degree > 0 ? most : 0) : std::min(degree, most);
      }
    }
    return total;
  }
  int64_t replaced() const {
    int64_t sum = 0;
    for (const int k : fanout_) sum += std::max(k, 0);
    return sum;
  }

  void take_all(Hop& hop) const {
    int64_t* out = hop.edges.data();
    for (int64_t i = 0; i < hop.num_dst; ++i) {
      const Row row = rows_[i];
      for (int64_t k = 0; k < row.degree; ++k) *out++ = row.begin + k;
      hop.row_ptr[i + 1] = out - hop.edges.data();
    }
  }

  void choose_uniform(int index, Hop& hop) {
    const auto count = static_cast<uint32_t>(fanout_[0]);
    const NodeId* vertices = this->vertices().data();
    int64_t* out = hop.edges.data();
    float* scale = hop.scale.data();
    int64_t* row_ptr = hop.row_ptr.data();
    draw::Stream stream{key_, draw::place(0, static_cast<uint32_t>(index)), 0};
    const bool replace = options_.replace;
    for (int64_t i = 0; i < hop.num_dst; ++i) {
      const Row row = rows_[i];
      const auto degree = static_cast<uint32_t>(row.degree);
      stream.vertex = vertices[i];
      uint32_t taken = count;
      if (!replace && degree <= count) {
        taken = degree;
        for (uint32_t k = 0; k < degree; ++k) out[k] = row.begin + k;
        for (uint32_t k = 0; k < degree; ++k) scale[k] = 1;
      } else if (!replace && count <= kSmallCount && degree <= uint32_t{1} << 31) {
        small_distinct(stream, degree, count, row.begin, out);
        const float s = static_cast<float>(degree) / static_cast<float>(count);
        for (uint32_t k = 0; k < count; ++k) scale[k] = s;
      } else {
        const auto picks = picker_.uniform(stream, degree, fanout_[0], replace);
        taken = static_cast<uint32_t>(picks.size());
        for (uint32_t k = 0; k < taken; ++k) {
          out[k] = row.begin + picks[k].index;
          scale[k] = picks[k].scale;
        }
      }
      scale += taken;
      out += taken;
      row_ptr[i + 1] = out - hop.edges.data();
    }
  }

  // Chooses edges if they are drawn by weight, if every edge type has a fan-out, or if near
  // vertices are preferred. The edges are chosen channel by channel and then merged into the order
  // of the row.
  void choose_by_channel(int index, Hop& hop) {
    int64_t at = 0;
    for (int64_t i = 0; i < hop.num_dst; ++i) {
      const Row row = rows_[i];
      split_row(row);
      merged_.clear();
      for (size_t channel = 0; channel < fanout_.size(); ++channel) {
        const draw::Stream stream{key_, draw::place(static_cast<uint32_t>(channel), static_cast<uint32_t>(index)),
                                  this->vertices()[i]};
        const std::span<const uint32_t> members{members_.data() + channel_ptr_[channel],
                                                channel_ptr_[channel + 1] - channel_ptr_[channel]};
        for (const Pick& pick : pick_from(stream, row, members, fanout_[channel])) {
          merged_.push_back({members[pick.index], pick.scale});
        }
      }
      if (fanout_.size() > 1) {
        std::sort(merged_.begin(), merged_.end(), [](const Pick& a, const Pick& b) { return a.index < b.index; });
      }
      for (const Pick& pick : merged_) {
        hop.edges[at] = row.begin + pick.index;
        hop.scale[at++] = pick.scale;
      }
      hop.row_ptr[i + 1] = at;
    }
  }

  std::span<const Pick> pick_from(const draw::Stream& stream, const Row& row, std::span<const uint32_t> members,
                                  int count) {
    if (!options_.weighted && near_scale_ == 1)
      return picker_.uniform(stream, static_cast<uint32_t>(members.size()), count, options_.replace);
    weights_.resize(members.size());
    for (size_t i = 0; i < members.size(); ++i) {
      const int64_t edge = row.begin + members[i];
      weights_[i] = options_.weighted ? graph_.edge_weight()[edge] : 1.0;
      if (near_scale_ != 1 && preferred_[graph_.col_idx()[edge]] != 0) weights_[i] *= near_scale_;
    }
    return picker_.weighted(stream, weights_, count, options_.replace);
  }

  // Groups the edges of a row by channel: members_[channel_ptr_[t], channel_ptr_[t + 1]) are the
  // edges of channel t, as offsets in the row, ascending.
  void split_row(const Row& row) {
    const auto degree = static_cast<uint32_t>(row.degree);
    members_.resize(degree);
    channel_ptr_.assign(fanout_.size() + 2, 0);
    if (fanout_.size() == 1) {
      for (uint32_t k = 0; k < degree; ++k) members_[k] = k;
      channel_ptr_[1] = degree;
      return;
    }
    const uint16_t* types = graph_.edge_type().data() + row.begin;
    for (uint32_t k = 0; k < degree; ++k) ++channel_ptr_[types[k] + 2u];
    for (size_t t = 2; t < channel_ptr_.size(); ++t) channel_ptr_[t] += channel_ptr_[t - 1];
    for (uint32_t k = 0; k < degree; ++k) members_[channel_ptr_[types[k] + 1u]++] = k;
  }

  std::vector<int> fanout_;  // fan-outs of this hop, one for each channel
  Buffer<Row> rows_;
  Picker picker_;
  std::vector<uint32_t> members_;
  std::vector<uint32_t> channel_ptr_;
  std::vector<double> weights_;
  std::vector<Pick> merged_;
  const Locality* locality_;            // null: no vertex is preferred
  double near_scale_ = 1;               // weight of preferred vertices in this hop
  std::span<const uint8_t> preferred_;  // vertices that this hop prefers, if the weight is not 1
};

}  // namespace

std::unique_ptr<BatchSampler> make_neighbor_sampler(const Graph& graph, const SampleOptions& options, int hops,
                                                    int64_t max_direct, const Locality* locality) {
  if (graph.num_nodes() > max_direct) {
    return std::make_unique<NeighborSampler<HashTable>>(graph, options, hops, locality);
  }
  return std::make_unique<NeighborSampler<DirectTable>>(graph, options, hops, locality);
}

namespace {

MakeBatchSampler prepare_neighbor(const Graph& graph, const SampleOptions& options, int hops) {
  return [&graph, &options, hops] { return make_neighbor_sampler(graph, options, hops); };
}

}  // namespace

std::vector<SamplerInfo> samplers_in_neighbor() {
  return {{.name = "neighbor",
           .synonyms = {"neighbour", "neighbors", "neighbours"},
           .uniform = true,
           .type_fanout = true,
           .prepare = prepare_neighbor}};
}

}  // namespace nacre
