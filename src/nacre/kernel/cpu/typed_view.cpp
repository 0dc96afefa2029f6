// Prepares the typed kernels: cuts the rows into blocks and sorts the entries of each block by
// type.
#include <algorithm>
#include <utility>

#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/typed.h"

namespace nacre::cpu {
namespace {

// Wanted number of pairs of one type in a block, which are the rows of one matrix product. It is a
// little less than a tile, because types vary in size.
constexpr int64_t kPairsPerGroup = 160;
constexpr int64_t kFewPairsPerGroup = 32;
// Small graphs get smaller blocks, down to kFewPairsPerGroup, so that there are this many blocks.
constexpr int64_t kBlocksWanted = 32;
// Limits on the work of one task: its rows of output must stay in cache, and a hub gets a block of
// its own.
constexpr int64_t kMaxBlockRows = 2048;
constexpr int64_t kMaxBlockEntries = 1 << 15;
// Wanted number of partial weight gradients over all types. Every type that occurs has at least
// one.
constexpr int64_t kRunsWanted = 32;
constexpr int64_t kMinRunPairs = 512;

class EntryTypes {
 public:
  explicit EntryTypes(const RowView& view)
      : type_(view.graph.typed() ? view.graph.edge_type().data() : nullptr), edge_id_(view.edge_id) {}
  EdgeId edge(int64_t entry) const { return edge_id_ == nullptr ? static_cast<EdgeId>(entry) : edge_id_[entry]; }
  uint16_t operator()(int64_t entry) const { return type_ == nullptr ? uint16_t{0} : type_[edge(entry)]; }

 private:
  const uint16_t* type_;
  const EdgeId* edge_id_;
};

Buffer<int32_t> count_row_pairs(const RowView& view, int num_types) {
  const EntryTypes type_of(view);
  Buffer<int32_t> pairs(view.rows);
  parallel_for(view.rows, 1 << 14, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> seen_in_row(num_types, -1);
    for (int64_t row = begin; row < end; ++row) {
      pairs[row] = 0;
      for (int64_t e = view.row_ptr[row]; e < view.row_ptr[row + 1]; ++e) {
        int64_t& seen = seen_in_row[type_of(e)];
        if (seen != row) ++pairs[row];
        seen = row;
      }
    }
  });
  return pairs;
}

int64_t count_types(const RowView& view, int num_types) {
  if (!view.graph.typed()) return 1;
  std::vector<uint8_t> present(num_types, 0);
  for (const uint16_t type : view.graph.edge_type()) present[type] = 1;
  return std::max<int64_t>(1, std::count(present.begin(), present.end(), uint8_t{1}));
}

// Returns the blocks with their rows. pair_begin receives the first pair of each block and, at its
// end, the number of pairs.
std::vector<TypedView::Block> cut_blocks(const RowView& view, const Buffer<int32_t>& row_pairs, int64_t types,
                                         std::vector<int64_t>& pair_begin) {
  int64_t total = 0;
  for (int64_t row = 0; row < view.rows; ++row) total += row_pairs[row];
  const int64_t wanted = std::clamp(total / kBlocksWanted, kFewPairsPerGroup * types, kPairsPerGroup * types);
  std::vector<TypedView::Block> blocks;
  int64_t done = 0;
  for (int64_t row = 0; row < view.rows;) {
    TypedView::Block block = {row, row, 0, 0};
    int64_t pairs = 0;
    do {
      pairs += row_pairs[block.row_end++];
    } while (block.row_end < view.rows && block.row_end - row < kMaxBlockRows && pairs < wanted &&
             view.row_ptr[block.row_end + 1] - view.row_ptr[row] <= kMaxBlockEntries);
    blocks.push_back(block);
    pair_begin.push_back(done);
    done += pairs;
    row = block.row_end;
  }
  pair_begin.push_back(done);
  return blocks;
}

// The arrays of a TypedView while they are being written.
struct Building {
  const RowView& view;
  int num_types;
  Buffer<NodeId> pair_row;
  Buffer<int64_t> pair_ptr;
  Buffer<NodeId> col;
  Buffer<EdgeId> edge_id;
};

// Sorts the entries of the block (which lie in row order) by type, with a stable counting sort.
// Then each change of row starts a new pair.
std::vector<TypedView::Group> fill_block(Building& to, const TypedView::Block& block, int64_t pair) {
  const RowView& view = to.view;
  const EntryTypes type_of(view);
  const int64_t first = view.row_ptr[block.row_begin];
  const int64_t last = view.row_ptr[block.row_end];
  std::vector<int64_t> next(static_cast<size_t>(to.num_types) + 1, 0);
  for (int64_t e = first; e < last; ++e) ++next[type_of(e) + size_t{1}];
  for (size_t t = 1; t < next.size(); ++t) next[t] += next[t - 1];
  std::vector<NodeId> row_of(last - first);
  for (int64_t row = block.row_begin; row < block.row_end; ++row) {
    for (int64_t e = view.row_ptr[row]; e < view.row_ptr[row + 1]; ++e) {
      const int64_t at = next[type_of(e)]++;
      row_of[at] = static_cast<NodeId>(row);
      to.col[first + at] = view.col[e];
      to.edge_id[first + at] = type_of.edge(e);
    }
  }
  // next[t] is now the end of the entries of type t.
  std::vector<TypedView::Group> groups;
  int64_t at = 0;
  for (int t = 0; t < to.num_types; ++t) {
    const int64_t end = next[t];
    if (at == end) continue;
    groups.push_back({t, pair, pair});
    for (bool fresh = true; at < end; ++at) {
      const NodeId row = row_of[at];
      fresh = fresh || row != to.pair_row[pair - 1];
      if (fresh) {
        to.pair_row[pair] = row;
        to.pair_ptr[pair++] = first + at;
      }
      fresh = false;
    }
    groups.back().pair_end = pair;
  }
  return groups;
}

void cut_runs(TypedView& typed) {
  std::vector<std::vector<int64_t>> groups_of(typed.num_types);
  for (size_t g = 0; g < typed.groups.size(); ++g) {
    groups_of[typed.groups[g].type].push_back(static_cast<int64_t>(g));
  }
  const int64_t wanted = std::max(kMinRunPairs, (typed.num_pairs + kRunsWanted - 1) / kRunsWanted);
  for (int t = 0; t < typed.num_types; ++t) {
    int64_t pairs = 0;
    bool first = true;
    for (const int64_t g : groups_of[t]) {
      const auto& group = typed.groups[g];
      const auto at = static_cast<int64_t>(typed.type_groups.size());
      if (first || pairs >= wanted) {
        typed.runs.push_back({t, at, at, first ? -1 : typed.num_partials++});
        first = false;
        pairs = 0;
      }
      typed.type_groups.push_back(g);
      typed.runs.back().end = at + 1;
      pairs += group.pair_end - group.pair_begin;
    }
  }
}

}  // namespace

