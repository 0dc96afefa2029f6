#include "nacre/data/twin_layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/data/twin_math.h"

namespace nacre {
namespace {

constexpr int64_t kLayoutChunk = 1 << 15;

// Returns where communities begin. Their sizes follow the shares and sum to `count`, and no
// community is empty if there are enough vertices.
std::vector<int64_t> community_borders(const std::vector<double>& shares, int64_t count) {
  const auto communities = static_cast<int64_t>(shares.size());
  const int64_t each = count >= communities ? 1 : 0;
  const auto rest = static_cast<double>(count - each * communities);
  std::vector<int64_t> begin(shares.size() + 1, 0);
  double sum = 0;
  for (int64_t c = 0; c < communities; ++c) {
    sum += shares[c];
    begin[c + 1] = c + 1 == communities ? count : each * (c + 1) + std::llround(std::min(1.0, sum) * rest);
  }
  return begin;
}

// Returns the mean of a power law with density x^-(alpha + 1) on [low, high].
double bounded_mean(double low, double high, double alpha) {
  const double ratio = portable_pow(low / high, alpha);
  const double ends = low - high * ratio;  // low^alpha (low^(1 - alpha) - high^(1 - alpha))
  return alpha / (alpha - 1) * ends / (1 - ratio);
}

// Returns the weights by which draws within each group of positions choose a vertex; group g gets
// draws[g] draws. The weights are capped, so that no vertex is expected in more than a part of the
// group's rows. `due` becomes the number of draws that each vertex should still get.
std::vector<float> take_share(std::vector<float>& due, const std::vector<int64_t>& begin,
                              const std::vector<double>& draws) {
  constexpr double max_part = 0.3;
  std::vector<float> weights(due.size());
  parallel_tasks(static_cast<int64_t>(draws.size()), [&](int64_t g) {
    const int64_t first = begin[g];
    const int64_t last = begin[g + 1];
    const double most = max_part * static_cast<double>(last - first);
    double cap = std::numeric_limits<double>::max();
    double sum = 0;
    // Capping lowers the sum, and the sum lowers the cap, so a few passes are needed.
    for (int pass = 0; pass < 8; ++pass) {
      sum = 0;
      for (int64_t s = first; s < last; ++s) sum += std::min<double>(due[s], cap);
      cap = most * sum / std::max(draws[g], 1e-9);
    }
    const double rate = sum > 0 ? draws[g] / sum : 0;
    for (int64_t s = first; s < last; ++s) {
      weights[s] = static_cast<float>(std::min<double>(due[s], cap));
      // At least 1 % of what is due remains, so that every vertex can be drawn for every other.
      due[s] = static_cast<float>(std::max(due[s] - rate * weights[s], 0.01 * due[s]));
    }
  });
  return weights;
}

}  // namespace

std::vector<double> community_shares(const TwinPlan& plan) {
  const int64_t n = plan.communities;
  const Shuffle shuffle(n, plan.key(TwinStream::class_order));
  std::vector<double> shares(n);
  double sum = 0;
  for (int64_t rank = 0; rank < n; ++rank) {
    const double share = portable_pow(static_cast<double>(rank + 1), -plan.spec->class_skew);
    shares[shuffle(rank)] = share;
    sum += share;
  }
  for (double& share : shares) share /= sum;
  return shares;
}

KindLayout lay_out_kind(const TwinPlan& plan, int kind, int64_t block_size) {
  KindLayout layout;
  layout.begin = plan.kind_begin[kind];
  layout.count = plan.kind_size(kind);
  layout.community_begin = community_borders(community_shares(plan), layout.count);
  for (int64_t c = 0; c < plan.communities; ++c) {
    const int64_t first = layout.community_begin[c];
    const int64_t size = layout.community_begin[c + 1] - first;
    const int64_t blocks = (size + block_size - 1) / block_size;
    layout.first_block.push_back(static_cast<int64_t>(layout.block_begin.size()));
    for (int64_t b = 0; b < blocks; ++b) layout.block_begin.push_back(first + b * size / blocks);
  }
  layout.first_block.push_back(static_cast<int64_t>(layout.block_begin.size()));
  layout.block_begin.push_back(layout.count);

  layout.vertex_at = Buffer<NodeId>(layout.count);
  layout.position_of = Buffer<NodeId>(layout.count);
  const Shuffle shuffle(layout.count, plan.key(TwinStream::communities, static_cast<uint64_t>(kind)));
  parallel_for(layout.count, kLayoutChunk, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t position = shuffle(i);
      layout.position_of[i] = static_cast<NodeId>(position);
      layout.vertex_at[position] = static_cast<NodeId>(layout.begin + i);
    }
  });
  return layout;
}

