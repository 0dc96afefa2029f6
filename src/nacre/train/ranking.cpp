#include "nacre/train/ranking.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/gemm.h"

namespace nacre {
namespace {

// The scores of kTileUsers users for kBlockItems items fit a core's own cache.
constexpr int64_t kTileUsers = 32;
constexpr int64_t kBlockItems = 1024;

struct Scored {
  float score;
  NodeId item;
};

bool better(const Scored& a, const Scored& b) { return a.score > b.score || (a.score == b.score && a.item < b.item); }

// Keeps the best k items so far in a heap, with the worst of them on top.
class Best {
 public:
  explicit Best(int64_t k) : k_(static_cast<size_t>(k)) {}

  // Takes the scores of the items from `first` on. Items come in the order of their ids, so an
  // equal score never replaces an earlier item. NaN is never taken.
  void offer(const float* scores, int64_t count, int64_t first) {
    int64_t i = 0;
    for (; i < count && heap_.size() < k_; ++i) {
      if (!std::isnan(scores[i])) push({scores[i], static_cast<NodeId>(first + i)});
    }
    while (i < count) {
      // Most scores are no better than the worst one that is kept, so runs of kRun such scores are
      // skipped at once.
      const int64_t run = std::min(kRun, count - i);
      const float least = heap_.front().score;
      int above = 0;
      for (int64_t j = 0; j < run; ++j) above |= scores[i + j] > least ? 1 : 0;
      for (int64_t j = 0; above != 0 && j < run; ++j) {
        if (!(scores[i + j] > heap_.front().score)) continue;
        std::pop_heap(heap_.begin(), heap_.end(), better);
        heap_.pop_back();
        push({scores[i + j], static_cast<NodeId>(first + i + j)});
      }
      i += run;
    }
  }

  void write(NodeId* out) {
    std::sort(heap_.begin(), heap_.end(), better);
    for (size_t i = 0; i < heap_.size(); ++i) out[i] = heap_[i].item;
  }

 private:
  static constexpr int64_t kRun = 16;

  void push(Scored item) {
    heap_.push_back(item);
    std::push_heap(heap_.begin(), heap_.end(), better);
  }

  size_t k_;
  std::vector<Scored> heap_;
};

// Holds the rows of the items, packed block by block for the products, once for all users.
struct PackedItems {
  int64_t num_items;
  int64_t width;
  int64_t stride = cpu::gemm_packed_size(kBlockItems, width);  // floats of a block
  std::vector<float> values;

  PackedItems(const float* rows, int64_t items, int64_t columns) : num_items(items), width(columns) {
    const int64_t blocks = (items + kBlockItems - 1) / kBlockItems;
    values.resize(blocks * stride);
    parallel_tasks(blocks, [&](int64_t b) {
      cpu::gemm_pack_nt(count(b), width, rows + b * kBlockItems * width, width, values.data() + b * stride);
    });
  }
  int64_t count(int64_t block) const { return std::min(kBlockItems, num_items - block * kBlockItems); }
  int64_t blocks() const { return (num_items + kBlockItems - 1) / kBlockItems; }
  const float* block(int64_t b) const { return values.data() + b * stride; }
};

// Finds the best items of a few users whose rows lie one after another.
class Tile {
 public:
  Tile(const PackedItems& items, std::span<const NodeId> users, int64_t kept)
      : items_(items), users_(users), best_(users.size(), Best(kept)) {}

  void rank(const float* rows, const UserItems& taken) {
    std::vector<float> scores(users_.size() * static_cast<size_t>(kBlockItems));
    std::vector<size_t> passed(users_.size(), 0);
    for (int64_t b = 0; b < items_.blocks(); ++b) {
      const int64_t count = items_.count(b);
      const int64_t first = b * kBlockItems;
      cpu::gemm_tile_packed(static_cast<int64_t>(users_.size()), count, items_.width, rows, items_.width,
                            items_.block(b), scores.data(), count);
      for (size_t i = 0; i < users_.size(); ++i) {
        float* row = scores.data() + static_cast<int64_t>(i) * count;
        const auto own = taken.of(users_[i]);
        size_t& next = passed[i];
        for (; next < own.size() && own[next] < first + count; ++next) row[own[next] - first] = kTaken;
        best_[i].offer(row, count, first);
      }
    }
  }
  void write(int64_t k, NodeId* out) {
    for (size_t i = 0; i < best_.size(); ++i) best_[i].write(out + static_cast<int64_t>(i) * k);
  }

 private:
  static constexpr float kTaken = std::numeric_limits<float>::quiet_NaN();