std::shared_ptr<const TypedView> make_typed_view(std::shared_ptr<const RowView> view) {
  auto typed = std::make_shared<TypedView>();
  typed->num_types = view->graph.num_edge_types();
  std::vector<int64_t> pair_begin;
  typed->blocks =
      cut_blocks(*view, count_row_pairs(*view, typed->num_types), count_types(*view, typed->num_types), pair_begin);
  typed->num_pairs = pair_begin.back();
  const int64_t edges = view->graph.num_edges();
  Building building = {*view,
                       typed->num_types,
                       Buffer<NodeId>(typed->num_pairs),
                       Buffer<int64_t>(typed->num_pairs + 1),
                       Buffer<NodeId>(edges),
                       Buffer<EdgeId>(edges)};
  building.pair_ptr[typed->num_pairs] = edges;
  std::vector<std::vector<TypedView::Group>> groups(typed->blocks.size());
  parallel_tasks(static_cast<int64_t>(groups.size()), [&](int64_t b) {
    const auto i = static_cast<size_t>(b);
    groups[i] = fill_block(building, typed->blocks[i], pair_begin[i]);
  });
  for (size_t b = 0; b < groups.size(); ++b) {
    typed->blocks[b].group_begin = static_cast<int64_t>(typed->groups.size());
    typed->groups.insert(typed->groups.end(), groups[b].begin(), groups[b].end());
    typed->blocks[b].group_end = static_cast<int64_t>(typed->groups.size());
  }
  typed->pair_row = std::move(building.pair_row).freeze();
  typed->pair_ptr = std::move(building.pair_ptr).freeze();
  typed->col = std::move(building.col).freeze();
  typed->edge_id = std::move(building.edge_id).freeze();
  typed->view = std::move(view);
  cut_runs(*typed);
  return typed;
}

int64_t TypedView::bytes() const {
  return static_cast<int64_t>(pair_row.size() * sizeof(NodeId) + pair_ptr.size() * sizeof(int64_t) +
                              col.size() * sizeof(NodeId) + edge_id.size() * sizeof(EdgeId) +
                              blocks.size() * sizeof(Block) + groups.size() * sizeof(Group) +
                              type_groups.size() * sizeof(int64_t) + runs.size() * sizeof(Run));
}

}  // namespace nacre::cpu
