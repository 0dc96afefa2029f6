#include "nacre/train/recommend_batches.h"

#include <algorithm>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"

namespace nacre {
namespace {

constexpr int kEdges = 3;  // number of edges of a triple

// If this many draws for a user have found only items that the user took, the remaining items are
// counted instead.
constexpr uint64_t kDraws = 64;

// Returns a number below n, uniform to within n / 2^32.
uint64_t below(uint32_t bits, uint64_t n) { return (uint64_t{bits} * n) >> 32; }

enum Stream : uint64_t { shuffle_stream = 1, item_stream = 2, user_stream = 3 };

size_t kind_of(const Dataset& d, NodeId v) {
  const auto next = std::upper_bound(d.node_offsets.begin(), d.node_offsets.end(), static_cast<int64_t>(v));
  return static_cast<size_t>(next - d.node_offsets.begin()) - 1;
}

// Returns the items of every user by pairs of a user and an item in any order. Repeated pairs count
// once.
UserItems grouped(std::vector<uint64_t> pairs, const UserItemSides& sides) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  UserItems result;
  result.num_items = sides.num_items;
  result.ptr.assign(static_cast<size_t>(sides.num_users) + 1, 0);
  for (const uint64_t pair : pairs) {
    ++result.ptr[(pair >> 32) + 1];
    result.items.push_back(static_cast<NodeId>(pair));
  }
  std::partial_sum(result.ptr.begin(), result.ptr.end(), result.ptr.begin());
  return result;
}

bool between(NodeId v, NodeId begin, NodeId end) { return v >= begin && v < end; }

}  // namespace

bool UserItems::has(int64_t user, NodeId item) const {
  const auto items_of = of(user);
  return std::binary_search(items_of.begin(), items_of.end(), item);
}

bool is_recommendation(const Dataset& d) {
  return d.heterogeneous() && d.num_classes == 0 && d.test_edges.size() + d.val_edges.size() > 0;
}

UserItemSides user_item_sides(const Dataset& d, const std::string& where) {
  const HeldOutEdges& some = d.test_edges.size() > 0 ? d.test_edges : d.val_edges;
  NACRE_CHECK(some.size() > 0 && d.heterogeneous(), "no pairs are held out");
  const size_t users = kind_of(d, some.src[0]);
  const size_t items = kind_of(d, some.dst[0]);
  const auto begin = [&](size_t kind) { return static_cast<NodeId>(d.node_offsets[kind]); };
  const auto count = [&](size_t kind) { return d.node_offsets[kind + 1] - d.node_offsets[kind]; };
  const UserItemSides sides{begin(users), count(users), begin(items), count(items)};
  for (const HeldOutEdges* pairs : {&d.test_edges, &d.val_edges}) {
    for (int64_t i = 0; i < pairs->size(); ++i) {
      if (users != items && between(pairs->src[i], sides.first_user, sides.end_user()) &&
          between(pairs->dst[i], sides.first_item, sides.end_item()))
        continue;
      throw UserError(where, "has test pairs that do not all join one kind of users with one kind of items",
                      "give pairs of one relation");
    }
  }
  return sides;
}

UserItems items_in_graph(const Graph& graph, const UserItemSides& sides) {
  std::vector<uint64_t> pairs;
  for (int64_t item = 0; item < sides.num_items; ++item) {
    const int64_t v = sides.first_item + item;
    for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) {
      const NodeId u = graph.col_idx()[e];
      if (between(u, sides.first_user, sides.end_user()))
        pairs.push_back(uint64_t{u - sides.first_user} << 32 | static_cast<uint64_t>(item));
    }
  }
  return grouped(std::move(pairs), sides);
}

UserItems items_of_pairs(const HeldOutEdges& held, const UserItemSides& sides) {
  std::vector<uint64_t> pairs;
  for (int64_t i = 0; i < held.size(); ++i)
    pairs.push_back(uint64_t{held.src[i] - sides.first_user} << 32 | (held.dst[i] - sides.first_item));
  return grouped(std::move(pairs), sides);
}

