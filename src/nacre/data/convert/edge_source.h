// Edges of a file too large to hold: read block by block, each parsed in parallel. Where blocks and parts end depends
// on the file alone, so that a conversion can go on where an earlier one stopped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/data/mapped_file.h"
#include "nacre/data/npy_edges.h"
#include "nacre/data/npz.h"
#include "nacre/graph/graph.h"

namespace nacre {

struct EdgePart {
  std::vector<NodeId> src;
  std::vector<NodeId> dst;
  std::vector<float> weight;   // empty, or one per edge
  std::vector<uint16_t> type;  // empty, or one per edge
};

class EdgeSource {
 public:
  EdgeSource() = default;
  virtual ~EdgeSource() = default;
  EdgeSource(const EdgeSource&) = delete;
  EdgeSource& operator=(const EdgeSource&) = delete;

  // Replaces `parts` by those of the next block; false at the end.
  virtual bool next(std::vector<EdgePart>& parts) = 0;
  // Passes over a block.
  virtual void skip() = 0;
  virtual bool ended() const = 0;  // next() would say false

  virtual bool weighted() const = 0;
  virtual bool typed() const = 0;
  virtual int64_t most_edges() const = 0;  // no more can be in the file
  virtual double total_bytes() const = 0;  // 0: unknown
  virtual double bytes_done() const = 0;
  virtual std::vector<std::string> notes() const { return {}; }
};

// Text, plain or gzipped: src dst [weight], or columns named by the first line.
std::unique_ptr<EdgeSource> open_edge_text(const std::shared_ptr<const MappedFile>& file);
// A NumPy array of whole numbers, [2, E] (sources, then destinations) or [E, 2].
std::unique_ptr<EdgeSource> open_edge_npy(const std::shared_ptr<const MappedFile>& file,
                                          PairLayout layout = PairLayout::guess);
// The same of a member of an archive, which may have to be inflated: front to back, in bounded memory.
std::unique_ptr<EdgeSource> open_edge_npz(const NpzFile& npz, const std::string& key, PairLayout layout);

}  // namespace nacre
