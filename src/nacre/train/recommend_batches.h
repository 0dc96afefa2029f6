// Makes the training data of a recommender: which user took which items, and batches of triples
// (user, item taken, item not taken).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nacre/data/dataset.h"

namespace nacre {

// Holds the items of every user, ascending and without repetition. Users and items are numbered
// from 0, each within its kind.
struct UserItems {
  int64_t num_items = 0;
  std::vector<int64_t> ptr = {0};  // num_users + 1 elements
  std::vector<NodeId> items;

  int64_t num_users() const { return static_cast<int64_t>(ptr.size()) - 1; }
  int64_t size() const { return static_cast<int64_t>(items.size()); }
  std::span<const NodeId> of(int64_t user) const {
    return std::span(items).subspan(static_cast<size_t>(ptr[user]), static_cast<size_t>(ptr[user + 1] - ptr[user]));
  }
  bool has(int64_t user, NodeId item) const;
};

// Says where users and items are among the vertices of a data set.
struct UserItemSides {
  NodeId first_user = 0;
  int64_t num_users = 0;
  NodeId first_item = 0;
  int64_t num_items = 0;

  NodeId end_user() const { return static_cast<NodeId>(first_user + num_users); }
  NodeId end_item() const { return static_cast<NodeId>(first_item + num_items); }
};

// Returns whether a data set is for recommenders: vertices of several kinds, no labels, and pairs
// held out for testing or validation.
bool is_recommendation(const Dataset& dataset);
// Returns the kinds that the held-out pairs lead from and to. Throws UserError, which names
// `where`, if these are not two kinds.
UserItemSides user_item_sides(const Dataset& dataset, const std::string& where);
// Return the items of users by the edges of the graph from users to items, or by held-out pairs.
UserItems items_in_graph(const Graph& graph, const UserItemSides& sides);
UserItems items_of_pairs(const HeldOutEdges& held, const UserItemSides& sides);

// Says which of the items taken an epoch learns from. Their number always equals the number of
// pairs of a user and an item taken.
enum class Positives {
  users,  // a user drawn uniformly, then one of the user's items; every user counts alike
  pairs,  // every pair once, in a drawn order; every pair counts alike
};

struct TripleOptions {
  int64_t batch_size = 2048;
  uint64_t seed = 0;
  Positives positives = Positives::users;
};

// Makes the batches of an epoch. Each item taken comes with an item drawn uniformly from those that
// the user did not take. All draws are keyed by (seed, epoch, number of the draw). The last batch
// is filled up with triples of weight 0, so that all batches have the same shape. Users who took no
// item or every item are left out, because nothing can be compared for them.
class TripleBatches {
 public:
  // Batches have at most as many triples as the graph has vertices, because the destinations of a
  // block are among its sources.
  TripleBatches(const UserItems& taken, const UserItemSides& sides, int64_t num_vertices, const TripleOptions& options);

  int64_t batch_size() const { return batch_size_; }
  int64_t num_batches() const { return (num_pairs() + batch_size_ - 1) / batch_size_; }
  int64_t num_pairs() const { return static_cast<int64_t>(pairs_.size()); }
  // Returns the number of triples that count: all but those that fill up the last batch.
  int64_t counted(int64_t batch) const;
  void begin_epoch(uint64_t epoch);
  // Returns the block of a batch (model/recommender.h), whose edges lead from the vertices to the
  // triples.
  Graph block(int64_t batch) const;

 private:
  struct Pair {
    NodeId user;
    NodeId item;
  };
  Pair positive(int64_t triple) const;
  NodeId other_item(NodeId user, uint64_t index) const;

  const UserItems& taken_;
  UserItemSides sides_;
  int64_t num_vertices_;
  int64_t batch_size_;
  uint64_t seed_;
  Positives positives_;
  uint64_t epoch_key_ = 0;
  std::vector<NodeId> users_;  // users that are drawn
  std::vector<Pair> pairs_;
  std::vector<uint32_t> order_;  // order of the pairs in this epoch
  Array<int64_t> row_ptr_;       // where the edges of each triple begin: 0, 3, 6, …
};

}  // namespace nacre
