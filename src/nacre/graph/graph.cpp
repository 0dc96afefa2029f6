#include "nacre/graph/graph.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"
#include "nacre/graph/pairs.h"
#include "nacre/graph/radix.h"
#include "nacre/graph/transpose.h"

namespace nacre {

struct Graph::Lazy {
  std::once_flag out_once;
  std::once_flag dst_once;
  std::once_flag hash_once;
  std::once_flag pairs_once[2];
  OutCsc out;
  bool has_out = false;
  Array<NodeId> edge_dst;
  PairIndex pairs[2];
  std::atomic<bool> has_pairs[2] = {false, false};
  std::once_flag count_once[2];
  int64_t pair_count[2] = {0, 0};
  uint64_t fingerprint = 0;
};

Graph::Graph() : lazy_(std::make_shared<Lazy>()) { a_.row_ptr = std::vector<int64_t>{0}; }

Graph::Graph(GraphArrays arrays, const std::string& where) : a_(std::move(arrays)), lazy_(std::make_shared<Lazy>()) {
  const int64_t edges = a_.col_idx.size();
  const auto bad = [&](const std::string& what) {
    throw UserError(where, what, "the graph is damaged: convert it again");
  };
  if (a_.num_dst < 0) bad("the number of nodes is negative");
  if (a_.num_dst > a_.num_src) bad("there are more destinations than sources");
  if (a_.num_src > INT64_C(0xFFFFFFFF)) bad("there are more than 4,294,967,295 nodes");
  if (a_.row_ptr.size() != a_.num_dst + 1) bad("row offsets do not match the number of nodes");
  if (a_.row_ptr[0] != 0 || a_.row_ptr[a_.num_dst] != edges) bad("row offsets do not match the number of edges");
  if (!a_.edge_weight.empty() && a_.edge_weight.size() != edges) bad("edge weights do not match the number of edges");
  if (!a_.edge_type.empty() && a_.edge_type.size() != edges) bad("edge types do not match the number of edges");
  std::atomic<int> fault{0};
  parallel_for(a_.num_dst, 1 << 16, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      if (a_.row_ptr[i + 1] < a_.row_ptr[i]) fault |= 1;
    }
  });
  parallel_for(edges, 1 << 18, [&](int64_t b, int64_t e) {
    NodeId top = 0;
    uint16_t type = 0;
    for (int64_t i = b; i < e; ++i) top = std::max(top, a_.col_idx[i]);
    if (!a_.edge_type.empty()) {
      for (int64_t i = b; i < e; ++i) type = std::max(type, a_.edge_type[i]);
    }
    if (e > b && top >= a_.num_src) fault |= 2;
    if (e > b && type >= a_.num_edge_types) fault |= 4;
  });
  if (fault & 1) bad("row offsets decrease");
  if (fault & 2) bad("an edge names a node out of range");
  if (fault & 4) bad("an edge type is out of range");
}

Graph Graph::trusted(GraphArrays arrays) {
  const int64_t edges = arrays.col_idx.size();
  NACRE_CHECK(arrays.num_dst <= arrays.num_src && arrays.row_ptr.size() == arrays.num_dst + 1 &&
                  arrays.row_ptr[arrays.num_dst] == edges,
              "the arrays of a block do not fit together");
  Graph graph;
  graph.a_ = std::move(arrays);
  return graph;
}

bool Graph::has_out() const { return lazy_->has_out; }

