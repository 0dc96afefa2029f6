// Turns drawn rows into an in-CSR graph: a two-level counting sort transposes them, and the lists
// of each row are merged.
#include <algorithm>
#include <bit>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/data/twin_edges.h"

namespace nacre {
namespace {

constexpr int64_t kPairChunk = 1 << 20;
constexpr int64_t kRowChunk = 1 << 10;
constexpr int kMaxBuckets = 2048;

struct Pair {
  NodeId row;
  NodeId column;
};

// Calls body(row, column) for the pairs [b, e) in order.
template <class Body>
void for_pairs(const Rows& rows, int64_t b, int64_t e, const Body& body) {
  int64_t row = std::upper_bound(rows.row_ptr.begin(), rows.row_ptr.end(), b) - rows.row_ptr.begin() - 1;
  while (b < e) {
    const int64_t end = std::min(e, rows.row_ptr[row + 1]);
    for (; b < end; ++b) body(static_cast<NodeId>(rows.begin + row), rows.columns[b]);
    ++row;
  }
}

// Pairs grouped by the high bits of their column, in the order of their rows within a group.
struct Buckets {
  int shift = 0;
  std::vector<int64_t> begin;  // where the pairs of each bucket begin, and where the last ones end
  Buffer<Pair> pairs;
};

Buckets scatter(const Rows& rows, int64_t first, int64_t count) {
  Buckets result;
  while ((count >> result.shift) >= kMaxBuckets) ++result.shift;
  const int64_t buckets = (count >> result.shift) + 1;
  const int64_t total = rows.columns.size();
  const int64_t chunks = (total + kPairChunk - 1) / kPairChunk;
  std::vector<int64_t> next(chunks * buckets, 0);
  const auto bucket_of = [&](NodeId column) { return (column - first) >> result.shift; };
  parallel_for(total, kPairChunk, [&](int64_t b, int64_t e) {
    int64_t* own = &next[b / kPairChunk * buckets];
    for (int64_t i = b; i < e; ++i) ++own[bucket_of(rows.columns[i])];
  });
  int64_t sum = 0;
  for (int64_t bucket = 0; bucket < buckets; ++bucket) {
    result.begin.push_back(sum);
    for (int64_t c = 0; c < chunks; ++c) sum += std::exchange(next[c * buckets + bucket], sum);
  }
  result.begin.push_back(sum);
  result.pairs = Buffer<Pair>(total);
  parallel_for(total, kPairChunk, [&](int64_t b, int64_t e) {
    int64_t* own = &next[b / kPairChunk * buckets];
    for_pairs(rows, b, e, [&](NodeId row, NodeId column) { result.pairs[own[bucket_of(column)]++] = {row, column}; });
  });
  return result;
}

// For some vertices, lists of the sources of their in-edges of one type.
struct Part {
  Rows rows;
  uint16_t type = 0;
};

struct Cursor {
  const NodeId* at;
  const NodeId* end;
  uint16_t type;
};

class Assembler {
 public:
  Assembler(const TwinPlan& plan, std::vector<Part> parts) : plan_(plan), parts_(std::move(parts)) {}

  GraphArrays build() {
    GraphArrays arrays;
    arrays.num_src = arrays.num_dst = plan_.num_nodes;
    arrays.num_edge_types = plan_.spec->num_edge_types;
    const bool typed = arrays.num_edge_types > 1;
    if (!typed && parts_.size() == 1 && parts_[0].rows.count() == plan_.num_nodes) {
      arrays.row_ptr = parts_[0].rows.row_ptr;
      arrays.col_idx = parts_[0].rows.columns;
      return arrays;
    }
    Buffer<int64_t> row_ptr = row_offsets();
    Buffer<NodeId> columns(row_ptr[plan_.num_nodes]);
    Buffer<uint16_t> types(typed ? columns.size() : 0);
    parallel_for(plan_.num_nodes, kRowChunk, [&](int64_t b, int64_t e) {
      for (int64_t v = b; v < e; ++v) {
        merge_row(v, columns.data() + row_ptr[v], typed ? types.data() + row_ptr[v] : nullptr);
      }
    });
    arrays.row_ptr = std::move(row_ptr).freeze();
    arrays.col_idx = std::move(columns).freeze();
    if (typed) arrays.edge_type = std::move(types).freeze();
    return arrays;
  }

