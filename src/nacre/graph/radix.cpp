// Least-significant-digit radix sort of keys that carry their positions, 11 bits per pass. Each
// pass makes a histogram of every chunk, runs one exclusive scan over (digit, chunk), and scatters;
// every chunk owns its places in the output.
#include "nacre/graph/radix.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

constexpr int kBits = 11;
constexpr int64_t kBuckets = 1 << kBits;
constexpr int64_t kRadixChunk = 1 << 19;

struct Keyed {
  NodeId key;
  EdgeId position;
};

void radix_pass(const Keyed* in, Keyed* out, int64_t count, int shift) {
  const int64_t chunks = (count + kRadixChunk - 1) / kRadixChunk;
  std::vector<int64_t> start(chunks * kBuckets, 0);
  const auto digit = [shift](NodeId key) { return static_cast<int64_t>(key >> shift) & (kBuckets - 1); };
  parallel_for(count, kRadixChunk, [&](int64_t b, int64_t e) {
    int64_t* histogram = &start[b / kRadixChunk * kBuckets];
    for (int64_t i = b; i < e; ++i) ++histogram[digit(in[i].key)];
  });
  int64_t sum = 0;
  for (int64_t d = 0; d < kBuckets; ++d) {
    for (int64_t c = 0; c < chunks; ++c) sum += std::exchange(start[c * kBuckets + d], sum);
  }
  parallel_for(count, kRadixChunk, [&](int64_t b, int64_t e) {
    int64_t* next = &start[b / kRadixChunk * kBuckets];
    for (int64_t i = b; i < e; ++i) out[next[digit(in[i].key)]++] = in[i];
  });
}

}  // namespace

GroupedBy group_stable(const NodeId* keys, int64_t count, int64_t groups) {
  NACRE_CHECK(count <= INT64_C(0xFFFFFFFF), "there are more keys than 32 bits can number");
  Buffer<Keyed> a(count);
  Buffer<Keyed> b(count);
  parallel_for(count, kRadixChunk, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) a[i] = {keys[i], static_cast<EdgeId>(i)};
  });
  const int key_bits = groups > 1 ? std::bit_width(static_cast<uint64_t>(groups - 1)) : 0;
  for (int shift = 0; shift < key_bits; shift += kBits) {
    radix_pass(a.data(), b.data(), count, shift);
    std::swap(a, b);
  }
  b = {};
  GroupedBy result{Buffer<int64_t>(groups + 1), Buffer<EdgeId>(count)};
  // The offsets come from the sorted keys: group r starts where the key first reaches r.
  std::fill(result.offsets.begin(), result.offsets.end(), count);
  result.offsets[0] = 0;
  parallel_for(count, kRadixChunk, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      result.order[i] = a[i].position;
      const int64_t previous = i == 0 ? -1 : static_cast<int64_t>(a[i - 1].key);
      for (int64_t r = previous + 1; r <= a[i].key; ++r) result.offsets[r] = i;
    }
  });
  return result;
}

}  // namespace nacre