int64_t community_at(const KindLayout& layout, int64_t position) {
  const auto& begin = layout.community_begin;
  return std::upper_bound(begin.begin(), begin.end(), position) - begin.begin() - 1;
}

std::vector<float> draw_weights(int64_t count, const DegreeTail& tail, double mean, uint64_t key) {
  const double alpha = tail.exponent - 1;
  NACRE_CHECK(alpha > 0 && std::abs(alpha - 1) > 1e-3, "a degree exponent must be above 1 and not 2");
  const auto high = static_cast<double>(tail.max);
  double low = high * 1e-9;
  double above = high * (1 - 1e-9);
  for (int step = 0; step < 100; ++step) {
    const double middle = (low + above) / 2;
    (bounded_mean(middle, high, alpha) < mean ? low : above) = middle;
  }
  const double span = 1 - portable_pow(low / high, alpha);
  // A vertex gets the weight of its random rank instead of an independent draw, so that the largest
  // weights occur in graphs of any size.
  const Shuffle rank(count, key);
  std::vector<float> weights(count);
  parallel_for(count, kLayoutChunk, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const double q = (static_cast<double>(rank(i)) + 0.5) / static_cast<double>(count);
      weights[i] = static_cast<float>(low * portable_pow(1 - q * span, -1 / alpha));
    }
  });
  return weights;
}

void build_alias(const double* weights, const uint32_t* ids, int64_t count, AliasEntry* out) {
  const double sum = std::accumulate(weights, weights + count, 0.0);
  std::vector<double> left(count);
  std::vector<int64_t> small;
  std::vector<int64_t> large;
  for (int64_t i = 0; i < count; ++i) {
    left[i] = weights[i] * static_cast<double>(count) / sum;
    (left[i] < 1 ? small : large).push_back(i);
    out[i] = {0xFFFFFFFFu, ids[i], ids[i]};
  }
  while (!small.empty() && !large.empty()) {
    const int64_t s = small.back();
    const int64_t l = large.back();
    small.pop_back();
    out[s].keep = static_cast<uint32_t>(left[s] * 4294967295.0);
    out[s].other = ids[l];
    left[l] -= 1 - left[s];
    if (left[l] < 1) {
      large.pop_back();
      small.push_back(l);
    }
  }
}

PartnerTables::Level PartnerTables::build_level(const std::vector<float>& weights,
                                                const std::vector<int64_t>& group_blocks) const {
  const auto blocks = static_cast<int64_t>(layout_.block_begin.size()) - 1;
  Level level{Buffer<AliasEntry>(layout_.count), std::vector<AliasEntry>(static_cast<size_t>(blocks))};
  std::vector<double> sums(blocks);
  parallel_tasks(blocks, [&](int64_t b) {
    const int64_t first = layout_.block_begin[b];
    const int64_t last = layout_.block_begin[b + 1];
    const std::vector<double> own(weights.begin() + first, weights.begin() + last);
    build_alias(own.data(), &layout_.vertex_at[first], last - first, &level.members[first]);
    sums[b] = std::accumulate(own.begin(), own.end(), 0.0);
  });
  std::vector<uint32_t> ids(blocks);
  std::iota(ids.begin(), ids.end(), 0);
  for (size_t g = 0; g + 1 < group_blocks.size(); ++g) {
    const int64_t first = group_blocks[g];
    build_alias(sums.data() + first, ids.data() + first, group_blocks[g + 1] - first, &level.blocks[first]);
  }
  return level;
}

PartnerTables::PartnerTables(const KindLayout& layout, std::vector<float> weights, const Demand& demand)
    : layout_(layout) {
  const auto blocks = static_cast<int64_t>(layout.block_begin.size()) - 1;
  std::vector<int64_t> single(static_cast<size_t>(blocks) + 1);
  std::iota(single.begin(), single.end(), 0);
  in_block_ = build_level(take_share(weights, layout.block_begin, demand.block), single);
  in_community_ = build_level(take_share(weights, layout.community_begin, demand.community), layout.first_block);
  everywhere_ = build_level(weights, {0, blocks});
}

}  // namespace nacre