 private:
  // Sets `out` to the lists that row v is merged from, at most four, and returns their number.
  int cursors(int64_t v, Cursor* out) const {
    int n = 0;
    for (const Part& part : parts_) {
      const int64_t row = v - part.rows.begin;
      if (row < 0 || row >= part.rows.count()) continue;
      const NodeId* data = part.rows.columns.data();
      out[n++] = {data + part.rows.row_ptr[row], data + part.rows.row_ptr[row + 1], part.type};
    }
    return n;
  }

  Buffer<int64_t> row_offsets() const {
    Buffer<int64_t> row_ptr(plan_.num_nodes + 1);
    row_ptr[0] = 0;
    for (int64_t v = 0; v < plan_.num_nodes; ++v) {
      Cursor lists[8];
      int64_t length = v == 0 ? plan_.self_loops : 0;
      for (int k = cursors(v, lists); k-- > 0;) length += lists[k].end - lists[k].at;
      row_ptr[v + 1] = row_ptr[v] + length;
    }
    return row_ptr;
  }

  void merge_row(int64_t v, NodeId* out, uint16_t* types) const {
    Cursor lists[8];
    int n = cursors(v, lists);
    // Vertex 0 has the odd self loop. Its source, 0, is the smallest, so it comes first in the row.
    if (v == 0) {
      for (int64_t i = 0; i < plan_.self_loops; ++i) *out++ = 0;
    }
    if (n == 2 && types == nullptr) {
      std::merge(lists[0].at, lists[0].end, lists[1].at, lists[1].end, out);
      return;
    }
    while (true) {
      Cursor* least = nullptr;
      for (int k = 0; k < n; ++k) {
        if (lists[k].at != lists[k].end && (least == nullptr || *lists[k].at < *least->at)) least = &lists[k];
      }
      if (least == nullptr) return;
      *out++ = *least->at++;
      if (types != nullptr) *types++ = least->type;
    }
  }

  const TwinPlan& plan_;
  std::vector<Part> parts_;
};

}  // namespace

Rows turn_rows(const Rows& rows, int64_t begin, int64_t count) {
  const Buckets buckets = scatter(rows, begin, count);
  Buffer<int64_t> row_ptr(count + 1);
  Buffer<NodeId> columns(rows.columns.size());
  const auto bucket_count = static_cast<int64_t>(buckets.begin.size()) - 1;
  parallel_tasks(bucket_count, [&](int64_t bucket) {
    const int64_t first = bucket << buckets.shift;
    const int64_t last = std::min(count, (bucket + 1) << buckets.shift);
    if (first >= last) return;
    std::vector<int64_t> next(last - first, 0);
    const Pair* from = buckets.pairs.data() + buckets.begin[bucket];
    const Pair* to = buckets.pairs.data() + buckets.begin[bucket + 1];
    for (const Pair* p = from; p != to; ++p) ++next[p->column - begin - first];
    int64_t sum = buckets.begin[bucket];
    for (int64_t r = first; r < last; ++r) {
      row_ptr[r] = sum;
      sum += std::exchange(next[r - first], sum);
    }
    for (const Pair* p = from; p != to; ++p) columns[next[p->column - begin - first]++] = p->row;
  });
  row_ptr[count] = rows.columns.size();
  return {begin, std::move(row_ptr).freeze(), std::move(columns).freeze()};
}

Graph draw_graph(const TwinPlan& plan, const std::vector<KindLayout>& layouts) {
  std::vector<Part> parts;
  for (int r = 0; r < static_cast<int>(plan.relations.size()); ++r) {
    const PlannedRelation& relation = plan.relations[r];
    const KindLayout& to = layouts[relation.to];
    Rows rows = draw_rows(plan, r, layouts[relation.from], to);
    const auto type = static_cast<uint16_t>(plan.spec->num_edge_types > 1 ? r : 0);
    parts.push_back({turn_rows(rows, to.begin, to.count), type});
    if (relation.symmetric) parts.push_back({std::move(rows), type});
  }
  NACRE_CHECK(parts.size() <= 8, "the twin has too many relations");
  Graph graph(Assembler(plan, std::move(parts)).build(), plan.name);
  NACRE_CHECK(graph.num_edges() == plan.num_edges, "the twin does not have the planned number of edges");
  return graph;
}

}  // namespace nacre
