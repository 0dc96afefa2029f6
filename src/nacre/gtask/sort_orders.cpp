// This file has a least-significant-digit radix sort. Its passes move the columns of the edges
// (number, source, destination, type) together. The keys are then read in sequence; looking them up
// through a permutation would miss the cache at every edge. Digits have few bits, so that a pass
// writes to few places at a time. Besides its result, a sort takes at most 15 bytes per edge.
#include "nacre/gtask/sort_orders.h"

#include <algorithm>
#include <bit>

#include "nacre/base/parallel.h"

namespace nacre {
namespace {

constexpr int kMaxDigitBits = 8;
constexpr int64_t kChunk = 1 << 18;
constexpr int64_t kKeepBytes = int64_t{3} << 30;

struct Columns {
  Columns(int64_t count, bool typed) : edge(count), src(count), dst(count), type(typed ? count : 0) {}
  Buffer<EdgeId> edge;
  Buffer<NodeId> src, dst;
  Buffer<uint16_t> type;
};

struct ColumnsView {
  int64_t count;
  const EdgeId* edge;  // null: the numbers are 0, 1, 2, …
  const NodeId* src;
  const NodeId* dst;
  const uint16_t* type;  // null: there are no types
};

ColumnsView view(const EdgeOrder& order) {
  return {order.src.size(), order.edge.empty() ? nullptr : order.edge.data(), order.src.data(), order.dst.data(),
          order.type.empty() ? nullptr : order.type.data()};
}

ColumnsView view(const Columns& c) {
  return {c.src.size(), c.edge.data(), c.src.data(), c.dst.data(), c.type.size() > 0 ? c.type.data() : nullptr};
}

// One digit of a sort key.
struct Pass {
  SortKey key;
  // The degrees of the vertices at the key's end, if the key is the degree.
  const std::vector<NodeId>* degree;
  int shift;
  int bits;
};

// Writes the digit of every edge to digits[i], and counts each digit in every chunk: counts[chunk ·
// 2^bits + digit].
template <class Value>
void count_digits(uint8_t* digits, std::vector<int64_t>& counts, int64_t count, const Pass& pass, const Value& value) {
  const auto mask = static_cast<NodeId>((1 << pass.bits) - 1);
  parallel_for(count, kChunk, [&](int64_t b, int64_t e) {
    int64_t* histogram = &counts[(b / kChunk) << pass.bits];
    for (int64_t i = b; i < e; ++i) {
      const NodeId digit = (value(i) >> pass.shift) & mask;
      digits[i] = static_cast<uint8_t>(digit);
      ++histogram[digit];
    }
  });
}

void find_digits(const ColumnsView& in, uint8_t* digits, std::vector<int64_t>& counts, const Pass& pass) {
  const NodeId* end = pass.key.location == Location::src ? in.src : in.dst;
  if (pass.key.attribute == Attribute::type) {
    count_digits(digits, counts, in.count, pass, [&](int64_t i) { return NodeId{in.type[i]}; });
    return;
  }
  if (pass.key.attribute == Attribute::degree) {
    const NodeId* degree = pass.degree->data();
    count_digits(digits, counts, in.count, pass, [end, degree](int64_t i) { return degree[end[i]]; });
    return;
  }
  const auto block = static_cast<NodeId>(std::min<int64_t>(pass.key.block, 0xFFFFFFFF));
  if (std::has_single_bit(block)) {  // a division would cost as much as the rest of the pass
    const int by = std::countr_zero(block);
    count_digits(digits, counts, in.count, pass, [end, by](int64_t i) { return end[i] >> by; });
  } else {
    count_digits(digits, counts, in.count, pass, [end, block](int64_t i) { return end[i] / block; });
  }
}

// Sorts by one digit. A scan over (digit, chunk) gives every chunk its own places in `out`.
void radix_pass(const ColumnsView& in, Columns& out, Buffer<uint8_t>& digits, const Pass& pass) {
  const int64_t chunks = (in.count + kChunk - 1) / kChunk;
  const int64_t buckets = int64_t{1} << pass.bits;
  std::vector<int64_t> place(chunks * buckets, 0);
  find_digits(in, digits.data(), place, pass);
  int64_t sum = 0;
  for (int64_t d = 0; d < buckets; ++d) {
    for (int64_t c = 0; c < chunks; ++c) sum += std::exchange(place[c * buckets + d], sum);
  }
  parallel_for(in.count, kChunk, [&](int64_t b, int64_t e) {
    int64_t* next = &place[b / kChunk * buckets];
    for (int64_t i = b; i < e; ++i) {
      const int64_t to = next[digits[i]]++;
      out.edge[to] = in.edge ? in.edge[i] : static_cast<EdgeId>(i);
      out.src[to] = in.src[i];
      out.dst[to] = in.dst[i];
      if (in.type) out.type[to] = in.type[i];
    }
  });
}

// Returns the number of values that a key can have.
int64_t num_values(const Graph& graph, const SortKey& key, const std::vector<NodeId>& degree) {
  if (key.attribute == Attribute::type) return graph.num_edge_types();
  if (key.attribute == Attribute::degree) {
    return degree.empty() ? 1 : int64_t{*std::max_element(degree.begin(), degree.end())} + 1;
  }
  const int64_t vertices = key.location == Location::src ? graph.num_src() : graph.num_dst();
  return vertices / key.block + 1;
}

// Returns `from`, stably sorted by `keys`.
EdgeOrder radix_sort(const Graph& graph, const EdgeOrder& from, std::span<const SortKey> keys) {
  std::vector<std::vector<NodeId>> degrees(keys.size());
  std::vector<Pass> passes;  // the least significant digit first
  for (size_t k = keys.size(); k-- > 0;) {
    if (keys[k].attribute == Attribute::degree) degrees[k] = degrees_at(graph, keys[k].location);
    const int key_bits =
        static_cast<int>(std::bit_width(static_cast<uint64_t>(num_values(graph, keys[k], degrees[k]))));
    const int digits = (key_bits + kMaxDigitBits - 1) / kMaxDigitBits;
    const int bits = (key_bits + digits - 1) / digits;
    for (int d = 0; d < digits; ++d) passes.push_back({keys[k], &degrees[k], d * bits, bits});
  }
  const int64_t count = from.src.size();
  Buffer<uint8_t> digits(count);
  Columns result(count, graph.typed());
  radix_pass(view(from), result, digits, passes[0]);
  if (passes.size() > 1) {
    Columns other(count, graph.typed());
    for (size_t p = 1; p < passes.size(); ++p) {
      std::swap(result, other);
      radix_pass(view(other), result, digits, passes[p]);
    }
  }
  return {{},
          std::move(result.edge).freeze(),
          std::move(result.src).freeze(),
          std::move(result.dst).freeze(),
          graph.typed() ? std::move(result.type).freeze() : Array<uint16_t>()};
}

EdgeOrder in_order(const Graph& graph) { return {{}, {}, graph.col_idx(), graph.edge_dst(), graph.edge_type()}; }

EdgeOrder out_order(const Graph& graph) {
  const OutCsc& out = graph.out();
  Buffer<NodeId> src(graph.num_edges());
  parallel_for(graph.num_src(), 1 << 14, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) {
      std::fill(src.data() + out.row_ptr[v], src.data() + out.row_ptr[v + 1], static_cast<NodeId>(v));
    }
  });
  Buffer<uint16_t> type(graph.typed() ? graph.num_edges() : 0);
  parallel_for(type.size(), kChunk, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) type[i] = graph.edge_type()[out.edge_id[i]];
  });
  return {{}, out.edge_id, std::move(src).freeze(), out.dst, std::move(type).freeze()};
}

}  // namespace