TripleBatches::TripleBatches(const UserItems& taken, const UserItemSides& sides, int64_t num_vertices,
                             const TripleOptions& options)
    : taken_(taken), sides_(sides), num_vertices_(num_vertices), seed_(options.seed), positives_(options.positives) {
  for (int64_t user = 0; user < taken.num_users(); ++user) {
    const auto items = taken.of(user);
    if (items.empty() || static_cast<int64_t>(items.size()) == taken.num_items) continue;
    users_.push_back(static_cast<NodeId>(user));
    for (const NodeId item : items) pairs_.push_back({static_cast<NodeId>(user), item});
  }
  batch_size_ = std::max<int64_t>(1, std::min({options.batch_size, num_pairs(), num_vertices}));
  if (positives_ == Positives::pairs) order_.resize(pairs_.size());
  std::vector<int64_t> ptr(static_cast<size_t>(batch_size_) + 1);
  for (size_t t = 0; t < ptr.size(); ++t) ptr[t] = kEdges * static_cast<int64_t>(t);
  row_ptr_ = std::move(ptr);
}

int64_t TripleBatches::counted(int64_t batch) const { return std::min(batch_size_, num_pairs() - batch * batch_size_); }

void TripleBatches::begin_epoch(uint64_t epoch) {
  epoch_key_ = mix_key(seed_, epoch);
  std::iota(order_.begin(), order_.end(), 0U);
  const uint64_t key = mix_key(epoch_key_, shuffle_stream);
  for (uint64_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[below(philox(key, 0, i)[0], i)]);
}

TripleBatches::Pair TripleBatches::positive(int64_t triple) const {
  if (positives_ == Positives::pairs) return pairs_[order_[triple]];
  const PhiloxBlock bits = philox(mix_key(epoch_key_, user_stream), 0, static_cast<uint64_t>(triple));
  const NodeId user = users_[below(bits[0], users_.size())];
  const auto items = taken_.of(user);
  return {user, items[below(bits[1], items.size())]};
}

NodeId TripleBatches::other_item(NodeId user, uint64_t index) const {
  const uint64_t key = mix_key(epoch_key_, item_stream);
  const auto all = static_cast<uint64_t>(taken_.num_items);
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    const auto item = static_cast<NodeId>(below(philox(key, draw / 4, index)[draw % 4], all));
    if (!taken_.has(user, item)) return item;
  }
  // Finds the nth item that the user did not take; `skipped` counts the user's own items before it.
  const auto own = taken_.of(user);
  const uint64_t nth = below(philox(key, kDraws, index)[0], all - own.size());
  size_t skipped = 0;
  while (skipped < own.size() && own[skipped] <= nth + skipped) ++skipped;
  return static_cast<NodeId>(nth + skipped);
}

Graph TripleBatches::block(int64_t batch) const {
  Buffer<NodeId> sources(kEdges * batch_size_);
  const int64_t real = counted(batch);
  parallel_for(batch_size_, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      NodeId* triple = sources.data() + kEdges * t;
      if (t >= real) {
        std::fill_n(triple, kEdges, sides_.first_user);
        continue;
      }
      const int64_t draw = batch * batch_size_ + t;
      const Pair pair = positive(draw);
      triple[0] = sides_.first_user + pair.user;
      triple[1] = sides_.first_item + pair.item;
      triple[2] = sides_.first_item + other_item(pair.user, static_cast<uint64_t>(draw));
    }
  });
  GraphArrays arrays;
  arrays.num_src = num_vertices_;
  arrays.num_dst = batch_size_;
  arrays.row_ptr = row_ptr_;
  arrays.col_idx = std::move(sources).freeze();
  return {std::move(arrays), "triples"};
}

}  // namespace nacre
