#include "nacre/data/twin_attributes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "nacre/base/parallel.h"
#include "nacre/data/twin_edges.h"
#include "nacre/data/twin_math.h"

namespace nacre {
namespace {

constexpr int64_t kAttributeChunk = 1 << 12;

// Draws a community according to the shares.
class ByShare {
 public:
  explicit ByShare(const TwinPlan& plan) {
    double sum = 0;
    for (const double share : community_shares(plan)) {
      sum += share;
      bound_.push_back(static_cast<uint32_t>(std::min(1.0, sum) * 4294967295.0));
    }
    bound_.back() = 0xFFFFFFFFu;
  }
  uint16_t operator()(uint32_t word) const {
    return static_cast<uint16_t>(std::lower_bound(bound_.begin(), bound_.end(), word) - bound_.begin());
  }

 private:
  std::vector<uint32_t> bound_;
};

uint32_t threshold(double chance) { return static_cast<uint32_t>(std::clamp(chance, 0.0, 1.0) * 4294967295.0); }

// Returns the mean feature of every community: random directions of length spec.feature_signal.
std::vector<float> community_means(const TwinPlan& plan) {
  const int64_t width = plan.spec->num_features;
  const auto length = static_cast<float>(plan.spec->feature_signal / std::sqrt(static_cast<double>(width)));
  const uint64_t key = plan.key(TwinStream::means);
  std::vector<float> means(plan.communities * width);
  for (size_t i = 0; i < means.size(); ++i) {
    const PhiloxBlock r = philox(key, 0, i);
    means[i] = length * normal_from(r[0], r[1]);
  }
  return means;
}

void fill_normal(uint64_t key, uint64_t row, const float* mean, float* out, int64_t width) {
  int64_t j = 0;
  for (; j + 2 <= width; j += 2) {
    const PhiloxBlock r = philox(key, row, static_cast<uint64_t>(j));
    out[j] = mean[j] + normal_from(r[0], r[1]);
    out[j + 1] = mean[j + 1] + normal_from(r[2], r[3]);
  }
  if (j < width) {
    const PhiloxBlock r = philox(key, row, static_cast<uint64_t>(j));
    out[j] = mean[j] + normal_from(r[0], r[1]);
  }
}

// Writes 0/1 words: some from the topic of the community (its own eighth of the vocabulary), the
// others common to all. Words of low rank are frequent in both.
void fill_words(const TwinPlan& plan, uint64_t row, uint64_t community, float* out) {
  const TwinSpec& spec = *plan.spec;
  const uint64_t key = plan.key(TwinStream::words);
  const uint64_t topic = mix_key(key, community);
  const uint32_t from_topic = threshold(spec.feature_signal);
  const int64_t topic_size = spec.num_features / 8;
  std::memset(out, 0, static_cast<size_t>(spec.num_features) * sizeof(float));
  const int64_t words = spec.words / 2 + pick(philox(key, row, 0)[0], spec.words) + 1;
  for (int64_t w = 1; w <= words; ++w) {
    const PhiloxBlock r = philox(key, row, static_cast<uint64_t>(w));
    const auto low = static_cast<uint32_t>(uint64_t{r[1]} * r[2] >> 32);
    const uint64_t of_topic = mix_key(topic, pick(low, topic_size)) % static_cast<uint64_t>(spec.num_features);
    out[r[0] < from_topic ? of_topic : pick(low, spec.num_features)] = 1;
  }
}

}  // namespace

Communities communities_of(const TwinPlan& plan, const std::vector<KindLayout>& layouts) {
  Buffer<uint16_t> communities(plan.num_nodes);
  for (const KindLayout& layout : layouts) {
    parallel_tasks(plan.communities, [&](int64_t c) {
      for (int64_t s = layout.community_begin[c]; s < layout.community_begin[c + 1]; ++s) {
        communities[layout.vertex_at[s]] = static_cast<uint16_t>(c);
      }
    });
  }
  return std::move(communities).freeze();
}

Communities road_communities(const TwinPlan& plan) {
  const int64_t width = road_width(plan);
  // Every community gets several regions of at most 64 x 64 crossings.
  int64_t side = 64;
  while (side > 2 && side * side * 4 * plan.communities > plan.num_nodes) --side;
  const ByShare by_share(plan);
  const uint64_t key = plan.key(TwinStream::regions);
  Buffer<uint16_t> communities(plan.num_nodes);
  parallel_for(plan.num_nodes, kAttributeChunk, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) {
      const auto x = static_cast<uint64_t>(v % width / side);
      const auto y = static_cast<uint64_t>(v / width / side);
      communities[v] = by_share(philox(key, y, x)[0]);
    }
  });
  return std::move(communities).freeze();
}

