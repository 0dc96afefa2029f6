// The tables of this header map original vertex ids to local ones. An entry is `base + local`.
// Between batches, a table is emptied at no cost: moving `base` past the entries of a batch makes
// all of them invalid, so memory is cleared only when the 32 bits run out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "nacre/graph/graph.h"

namespace nacre {

// DirectTable: has one entry for each vertex of the graph. A look-up reads one cache line.
class DirectTable {
 public:
  // `base` is the base of the first batch. Tests pass a large one, so that the 32 bits run out
  // soon.
  explicit DirectTable(int64_t num_nodes, int64_t base = 1) : entries_(num_nodes) {
    clear();
    base_ = base;
  }

  // Empties the table. At most `bound` vertices are inserted until the next call.
  void reset(int64_t bound) {
    base_ += size_;
    size_ = 0;
    if (base_ + std::min(bound, entries_.size()) > INT64_C(0xFFFFFFFF)) clear();
  }
  void reserve(int64_t) {}
  void prefetch(NodeId vertex) const { __builtin_prefetch(entries_.data() + vertex, 1); }
  NodeId size() const { return static_cast<NodeId>(size_); }
  // Returns the local id of the vertex. A new vertex gets the number of vertices so far.
  NodeId insert(NodeId vertex) {
    // Whether a vertex is new cannot be predicted, so no branch depends on it.
    uint32_t& entry = entries_[vertex];
    const uint32_t found = entry - static_cast<uint32_t>(base_);
    const auto size = static_cast<uint32_t>(size_);
    const uint32_t local = std::min(found, size);
    entry = static_cast<uint32_t>(base_) + local;
    size_ += static_cast<int64_t>(found >= size);
    return local;
  }
  // Returns the local id of the vertex, or some number >= size() if the vertex is not in the table.
  NodeId find(NodeId vertex) const { return entries_[vertex] - static_cast<uint32_t>(base_); }

 private:
  void clear() {
    std::memset(entries_.data(), 0, static_cast<size_t>(entries_.size()) * sizeof(uint32_t));
    base_ = 1;
    size_ = 0;
  }
  Buffer<uint32_t> entries_;
  int64_t base_ = 1;  // base + size never exceeds 2^32 - 1
  int64_t size_ = 0;
};

// HashTable: uses open addressing with linear probes. Its size is at least twice the number of
// vertices inserted, whatever the size of the graph.
class HashTable {
 public:
  explicit HashTable(int64_t, int64_t base = 1) {
    grow(1 << 12);
    base_ = base;
  }

  void reset(int64_t) {
    base_ += size_;
    size_ = 0;
    if (base_ + capacity() > INT64_C(0xFFFFFFFF)) clear();
  }
  // Makes room for `more` vertices besides those in the table.
  void reserve(int64_t more) {
    int64_t wanted = capacity();
    while (wanted < 2 * (size_ + more)) wanted *= 2;
    if (wanted > capacity()) grow(wanted);
  }
  void prefetch(NodeId vertex) const { __builtin_prefetch(buckets_.data() + home(vertex), 1); }
  NodeId size() const { return static_cast<NodeId>(size_); }
  NodeId insert(NodeId vertex) {
    for (uint64_t at = home(vertex);; at = (at + 1) & mask_) {
      Bucket& bucket = buckets_[static_cast<int64_t>(at)];
      const uint32_t local = bucket.entry - static_cast<uint32_t>(base_);
      if (local >= static_cast<uint64_t>(size_)) {
        bucket = {vertex, static_cast<uint32_t>(base_ + size_)};
        return static_cast<NodeId>(size_++);
      }
      if (bucket.vertex == vertex) return local;
    }
  }
  NodeId find(NodeId vertex) const {
    for (uint64_t at = home(vertex);; at = (at + 1) & mask_) {
      const Bucket& bucket = buckets_[static_cast<int64_t>(at)];
      const uint32_t local = bucket.entry - static_cast<uint32_t>(base_);
      if (local >= static_cast<uint64_t>(size_) || bucket.vertex == vertex) return local;
    }
  }

 private:
  struct Bucket {
    NodeId vertex;
    uint32_t entry;
  };
  int64_t capacity() const { return buckets_.size(); }
  // Returns where to look for the vertex first. The upper bits of a product depend on all bits of
  // the vertex.
  uint64_t home(NodeId vertex) const { return (vertex * UINT64_C(0x9E3779B97F4A7C15)) >> shift_; }
  void clear() {
    std::memset(static_cast<void*>(buckets_.data()), 0, static_cast<size_t>(capacity()) * sizeof(Bucket));
    base_ = 1;
    size_ = 0;
  }
  void grow(int64_t capacity) {
    Buffer<Bucket> old = std::exchange(buckets_, Buffer<Bucket>(capacity));
    const int64_t old_base = base_, old_size = size_;
    mask_ = static_cast<uint64_t>(capacity) - 1;
    shift_ = 64 - __builtin_ctzll(static_cast<uint64_t>(capacity));
    clear();
    size_ = old_size;
    for (const Bucket& bucket : old) {
      const uint32_t local = bucket.entry - static_cast<uint32_t>(old_base);
      if (local >= static_cast<uint64_t>(old_size)) continue;
      uint64_t at = home(bucket.vertex);
      while (buckets_[static_cast<int64_t>(at)].entry != 0) at = (at + 1) & mask_;
      buckets_[static_cast<int64_t>(at)] = {bucket.vertex, static_cast<uint32_t>(base_ + local)};
    }
  }
  Buffer<Bucket> buckets_;
  uint64_t mask_ = 0;
  int shift_ = 0;
  int64_t base_ = 1;
  int64_t size_ = 0;
};

}  // namespace nacre
