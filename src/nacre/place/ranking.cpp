// The rows are sorted by keys. The key of a value is the complement of its bits, so that larger
// values have smaller keys: floats that are not negative have the order of their bits. A
// least-significant-digit radix sort moves the keys together with their vertices. The sort of
// graph/radix.cpp is not used, because it would need an offset for each of the 2^32 keys.
#include "nacre/place/ranking.h"

#include <bit>
#include <utility>
#include <vector>

#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"

namespace nacre {
namespace {

constexpr int kDigitBits = 11;
constexpr int64_t kDigits = 1 << kDigitBits;
constexpr int64_t kSortChunk = 1 << 19;

struct Ranked {
  uint32_t key;
  NodeId vertex;
};

void sort_by_digit(const Buffer<Ranked>& in, Buffer<Ranked>& out, int shift) {
  const int64_t count = in.size();
  const int64_t chunks = (count + kSortChunk - 1) / kSortChunk;
  std::vector<int64_t> start(static_cast<size_t>(chunks * kDigits), 0);
  const auto digit = [shift](uint32_t key) { return static_cast<int64_t>(key >> shift) & (kDigits - 1); };
  parallel_for(count, kSortChunk, [&](int64_t b, int64_t e) {
    int64_t* histogram = &start[b / kSortChunk * kDigits];
    for (int64_t i = b; i < e; ++i) ++histogram[digit(in[i].key)];
  });
  int64_t sum = 0;
  for (int64_t d = 0; d < kDigits; ++d) {
    for (int64_t c = 0; c < chunks; ++c) sum += std::exchange(start[c * kDigits + d], sum);
  }
  parallel_for(count, kSortChunk, [&](int64_t b, int64_t e) {
    int64_t* next = &start[b / kSortChunk * kDigits];
    for (int64_t i = b; i < e; ++i) out[next[digit(in[i].key)]++] = in[i];
  });
}

Array<NodeId> sorted(Buffer<Ranked> ranked) {
  const int64_t count = ranked.size();
  Buffer<Ranked> other(count);
  for (int shift = 0; shift < 32; shift += kDigitBits) {
    sort_by_digit(ranked, other, shift);
    std::swap(ranked, other);
  }
  other = {};
  Buffer<NodeId> vertices(count);
  parallel_for(count, kSortChunk, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) vertices[i] = ranked[i].vertex;
  });
  return std::move(vertices).freeze();
}

}  // namespace

Array<NodeId> rank_vertices(std::span<const float> values) {
  Buffer<Ranked> ranked(static_cast<int64_t>(values.size()));
  parallel_for(ranked.size(), kSortChunk, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) {
      const float value = values[static_cast<size_t>(v)];
      const uint32_t bits = value > 0 ? std::bit_cast<uint32_t>(value) : 0;
      ranked[v] = {~bits, static_cast<NodeId>(v)};
    }
  });
  return sorted(std::move(ranked));
}

Array<NodeId> vertices_in_order(int64_t count) {
  Buffer<NodeId> vertices(count);
  parallel_for(count, kSortChunk, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) vertices[v] = static_cast<NodeId>(v);
  });
  return std::move(vertices).freeze();
}

Array<NodeId> vertices_at_random(int64_t count, uint64_t seed) {
  const uint64_t key = mix_key(seed, 0x706C616365);
  Buffer<Ranked> ranked(count);
  parallel_for(count, kSortChunk, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) {
      ranked[v] = {philox(key, 0, static_cast<uint64_t>(v))[0], static_cast<NodeId>(v)};
    }
  });
  return sorted(std::move(ranked));
}

}  // namespace nacre
