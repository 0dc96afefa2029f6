// RowReader: reads rows of files into seats, several pieces at a time, in the order of the file.
// Only one thread at a time may use an object.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "nacre/tier/read_queue.h"
#include "nacre/tier/row_file.h"
#include "nacre/tier/row_planner.h"

namespace nacre {

// Seats is the memory that rows from disk are read into. It is divided into seats of one row each:
// the row in seat s begins at memory + s · row_bytes.
struct Seats {
  std::shared_ptr<char> memory;
  int64_t row_bytes = 0;

  char* at(int32_t seat) const { return memory.get() + seat * row_bytes; }
};

struct ReadCounts {
  int64_t reads = 0;
  int64_t pages = 0;
  int64_t bytes = 0;
};

constexpr int kReadDepth = 32;

// Reads rows on the calling thread and writes each to `to` + seat · stride. At most `depth` reads
// are under way. Throws a ReadFailure if a read fails.
ReadCounts read_rows(const RowFile& file, std::vector<RowFetch> fetches, void* to, int64_t stride,
                     int depth = kReadDepth);
// Reads row ids[i] as if its seat were i.
ReadCounts read_rows(const RowFile& file, std::span<const NodeId> ids, void* to, int64_t stride,
                     int depth = kReadDepth);

class RowReader {
 public:
  // Returns the bytes of memory that `depth` reads under way need.
  static int64_t buffer_bytes(int depth);

  RowReader(std::unique_ptr<ReadQueue> queue, Seats seats);
  ~RowReader();
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  // Adds a list of rows in ascending order, with their seats. Rows are numbered as `layout` says,
  // which need not be the layout of the whole file. `file` must outlive the reads.
  void add(int64_t list, const RowFile& file, const RowLayout& layout, std::vector<RowFetch> fetches);
  // Returns whether a piece of a list that was added has not been read yet.
  bool busy() const { return !lists_.empty(); }
  // Starts as many reads as can be under way, and waits for at least one of them. Appends the lists
  // that are complete to `done`, in the order in which they were added. busy() must be true. Throws
  // a ReadFailure if a read fails.
  void work(std::vector<int64_t>& done);
  // Returns the bytes of a list of `fetches` rows of which no two lie on one page.
  static int64_t list_bytes(int64_t fetches) {
    return fetches * static_cast<int64_t>(sizeof(RowFetch) + sizeof(Piece));
  }
  // Drops the lists that were added, and waits for the reads under way.
  void stop();
  const ReadCounts& counts() const { return counts_; }
  std::string method() const { return queue_->name(); }

 private:
  struct Piece {
    int64_t offset;
    int32_t bytes;
    uint32_t first, last;  // the piece has bytes of the fetches [first, last)
  };
  struct List {
    int64_t number;
    const RowFile* file;
    RowLayout layout;
    std::vector<RowFetch> fetches;
    std::vector<Piece> pieces;
    size_t started = 0, left = 0;
  };
  struct Buffer {
    List* list = nullptr;
    size_t piece = 0;
  };
  static std::vector<Piece> cut(const RowLayout& layout, const std::vector<RowFetch>& fetches);
  void start_reads();
  void take(const ReadResult& result);

  std::unique_ptr<ReadQueue> queue_;
  Seats seats_;
  std::shared_ptr<char> memory_;
  std::vector<Buffer> buffers_;  // buffers of reads, by the tag of the read
  std::vector<uint64_t> free_;
  size_t under_way_ = 0;  // number of reads that are under way
  std::deque<List> lists_;
  size_t next_ = 0;  // position of the first list that has pieces to start
  std::vector<FileRead> starting_;
  std::vector<ReadResult> results_;
  ReadCounts counts_;
};

}  // namespace nacre
