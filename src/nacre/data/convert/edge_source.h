// Edges of a file that is too large to hold. They are read block by block, and each block is parsed
// in parallel. Where blocks and parts end depends on the file alone, so that a conversion can
// continue where an earlier one stopped.
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

  // Replaces `parts` by those of the next block. Returns false at the end.
  virtual bool next(std::vector<EdgePart>& parts) = 0;
  // Skips the next block.
  virtual void skip() = 0;
  virtual bool ended() const = 0;  // whether next() would return false

  virtual bool weighted() const = 0;
  virtual bool typed() const = 0;
  virtual int64_t most_edges() const = 0;  // the file cannot hold more edges than this
  virtual double total_bytes() const = 0;  // 0 if unknown
  virtual double bytes_done() const = 0;
  virtual std::vector<std::string> notes() const { return {}; }
};

// Opens text, plain or gzipped, with lines of src dst [weight], or with columns named by the first
// line.
std::unique_ptr<EdgeSource> open_edge_text(const std::shared_ptr<const MappedFile>& file);
// Opens a NumPy array of whole numbers, [2, E] (sources, then destinations) or [E, 2].
std::unique_ptr<EdgeSource> open_edge_npy(const std::shared_ptr<const MappedFile>& file,
                                          PairLayout layout = PairLayout::guess);
// Opens a NumPy array of edges that is a member of an archive, and inflates it if necessary. The
// array is read front to back in bounded memory.
std::unique_ptr<EdgeSource> open_edge_npz(const NpzFile& npz, const std::string& key, PairLayout layout);

}  // namespace nacre
