// Decides which vertices belong to which community, how well connected each vertex is, and how
// partners are drawn.
#pragma once

#include <cstdint>
#include <vector>

#include "nacre/data/twin_plan.h"
#include "nacre/tensor/array.h"

namespace nacre {

// The vertices of one kind in the order of their communities. Positions count in
// that order. A community is a run of positions, cut into blocks (tighter groups inside it).
struct KindLayout {
  int64_t begin = 0;  // first vertex id
  int64_t count = 0;
  std::vector<int64_t> community_begin;  // first position of each community, communities + 1
  std::vector<int64_t> block_begin;      // first position of each block, blocks + 1
  std::vector<int64_t> first_block;      // first block of each community, communities + 1
  Buffer<NodeId> vertex_at;              // position -> vertex id
  Buffer<NodeId> position_of;            // vertex id - begin -> position
};

// Lays out the vertices of a kind. `block_size` is the wanted number of vertices in a block.
KindLayout lay_out_kind(const TwinPlan& plan, int kind, int64_t block_size);
// Returns the community that holds a position.
int64_t community_at(const KindLayout& layout, int64_t position);

// Returns the relative sizes of the communities (their sum is 1), with the largest at a random
// place.
std::vector<double> community_shares(const TwinPlan& plan);

// Returns expected degrees by position: a power law with the given tail and mean. The same key
// gives the same vertices the same rank.
std::vector<float> draw_weights(int64_t count, const DegreeTail& tail, double mean, uint64_t key);

// An entry of a table for Walker's alias method, which draws in constant time: entry i gives `self`
// with chance keep / 2^32, and `other` otherwise.
struct AliasEntry {
  uint32_t keep;
  uint32_t self;
  uint32_t other;
};
// Builds the entries for weights[0, count); `ids` has the values that are drawn.
void build_alias(const double* weights, const uint32_t* ids, int64_t count, AliasEntry* out);

inline uint32_t draw_alias(const AliasEntry* entries, int64_t count, uint32_t word) {
  const uint64_t product = word * static_cast<uint64_t>(count);
  const AliasEntry& e = entries[product >> 32];
  return static_cast<uint32_t>(product) < e.keep ? e.self : e.other;
}

// How many draws are expected to go to each block and to each community.
struct Demand {
  std::vector<double> block;
  std::vector<double> community;
};

// Draws partners in one kind from a block, from a community or from everywhere, so that vertices
// are drawn as often as their weights say. A block has too few members to give a hub its degree,
// and sometimes a community has, too. What a vertex cannot get from its block, it gets from its
// community, and the rest from everywhere.
class PartnerTables {
 public:
  PartnerTables(const KindLayout& layout, std::vector<float> weights, const Demand& demand);

  NodeId from_block(int64_t block, uint32_t word) const { return member(in_block_, block, word); }
  NodeId from_community(int64_t community, uint32_t word, uint32_t word2) const {
    const int64_t first = layout_.first_block[community];
    const int64_t count = layout_.first_block[community + 1] - first;
    return member(in_community_, draw_alias(&in_community_.blocks[first], count, word), word2);
  }
  NodeId from_all(uint32_t word, uint32_t word2) const {
    const auto count = static_cast<int64_t>(everywhere_.blocks.size());
    return member(everywhere_, draw_alias(everywhere_.blocks.data(), count, word), word2);
  }
  const KindLayout& layout() const { return layout_; }

 private:
  struct Level {
    Buffer<AliasEntry> members;      // table for draws within the block, by position
    std::vector<AliasEntry> blocks;  // table for draws of a block within the group
  };
  NodeId member(const Level& level, int64_t block, uint32_t word) const {
    const int64_t first = layout_.block_begin[block];
    return draw_alias(&level.members[first], layout_.block_begin[block + 1] - first, word);
  }
  // Builds the tables for draws by `weights` from groups of blocks. `group_blocks` has the first
  // block of each group, groups + 1 values.
  Level build_level(const std::vector<float>& weights, const std::vector<int64_t>& group_blocks) const;

  const KindLayout& layout_;
  Level in_block_;
  Level in_community_;
  Level everywhere_;
};

}  // namespace nacre