  const PackedItems& items_;
  std::span<const NodeId> users_;
  std::vector<Best> best_;
};

}  // namespace

std::vector<NodeId> best_items(const Embeddings& e, const UserItems& taken, std::span<const NodeId> users, int64_t k) {
  NACRE_CHECK(k > 0, "no items are asked for");
  std::vector<NodeId> result(users.size() * static_cast<size_t>(k), kNoItem);
  const int64_t kept = std::min(k, taken.num_items);
  if (kept == 0) return result;
  const PackedItems items(e.items, taken.num_items, e.width);
  const auto n = static_cast<int64_t>(users.size());
  parallel_tasks((n + kTileUsers - 1) / kTileUsers, [&](int64_t t) {
    const int64_t begin = t * kTileUsers;
    const auto mine = users.subspan(static_cast<size_t>(begin), static_cast<size_t>(std::min(kTileUsers, n - begin)));
    std::vector<float> rows;
    for (const NodeId u : mine) {
      const float* row = e.users + static_cast<int64_t>(u) * e.width;
      rows.insert(rows.end(), row, row + e.width);
    }
    Tile tile(items, mine, kept);
    tile.rank(rows.data(), taken);
    tile.write(k, result.data() + begin * k);
  });
  return result;
}

int64_t best_items_bytes(int64_t users, int64_t items, int64_t width, int64_t k) {
  constexpr int64_t kFloat = sizeof(float);
  const int64_t blocks = (items + kBlockItems - 1) / kBlockItems;
  const int64_t packed = blocks * cpu::gemm_packed_size(kBlockItems, width) * kFloat;
  // A list of the best items grows by doubling, so it may have room for twice as many items.
  const int64_t heaps = std::min(k, items) * static_cast<int64_t>(2 * sizeof(Scored));
  const int64_t tile = kTileUsers * (kBlockItems * kFloat + 2 * width * kFloat + heaps);
  return packed + users * (k + 1) * static_cast<int64_t>(sizeof(NodeId)) + num_threads() * tile;
}

RankingScores score_ranking(const Embeddings& embeddings, const UserItems& taken, const UserItems& held, int64_t k) {
  std::vector<NodeId> users;
  for (int64_t u = 0; u < held.num_users(); ++u) {
    if (!held.of(u).empty()) users.push_back(static_cast<NodeId>(u));
  }
  RankingScores result;
  result.users = static_cast<int64_t>(users.size());
  if (users.empty()) return result;
  const std::vector<NodeId> ranked = best_items(embeddings, taken, users, k);
  std::vector<double> gain(k);  // gain of a hit at each rank
  std::vector<double> ideal(static_cast<size_t>(k) + 1, 0);
  for (size_t r = 0; r < gain.size(); ++r) {
    gain[r] = 1 / std::log2(static_cast<double>(r) + 2);
    ideal[r + 1] = ideal[r] + gain[r];
  }
  double recall = 0;
  double ndcg = 0;
  for (size_t i = 0; i < users.size(); ++i) {
    const auto wanted = static_cast<int64_t>(held.of(users[i]).size());
    int64_t hits = 0;
    double gained = 0;
    for (int64_t r = 0; r < k; ++r) {
      const NodeId item = ranked[i * static_cast<size_t>(k) + static_cast<size_t>(r)];
      if (item == kNoItem || !held.has(users[i], item)) continue;
      ++hits;
      gained += gain[r];
    }
    recall += static_cast<double>(hits) / static_cast<double>(wanted);
    ndcg += gained / ideal[std::min(k, wanted)];
  }
  result.recall = recall / static_cast<double>(users.size());
  result.ndcg = ndcg / static_cast<double>(users.size());
  return result;
}

RankingMetric parse_ranking_metric(const std::string& metric) {
  if (metric == "auto") return {};
  RankingMetric result;
  const size_t at = metric.find('@');
  const std::string name = metric.substr(0, at);
  const char* end = metric.data() + metric.size();
  const char* number = at == std::string::npos ? end : metric.data() + at + 1;
  const auto parsed = std::from_chars(number, end, result.k);
  if ((name != "recall" && name != "ndcg") || parsed.ec != std::errc() || parsed.ptr != end || result.k < 1 ||
      result.k > 100000) {
    throw UserError("--metric", "'" + metric + "' does not score recommendations",
                    "choose auto, or recall or ndcg of any number of items, such as recall@20 and ndcg@20");
  }
  result.ndcg = name == "ndcg";
  return result;
}

}  // namespace nacre