const OutCsc& Graph::out() const {
  std::call_once(lazy_->out_once, [&] {
    if (num_edges() > INT64_C(0xFFFFFFFF)) {
      throw UserError("graph", "more than 4,294,967,295 edges cannot be trained as one full graph",
                      "train with mini-batches (--mode minibatch)");
    }
    if (is_few_edges(*this)) {
      Buffer<int64_t> offsets(num_src() + 2);
      Buffer<NodeId> dst(num_edges());
      Buffer<EdgeId> edge_id(num_edges());
      group_by_source(*this, EdgesBySource<int64_t>{offsets.data(), dst.data(), edge_id.data()});
      const auto owner = std::make_shared<Buffer<int64_t>>(std::move(offsets));
      lazy_->out = {{owner, owner->data(), num_src() + 1}, std::move(dst).freeze(), std::move(edge_id).freeze()};
      lazy_->has_out = true;
      return;
    }
    // Edges are ordered by (dst, src); a stable sort by src leaves them ordered by (src, dst).
    GroupedBy grouped = group_stable(a_.col_idx.data(), num_edges(), num_src());
    Buffer<NodeId> dst(num_edges());
    const Array<NodeId>& by_edge = edge_dst();
    parallel_for(num_edges(), 1 << 18, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) dst[i] = by_edge[grouped.order[i]];
    });
    lazy_->out = {std::move(grouped.offsets).freeze(), std::move(dst).freeze(), std::move(grouped.order).freeze()};
    lazy_->has_out = true;
  });
  return lazy_->out;
}

const Array<NodeId>& Graph::edge_dst() const {
  std::call_once(lazy_->dst_once, [&] {
    Buffer<NodeId> dst(num_edges());
    parallel_for(num_dst(), 1 << 14, [&](int64_t b, int64_t e) {
      for (int64_t v = b; v < e; ++v) {
        std::fill(dst.data() + a_.row_ptr[v], dst.data() + a_.row_ptr[v + 1], static_cast<NodeId>(v));
      }
    });
    lazy_->edge_dst = std::move(dst).freeze();
  });
  return lazy_->edge_dst;
}

const PairIndex& Graph::pairs(End end) const {
  const auto which = static_cast<size_t>(end);
  std::call_once(lazy_->pairs_once[which], [&] {
    lazy_->pairs[which] = make_pairs(*this, end);
    lazy_->has_pairs[which] = true;
  });
  return lazy_->pairs[which];
}

bool Graph::has_pairs(End end) const { return lazy_->has_pairs[static_cast<size_t>(end)]; }

int64_t Graph::count_pairs(End end) const {
  const auto which = static_cast<size_t>(end);
  if (has_pairs(end)) return lazy_->pairs[which].num_pairs;
  std::call_once(lazy_->count_once[which], [&] { lazy_->pair_count[which] = nacre::count_pairs(*this, end); });
  return lazy_->pair_count[which];
}

int64_t Graph::bytes() const {
  return a_.row_ptr.size() * 8 + num_edges() * 4 + a_.edge_weight.size() * 4 + a_.edge_type.size() * 2;
}

int64_t Graph::out_bytes() const { return (num_src() + 1) * 8 + num_edges() * 12; }

uint64_t Graph::fingerprint() const {
  std::call_once(lazy_->hash_once, [&] {
    // The hashes of the chunks are combined in order, so the result does not depend on the number
    // of threads.
    const auto hash_bytes = [](const void* data, int64_t bytes) {
      constexpr int64_t chunk = 1 << 20;
      std::vector<uint64_t> parts((bytes + chunk - 1) / chunk);
      parallel_for(bytes, chunk, [&](int64_t b, int64_t e) {
        const auto* p = static_cast<const unsigned char*>(data);
        uint64_t h = static_cast<uint64_t>(e - b);
        for (; b + 8 <= e; b += 8) {
          uint64_t word;
          std::memcpy(&word, p + b, 8);
          h = mix_key(h, word);
        }
        for (; b < e; ++b) h = mix_key(h, p[b]);
        parts[(b - 1) / chunk] = h;
      });
      uint64_t h = static_cast<uint64_t>(bytes);
      for (const uint64_t part : parts) h = mix_key(h, part);
      return h;
    };
    uint64_t h = mix_key(static_cast<uint64_t>(num_src()), static_cast<uint64_t>(num_dst()));
    h = mix_key(h, hash_bytes(a_.row_ptr.data(), a_.row_ptr.size() * 8));
    h = mix_key(h, hash_bytes(a_.col_idx.data(), a_.col_idx.size() * 4));
    h = mix_key(h, hash_bytes(a_.edge_weight.data(), a_.edge_weight.size() * 4));
    h = mix_key(h, hash_bytes(a_.edge_type.data(), a_.edge_type.size() * 2));
    lazy_->fingerprint = h;
  });
  return lazy_->fingerprint;
}

}  // namespace nacre
