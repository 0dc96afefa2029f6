// Sorting edges that do not fit into memory: runs sorted in memory are appended to a file; afterwards any range of keys
// is gathered from all runs and sorted by itself. Everything is stable and the same on any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/graph/graph.h"

namespace nacre {

// Destination in the high half, source in the low one: sorted by key, edges are a graph grouped by destination.
inline uint64_t edge_key(NodeId src, NodeId dst) { return static_cast<uint64_t>(dst) << 32 | src; }
inline NodeId src_of(uint64_t key) { return static_cast<NodeId>(key); }
inline NodeId dst_of(uint64_t key) { return static_cast<NodeId>(key >> 32); }

struct PlainEdge {
  uint64_t key;
};
struct RichEdge {
  uint64_t key;
  float weight;
  uint16_t type;
  uint16_t reversed;  // 1: not in the source, the reverse of an edge that is
};

// Stable, in parallel; `scratch` has room for as many edges.
template <class Edge>
void sort_by_key(Edge* edges, Edge* scratch, int64_t count);

// Where a sorted run lies in the file.
struct SortedRun {
  int64_t offset = 0;
  int64_t count = 0;
  uint64_t checksum = 0;
};

template <class Edge>
class ExternalSort {
 public:
  // Keeps at most `capacity` edges in memory, twice: sorting needs as much again.
  ExternalSort(std::string path, int64_t capacity);
  ~ExternalSort();
  ExternalSort(const ExternalSort&) = delete;
  ExternalSort& operator=(const ExternalSort&) = delete;

  int64_t room() const { return capacity_ - held_; }
  int64_t held() const { return held_; }
  // Room for `count` further edges, to be filled by the caller; at most room().
  Edge* take(int64_t count);
  // Sorts what is held and appends it to the file.
  SortedRun spill();
  // A run that an earlier process wrote, before any other call. False when the file does not hold it whole; it and
  // whatever follows are then written anew.
  bool adopt(const SortedRun& run);
  // No more edges: what is held becomes the last run, in memory.
  void finish();

  int64_t size() const;  // edges in all
  int64_t num_runs() const { return static_cast<int64_t>(runs_.size()); }

  // Consecutive ranges of keys that together are [0, end); each holds about `about` edges unless many are alike, and
  // keys of at most `widest` destinations.
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
    std::vector<int64_t> first;  // by run
    std::vector<int64_t> last;
    int64_t count = 0;
  };
  std::vector<Range> ranges(int64_t about, int64_t widest, uint64_t end) const;
  // The edges of a range, sorted; those of equal keys in the order they came. Safe to call from several threads.
  void read(const Range& range, std::vector<Edge>& edges, std::vector<Edge>& scratch) const;

 private:
  struct Part {
    int64_t offset = -1;  // in the file; -1: in memory
    int64_t count = 0;
    std::vector<uint64_t> samples;  // the key of every kSample-th edge
  };
  static constexpr int64_t kSample = 1024;

  void read_at(const Part& part, int64_t first, int64_t count, Edge* to) const;
  int64_t lower_bound(const Part& part, uint64_t key) const;

  std::string path_;
  int fd_ = -1;
  int64_t end_ = 0;  // of the runs in the file
  int64_t capacity_ = 0;
  int64_t held_ = 0;
  Buffer<Edge> edges_;
  Buffer<Edge> scratch_;
  std::vector<Part> runs_;
};

extern template class ExternalSort<PlainEdge>;
extern template class ExternalSort<RichEdge>;

}  // namespace nacre