Array<int32_t> draw_labels(const TwinPlan& plan, const Communities& communities) {
  const TwinSpec& spec = *plan.spec;
  const ByShare by_share(plan);
  const uint32_t noise = threshold(spec.label_noise);
  const uint32_t hidden = threshold(1 - spec.labelled_share);
  const uint64_t key = plan.key(TwinStream::labels);
  Buffer<int32_t> labels(plan.num_nodes);
  for (int kind = 0; kind + 1 < static_cast<int>(plan.kind_begin.size()); ++kind) {
    const int64_t first = plan.kind_begin[kind];
    const bool labelled = plan.labelled_kind(kind);
    parallel_for(plan.kind_size(kind), kAttributeChunk, [&](int64_t b, int64_t e) {
      for (int64_t v = first + b; v < first + e; ++v) {
        const PhiloxBlock r = philox(key, 0, static_cast<uint64_t>(v));
        labels[v] = r[0] < noise ? by_share(r[1]) : communities[v];
        if (!labelled || (spec.labelled_share < 1 && r[2] < hidden)) labels[v] = -1;
      }
    });
  }
  return std::move(labels).freeze();
}

Tensor draw_targets(const TwinPlan& plan, const Communities& communities) {
  const int64_t tasks = plan.spec->num_classes;
  const double noise = plan.spec->label_noise;
  // For every task, some communities are drawn (at least one) in which most vertices have the label
  // of the task. In the other communities, few vertices have it.
  std::vector<uint16_t> chance(plan.communities * tasks);
  const uint64_t profile = plan.key(TwinStream::profiles);
  for (int64_t t = 0; t < tasks; ++t) {
    const double breadth = 0.05 + 0.3 * uniform01(philox(profile, 1, static_cast<uint64_t>(t))[0]);
    for (int64_t c = 0; c < plan.communities; ++c) {
      const PhiloxBlock r = philox(profile, 2, static_cast<uint64_t>(t * plan.communities + c));
      const bool holds = uniform01(r[0]) < breadth || c == t % plan.communities;
      chance[c * tasks + t] = static_cast<uint16_t>(65535 * (holds ? 1 - noise : noise / 4));
    }
  }
  Tensor targets(DType::u8, {plan.num_nodes, tasks});
  auto* out = targets.data<uint8_t>();
  const uint64_t key = plan.key(TwinStream::targets);
  parallel_for(plan.num_nodes, kAttributeChunk, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) {
      const uint16_t* limit = &chance[communities[v] * tasks];
      for (int64_t t = 0; t < tasks; t += 8) {
        const PhiloxBlock r = philox(key, static_cast<uint64_t>(v), static_cast<uint64_t>(t));
        for (int64_t k = t; k < std::min(tasks, t + 8); ++k) {
          const auto half = static_cast<uint16_t>(r[(k - t) / 2] >> (k % 2 * 16));
          out[v * tasks + k] = half < limit[k] ? 1 : 0;
        }
      }
    }
  });
  return targets;
}

Tensor draw_features(const TwinPlan& plan, const Communities& communities) {
  const int64_t width = plan.spec->num_features;
  Tensor features(DType::f32, {plan.num_nodes, width});
  auto* out = features.data<float>();
  const bool words = plan.spec->words > 0;
  const std::vector<float> means = words ? std::vector<float>{} : community_means(plan);
  const uint64_t key = plan.key(TwinStream::noise);
  parallel_for(plan.num_nodes, 256, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) {
      if (words) {
        fill_words(plan, static_cast<uint64_t>(v), communities[v], out + v * width);
      } else {
        fill_normal(key, static_cast<uint64_t>(v), &means[communities[v] * width], out + v * width, width);
      }
    }
  });
  return features;
}

Splits draw_splits(const TwinPlan& plan, const Array<int32_t>& labels) {
  const TwinSpec& spec = *plan.spec;
  int64_t left = 0;
  for (int64_t v = 0; v < plan.num_nodes; ++v) left += labels.empty() || labels[v] >= 0 ? 1 : 0;
  const auto share = [all = static_cast<double>(left)](double s) {
    return std::max<int64_t>(1, std::llround(s * all));
  };
  int64_t wanted[3] = {share(spec.train_share), share(spec.val_share), 0};
  wanted[2] = std::min(share(spec.test_share), left - wanted[0] - wanted[1]);
  std::vector<NodeId> chosen[3];
  const uint64_t key = plan.key(TwinStream::splits);
  // In one pass, each labelled vertex goes to a split with the chance (vertices still wanted there)
  // / (vertices left).
  for (int64_t v = 0; v < plan.num_nodes; ++v) {
    if (!labels.empty() && labels[v] < 0) continue;
    int64_t at = pick(philox(key, 0, static_cast<uint64_t>(v))[0], left--);
    for (int s = 0; s < 3; ++s) {
      if (at < wanted[s]) {
        chosen[s].push_back(static_cast<NodeId>(v));
        --wanted[s];
        break;
      }
      at -= wanted[s];
    }
  }
  return {std::move(chosen[0]), std::move(chosen[1]), std::move(chosen[2])};
}

}  // namespace nacre
