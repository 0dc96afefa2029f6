#include "nacre/tier/row_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nacre {
namespace {

// Neighbouring pages are read together, up to this many bytes.
constexpr int64_t kPieceBytes = 16 << 10;

}  // namespace

int64_t RowReader::buffer_bytes(int depth) { return depth * kPieceBytes; }

RowReader::RowReader(std::unique_ptr<ReadQueue> queue, Seats seats)
    : queue_(std::move(queue)), seats_(std::move(seats)) {
  const auto depth = static_cast<size_t>(queue_->depth());
  memory_ = page_memory(buffer_bytes(queue_->depth()));
  buffers_.resize(depth);
  results_.resize(depth);
  for (size_t i = depth; i-- > 0;) free_.push_back(i);
}

RowReader::~RowReader() { stop(); }

// Cuts the pages that hold the rows into pieces of neighbouring pages and returns the pieces. No
// page is in two pieces.
std::vector<RowReader::Piece> RowReader::cut(const RowLayout& layout, const std::vector<RowFetch>& fetches) {
  std::vector<Piece> pieces;
  const int64_t most = std::max<int64_t>(1, kPieceBytes / layout.page);
  for (size_t i = 0; i < fetches.size();) {
    int64_t page = layout.first_page(fetches[i].row);
    int64_t end = layout.last_page(fetches[i].row) + 1;
    size_t last = i + 1;
    for (; last < fetches.size() && layout.first_page(fetches[last].row) <= end; ++last)
      end = std::max(end, layout.last_page(fetches[last].row) + 1);
    for (; page < end; page += most) {
      const int64_t stop = std::min(page + most, end) * layout.page;
      while (layout.end(fetches[i].row) <= page * layout.page) ++i;
      size_t past = i;
      while (past < last && layout.begin(fetches[past].row) < stop) ++past;
      pieces.push_back({page * layout.page, static_cast<int32_t>(stop - page * layout.page), static_cast<uint32_t>(i),
                        static_cast<uint32_t>(past)});
    }
    i = last;
  }
  return pieces;
}

void RowReader::add(int64_t list, const RowFile& file, const RowLayout& layout, std::vector<RowFetch> fetches) {
  List added{list, &file, layout, std::move(fetches), {}, 0, 0};
  added.pieces = cut(layout, added.fetches);
  added.left = added.pieces.size();
  lists_.push_back(std::move(added));
}

void RowReader::start_reads() {
  starting_.clear();
  while (!free_.empty() && next_ < lists_.size()) {
    List& list = lists_[next_];
    if (list.started == list.pieces.size()) {
      ++next_;
      continue;
    }
    const uint64_t tag = free_.back();
    free_.pop_back();
    const Piece& piece = list.pieces[list.started];
    buffers_[tag] = {&list, list.started++};
    starting_.push_back({list.file->descriptor(), piece.offset, piece.bytes,
                         memory_.get() + static_cast<int64_t>(tag) * kPieceBytes, tag});
  }
  if (starting_.empty()) return;
  under_way_ += starting_.size();
  queue_->submit(starting_);
}

// Copies the rows of a piece to their seats.
void RowReader::take(const ReadResult& result) {
  const Buffer buffer = buffers_[result.tag];
  free_.push_back(result.tag);
  List& list = *buffer.list;
  const Piece& piece = list.pieces[buffer.piece];
  const int64_t expected = std::min<int64_t>(piece.bytes, list.file->size() - piece.offset);
  if (result.error != 0 || result.bytes < expected) list.file->fail(result.error);
  counts_.reads += 1;
  counts_.pages += piece.bytes / list.layout.page;
  counts_.bytes += result.bytes;
  const char* from = memory_.get() + static_cast<int64_t>(result.tag) * kPieceBytes;
  for (size_t i = piece.first; i < piece.last; ++i) {
    const RowFetch& fetch = list.fetches[i];
    const int64_t row = list.layout.begin(fetch.row);
    const int64_t begin = std::max(row, piece.offset);
    const int64_t end = std::min(list.layout.end(fetch.row), piece.offset + piece.bytes);
    std::memcpy(seats_.at(fetch.seat) + (begin - row), from + (begin - piece.offset), static_cast<size_t>(end - begin));
  }
  --list.left;
}

void RowReader::work(std::vector<int64_t>& done) {
  start_reads();
  if (under_way_ > 0) {
    const size_t count = queue_->collect(results_);
    under_way_ -= count;
    for (size_t i = 0; i < count; ++i) take(results_[i]);
  }
  while (!lists_.empty() && lists_.front().left == 0) {
    done.push_back(lists_.front().number);
    lists_.pop_front();
    next_ -= std::min<size_t>(next_, 1);
  }
  start_reads();
}

void RowReader::stop() {
  while (under_way_ > 0) under_way_ -= queue_->collect(results_);
  free_.clear();
  for (size_t i = buffers_.size(); i-- > 0;) free_.push_back(i);
  lists_.clear();
  next_ = 0;
}

ReadCounts read_rows(const RowFile& file, std::vector<RowFetch> fetches, void* to, int64_t stride, int depth) {
  if (fetches.empty()) return {};
  std::sort(fetches.begin(), fetches.end(), [](const RowFetch& a, const RowFetch& b) { return a.row < b.row; });
  // The memory belongs to the caller, so this pointer must not free it.
  const std::shared_ptr<char> memory(std::shared_ptr<void>(), static_cast<char*>(to));
  RowReader reader(make_read_queue(depth), {memory, stride});
  reader.add(0, file, file.layout(), std::move(fetches));
  std::vector<int64_t> done;
  while (reader.busy()) reader.work(done);
  return reader.counts();
}

ReadCounts read_rows(const RowFile& file, std::span<const NodeId> ids, void* to, int64_t stride, int depth) {
  std::vector<RowFetch> fetches;
  fetches.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) fetches.push_back({ids[i], static_cast<int32_t>(i)});
  return read_rows(file, std::move(fetches), to, stride, depth);
}

}  // namespace nacre