std::vector<NodeId> degrees_at(const Graph& graph, Location end) {
  const bool at_src = end == Location::src;
  std::vector<NodeId> degree(at_src ? graph.num_src() : graph.num_dst(), 0);
  if (at_src && !graph.has_out()) {
    for (const NodeId v : graph.col_idx()) ++degree[v];
    return degree;
  }
  const Array<int64_t>& row_ptr = at_src ? graph.out().row_ptr : graph.row_ptr();
  for (size_t v = 0; v < degree.size(); ++v) {
    const auto at = static_cast<int64_t>(v);
    degree[v] = static_cast<NodeId>(row_ptr[at + 1] - row_ptr[at]);
  }
  return degree;
}

// Returns the edges in the order that a table needs. The sort starts from a kept order that is
// sorted by as many of the last keys as possible.
EdgeOrder SortOrders::order(const PartitionTable& table) {
  const std::vector<SortKey> keys = essential_keys(sort_keys(table), graph_);
  const std::span<const SortKey> all = keys;
  EdgeOrder order;
  size_t missing = 0;
  while (!find(all.subspan(missing), order)) ++missing;
  if (missing > 0) order = radix_sort(graph_, order, all.first(missing));
  sorts_ += static_cast<int64_t>(missing);
  order.keys = keys;
  if (missing > 0) keep(order);
  return order;
}

bool SortOrders::find(std::span<const SortKey> keys, EdgeOrder& order) {
  if (keys.empty()) {
    order = in_order(graph_);
    return true;
  }
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const EdgeOrder& kept) { return std::ranges::equal(kept.keys, keys); });
  if (found != kept_.end()) {
    std::rotate(found, found + 1, kept_.end());
    order = kept_.back();
    return true;
  }
  if (keys.size() > 1 || keys[0] != SortKey{Location::src, Attribute::id}) return false;
  order = out_order(graph_);
  order.keys.assign(keys.begin(), keys.end());
  keep(order);
  return true;
}

// Keeps the order. Orders of a large graph are large themselves, so the least recently used ones
// are dropped.
void SortOrders::keep(const EdgeOrder& order) {
  kept_.push_back(order);
  int64_t bytes = 0;
  for (const EdgeOrder& kept : kept_) bytes += kept.bytes();
  size_t drop = 0;
  while (drop + 1 < kept_.size() && bytes > kKeepBytes) bytes -= kept_[drop++].bytes();
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(drop));
}

std::shared_ptr<SortOrders> make_sort_orders(const Graph& graph) { return std::make_shared<SortOrders>(graph); }

int64_t SortOrders::bytes() const {
  int64_t sum = 0;
  for (const EdgeOrder& order : kept_) sum += order.bytes();
  return sum;
}

}  // namespace nacre
