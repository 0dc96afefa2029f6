// Sorts edges that do not fit into memory. Runs that are sorted in memory are appended to a file.
// Afterwards, any range of keys can be gathered from all runs and sorted by itself. Sorting is
// stable and gives the same result on any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/graph/graph.h"

namespace nacre {

// The key of an edge has the destination in its high half and the source in its low half, so edges
// sorted by key are a graph grouped by destination.
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
  uint16_t reversed;  // 1 if the edge was added as the reverse of an edge of the source
};

// Sorts the `count` edges of `edges` by their keys, stably and in parallel. `scratch` has room for
// as many edges.
template <class Edge>
void sort_by_key(Edge* edges, Edge* scratch, int64_t count);

// The position of a sorted run in the file.
struct SortedRun {
  int64_t offset = 0;
  int64_t count = 0;
  uint64_t checksum = 0;
};

template <class Edge>
class ExternalSort {
 public:
  // Keeps at most `capacity` edges in memory, and scratch space of the same size for sorting. The
  // runs are written to the file `path`.
  ExternalSort(std::string path, int64_t capacity);
  ~ExternalSort();
  ExternalSort(const ExternalSort&) = delete;
  ExternalSort& operator=(const ExternalSort&) = delete;

  int64_t room() const { return capacity_ - held_; }
  int64_t held() const { return held_; }
  // Returns room for `count` further edges, which the caller fills. `count` is at most room().
  Edge* take(int64_t count);
  // Sorts the edges held in memory, appends them to the file as a run, and returns the run.
  SortedRun spill();
  // Adopts a run that an earlier process wrote. To be called before any other function. Returns
  // false if the file does not hold the whole run; the caller must then add the edges of this run
  // and of all later ones again.
  bool adopt(const SortedRun& run);
  // Says that there are no more edges. The edges held in memory become the last run, which stays in
  // memory.
  void finish();

  int64_t size() const;  // number of edges in all runs
  int64_t num_runs() const { return static_cast<int64_t>(runs_.size()); }

  // Cuts [0, end) into consecutive ranges of keys. Each range holds about `about` edges, unless
  // many keys are equal, and keys of at most `widest` destinations.
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
    std::vector<int64_t> first;  // position in each run
    std::vector<int64_t> last;
    int64_t count = 0;
  };
  std::vector<Range> ranges(int64_t about, int64_t widest, uint64_t end) const;
  // Reads the edges of a range, sorted by key; edges with equal keys are in the order in which they
  // were added. Several threads may call this function at once.
  void read(const Range& range, std::vector<Edge>& edges, std::vector<Edge>& scratch) const;

 private:
  struct Part {
    int64_t offset = -1;  // position in the file, or -1 for a run in memory
    int64_t count = 0;
    std::vector<uint64_t> samples;  // key of every kSample-th edge
  };
  static constexpr int64_t kSample = 1024;

  void read_at(const Part& part, int64_t first, int64_t count, Edge* to) const;
  int64_t lower_bound(const Part& part, uint64_t key) const;

  std::string path_;
  int fd_ = -1;
  int64_t end_ = 0;  // where the runs in the file end
  int64_t capacity_ = 0;
  int64_t held_ = 0;
  Buffer<Edge> edges_;
  Buffer<Edge> scratch_;
  std::vector<Part> runs_;
};

extern template class ExternalSort<PlainEdge>;
extern template class ExternalSort<RichEdge>;

}  // namespace nacre
