#include "nacre/data/external_sort.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/data/checksum.h"

namespace nacre {
namespace {

constexpr int kTopBits = 11;
constexpr int64_t kTopBuckets = int64_t{1} << kTopBits;
constexpr int64_t kSortChunk = 1 << 19;
constexpr int64_t kSmall = 1 << 15;  // number of edges that one thread sorts at once

template <class Edge>
void radix_pass(const Edge* from, Edge* to, int64_t count, int shift, int bits) {
  uint32_t next[1 << 11] = {};
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (int64_t i = 0; i < count; ++i) ++next[from[i].key >> shift & mask];
  uint32_t sum = 0;
  for (uint64_t d = 0; d <= mask; ++d) sum += std::exchange(next[d], sum);
  for (int64_t i = 0; i < count; ++i) to[next[from[i].key >> shift & mask]++] = from[i];
}

template <class Edge>
void insertion_sort(Edge* edges, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    const Edge edge = edges[i];
    int64_t j = i;
    for (; j > 0 && edges[j - 1].key > edge.key; --j) edges[j] = edges[j - 1];
    edges[j] = edge;
  }
}

// Sorts `edges` on one thread, least significant digit first, only by the bits in which keys
// differ. Returns where the result is: `edges` or `other`.
template <class Edge>
Edge* sort_digits(Edge* edges, Edge* other, int64_t count) {
  if (count < 48) {
    insertion_sort(edges, count);
    return edges;
  }
  uint64_t differ = 0;
  for (int64_t i = 1; i < count; ++i) differ |= edges[i].key ^ edges[0].key;
  const int most = count < 4096 ? 8 : 11;
  for (const int word : {0, 32}) {
    const int width = std::bit_width(static_cast<uint32_t>(differ >> word));
    const int passes = (width + most - 1) / most;
    for (int pass = 0, shift = 0; pass < passes; ++pass) {
      const int bits = (width - shift + passes - pass - 1) / (passes - pass);
      radix_pass(edges, other, count, word + shift, bits);
      std::swap(edges, other);
      shift += bits;
    }
  }
  return edges;
}

struct KeyRange {
  uint64_t low = ~uint64_t{0};
  uint64_t high = 0;
};

template <class Edge>
KeyRange key_range(const Edge* edges, int64_t count) {
  std::vector<KeyRange> parts((count + kSortChunk - 1) / kSortChunk);
  parallel_for(count, kSortChunk, [&](int64_t b, int64_t e) {
    KeyRange range;
    for (int64_t i = b; i < e; ++i) {
      range.low = std::min(range.low, edges[i].key);
      range.high = std::max(range.high, edges[i].key);
    }
    parts[b / kSortChunk] = range;
  });
  KeyRange all;
  for (const KeyRange& part : parts) all = {std::min(all.low, part.low), std::max(all.high, part.high)};
  return all;
}

// Scatters `edges` into `to` by the digit at `shift`, stably. Returns where each bucket begins.
template <class Edge>
std::vector<int64_t> scatter(const Edge* edges, Edge* to, int64_t count, int shift) {
  const auto digit = [shift](const Edge& edge) { return edge.key >> shift & (kTopBuckets - 1); };
  const int64_t chunks = (count + kSortChunk - 1) / kSortChunk;
  std::vector<int64_t> next(chunks * kTopBuckets, 0);
  parallel_for(count, kSortChunk, [&](int64_t b, int64_t e) {
    int64_t* histogram = &next[b / kSortChunk * kTopBuckets];
    for (int64_t i = b; i < e; ++i) ++histogram[digit(edges[i])];
  });
  std::vector<int64_t> begin(kTopBuckets + 1);
  int64_t sum = 0;
  for (int64_t d = 0; d < kTopBuckets; ++d) {
    begin[d] = sum;
    for (int64_t c = 0; c < chunks; ++c) sum += std::exchange(next[c * kTopBuckets + d], sum);
  }
  begin[kTopBuckets] = sum;
  parallel_for(count, kSortChunk, [&](int64_t b, int64_t e) {
    int64_t* place = &next[b / kSortChunk * kTopBuckets];
    for (int64_t i = b; i < e; ++i) to[place[digit(edges[i])]++] = edges[i];
  });
  return begin;
}

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw RuntimeError(path, std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

template <class Edge>
void sort_by_key(Edge* edges, Edge* scratch, int64_t count) {
  if (count <= kSmall) {
    const Edge* sorted = sort_digits(edges, scratch, count);
    if (sorted != edges) std::copy(sorted, sorted + count, edges);
    return;
  }
  const KeyRange range = key_range(edges, count);
  const int width = std::bit_width(range.low ^ range.high);
  const std::vector<int64_t> begin = scatter(edges, scratch, count, std::max(0, width - kTopBits));
  // A bucket fits into the cache of a core unless few vertices have most of the edges.
  parallel_tasks(kTopBuckets, [&](int64_t d) {
    const int64_t size = begin[d + 1] - begin[d];
    const Edge* sorted = sort_digits(scratch + begin[d], edges + begin[d], size);
    if (sorted != edges + begin[d]) std::copy(sorted, sorted + size, edges + begin[d]);
  });
}

template <class Edge>
ExternalSort<Edge>::ExternalSort(std::string path, int64_t capacity)
    : path_(std::move(path)), capacity_(capacity), edges_(capacity), scratch_(capacity) {
  fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(path_, "cannot be written");
}

template <class Edge>
ExternalSort<Edge>::~ExternalSort() {
  if (fd_ >= 0) close(fd_);
}

template <class Edge>
Edge* ExternalSort<Edge>::take(int64_t count) {
  NACRE_CHECK(count <= room(), "there are more edges than there is room for");
  return edges_.data() + std::exchange(held_, held_ + count);
}

template <class Edge>
SortedRun ExternalSort<Edge>::spill() {
  sort_by_key(edges_.data(), scratch_.data(), held_);
  const int64_t bytes = held_ * static_cast<int64_t>(sizeof(Edge));
  const SortedRun run{end_, held_, checksum64(edges_.data(), bytes)};
  const auto* p = reinterpret_cast<const char*>(edges_.data());
  for (int64_t at = 0; at < bytes;) {
    const ssize_t n = pwrite(fd_, p + at, static_cast<size_t>(std::min<int64_t>(bytes - at, 64 << 20)), end_ + at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(path_, "cannot write");
    at += n;
  }
  Part part{end_, held_, {}};
  for (int64_t i = 0; i < held_; i += kSample) part.samples.push_back(edges_[i].key);
  runs_.push_back(std::move(part));
  end_ += bytes;
  held_ = 0;
  return run;
}

template <class Edge>
bool ExternalSort<Edge>::adopt(const SortedRun& run) {
  const int64_t file_end = lseek(fd_, 0, SEEK_END);
  const int64_t bytes = run.count * static_cast<int64_t>(sizeof(Edge));
  if (run.offset != end_ || run.count <= 0 || run.offset + bytes > file_end) return false;
  Part part{run.offset, run.count, {}};
  Checksum64 sum;
  for (int64_t first = 0; first < run.count; first += capacity_) {
    const int64_t count = std::min(capacity_, run.count - first);
    read_at(part, first, count, scratch_.data());
    sum.update(scratch_.data(), count * static_cast<int64_t>(sizeof(Edge)));
    for (int64_t i = (kSample - first % kSample) % kSample; i < count; i += kSample) {
      part.samples.push_back(scratch_[i].key);
    }
  }
  if (sum.value() != run.checksum) return false;
  runs_.push_back(std::move(part));
  end_ += bytes;
  return true;
}

template <class Edge>
void ExternalSort<Edge>::finish() {
  sort_by_key(edges_.data(), scratch_.data(), held_);
  scratch_ = Buffer<Edge>(0);
  Part part{-1, held_, {}};
  for (int64_t i = 0; i < held_; i += kSample) part.samples.push_back(edges_[i].key);
  if (held_ > 0) runs_.push_back(std::move(part));
}

template <class Edge>
int64_t ExternalSort<Edge>::size() const {
  int64_t count = 0;
  for (const Part& part : runs_) count += part.count;
  return count;
}

template <class Edge>
void ExternalSort<Edge>::read_at(const Part& part, int64_t first, int64_t count, Edge* to) const {
  if (part.offset < 0) {
    std::copy(edges_.data() + first, edges_.data() + first + count, to);
    return;
  }
  auto* p = reinterpret_cast<char*>(to);
  int64_t left = count * static_cast<int64_t>(sizeof(Edge));
  int64_t offset = part.offset + first * static_cast<int64_t>(sizeof(Edge));
  while (left > 0) {
    const ssize_t n = pread(fd_, p, static_cast<size_t>(std::min<int64_t>(left, 64 << 20)), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0)
      throw RuntimeError(path_,
                         "this temporary file was shortened by another program while edges were sorted "
                         "(start the conversion again)");
    if (n < 0) fail(path_, "cannot read");
    p += n;
    offset += n;
    left -= n;
  }
}

template <class Edge>
int64_t ExternalSort<Edge>::lower_bound(const Part& part, uint64_t key) const {
  const auto sample = std::lower_bound(part.samples.begin(), part.samples.end(), key) - part.samples.begin();
  int64_t low = std::max<int64_t>(0, (sample - 1) * kSample);
  int64_t high = std::min(part.count, sample * kSample);
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    Edge edge;
    read_at(part, middle, 1, &edge);
    if (edge.key < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

template <class Edge>
auto ExternalSort<Edge>::ranges(int64_t about, int64_t widest, uint64_t end) const -> std::vector<Range> {
  std::vector<uint64_t> samples;
  for (const Part& part : runs_) samples.insert(samples.end(), part.samples.begin(), part.samples.end());
  std::sort(samples.begin(), samples.end());
  std::vector<uint64_t> cuts = {0};
  const uint64_t gap = static_cast<uint64_t>(widest) << 32;
  const auto cut_until = [&](uint64_t key) {
    while (key - cuts.back() > gap) cuts.push_back(cuts.back() + gap);
  };
  const int64_t step = std::max<int64_t>(1, about / kSample);
  for (int64_t i = step; i < static_cast<int64_t>(samples.size()); i += step) {
    cut_until(samples[i]);
    if (samples[i] > cuts.back()) cuts.push_back(samples[i]);
  }
  cut_until(end);
  std::vector<Range> result(cuts.size());
  parallel_tasks(static_cast<int64_t>(cuts.size()), [&](int64_t i) {
    result[i].begin = cuts[i];
    for (const Part& part : runs_) result[i].first.push_back(lower_bound(part, cuts[i]));
  });
  std::vector<int64_t> sizes;
  for (const Part& part : runs_) sizes.push_back(part.count);
  for (size_t i = 0; i < result.size(); ++i) {
    result[i].end = i + 1 < result.size() ? result[i + 1].begin : end;
    result[i].last = i + 1 < result.size() ? result[i + 1].first : sizes;
    for (size_t r = 0; r < sizes.size(); ++r) result[i].count += result[i].last[r] - result[i].first[r];
  }
  return result;
}

template <class Edge>
void ExternalSort<Edge>::read(const Range& range, std::vector<Edge>& edges, std::vector<Edge>& scratch) const {
  edges.resize(range.count);
  scratch.resize(range.count);
  int64_t at = 0;
  for (size_t r = 0; r < runs_.size(); ++r) {
    const int64_t count = range.last[r] - range.first[r];
    read_at(runs_[r], range.first[r], count, edges.data() + at);
    at += count;
  }
  // The edges of a single run are already sorted.
  if (runs_.size() > 1 && sort_digits(edges.data(), scratch.data(), range.count) != edges.data()) {
    edges.swap(scratch);
  }
}

template class ExternalSort<PlainEdge>;
template class ExternalSort<RichEdge>;
template void sort_by_key(PlainEdge*, PlainEdge*, int64_t);
template void sort_by_key(RichEdge*, RichEdge*, int64_t);

}  // namespace nacre
