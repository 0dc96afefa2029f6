#include "nacre/engine/gpu/row_cut.h"

#include <algorithm>
#include <numeric>

namespace nacre {
namespace {

using cuda::reduction::Segment;

// Returns the first number of each block but the first, in the order of the whole graph.
std::vector<int64_t> block_begins(const SourceBlocks& sources) {
  std::vector<int64_t> numbers(static_cast<size_t>(sources.vertices));
  for (int64_t v = 0; v < sources.vertices; ++v) numbers[v] = sources.ids[v];
  std::sort(numbers.begin(), numbers.end());
  std::vector<int64_t> begins;
  for (int b = 1; b < sources.blocks; ++b) {
    const int64_t at = sources.vertices * b / sources.blocks;
    begins.push_back(at < sources.vertices ? numbers[at] : INT64_MAX);
  }
  return begins;
}

class SourceCut {
 public:
  SourceCut(const cpu::RowView& view, const SourceBlocks& sources, int64_t longest)
      : view_(view), ids_(sources.ids), longest_(longest), begins_(block_begins(sources)), lists_(begins_.size() + 1) {}

  RowCut run(const RowSpan& rows) {
    for (int64_t row = rows.begin; row < rows.end; ++row) add(row);
    for (const std::vector<Segment>& list : lists_) cut_.segments.insert(cut_.segments.end(), list.begin(), list.end());
    return std::move(cut_);
  }

 private:
  struct Piece {
    size_t block;
    int64_t begin, end;
  };

  void add(int64_t row) {
    pieces_.clear();
    int64_t begin = view_.row_ptr[row];
    const int64_t end = view_.row_ptr[row + 1];
    for (size_t b = 0; b <= begins_.size(); ++b) {
      const NodeId* next = view_.col + end;
      if (b < begins_.size()) {
        next = std::partition_point(view_.col + begin, view_.col + end,
                                    [&](NodeId source) { return ids_[source] < begins_[b]; });
      }
      add_pieces(b, begin, next - view_.col);
      begin = next - view_.col;
    }
    if (pieces_.empty()) pieces_.push_back({0, begin, begin});
    const bool whole = pieces_.size() == 1;
    const auto split = static_cast<int32_t>(cut_.split.size()), first = static_cast<int32_t>(cut_.partials);
    for (size_t p = 0; p < pieces_.size(); ++p) {
      lists_[pieces_[p].block].push_back({static_cast<uint32_t>(row), whole ? -1 : first + static_cast<int32_t>(p),
                                          whole ? -1 : split, 0, pieces_[p].begin, pieces_[p].end});
    }
    if (whole) return;
    const auto count = static_cast<int32_t>(pieces_.size());
    cut_.split.push_back({first, count, static_cast<int32_t>(end - view_.row_ptr[row]), 0});
    cut_.partials += count;
  }

  void add_pieces(size_t block, int64_t begin, int64_t end) {
    const int64_t pieces = (end - begin + longest_ - 1) / longest_;
    for (int64_t p = 0; p < pieces; ++p)
      pieces_.push_back({block, begin + (end - begin) * p / pieces, begin + (end - begin) * (p + 1) / pieces});
  }

  const cpu::RowView& view_;
  RowIds ids_;
  int64_t longest_;
  std::vector<int64_t> begins_;
  std::vector<std::vector<Segment>> lists_;  // the segments of each block
  std::vector<Piece> pieces_;                // the pieces of the row that is being added
  RowCut cut_;
};

}  // namespace

RowCut cut_rows(const std::vector<GpuRows::Long>& rows, int64_t longest) {
  RowCut cut;
  for (const auto& [row, begin, length] : rows) {
    const int64_t pieces = (length + longest - 1) / longest;
    for (int64_t p = 0; p < pieces; ++p) {
      cut.segments.push_back({static_cast<uint32_t>(row), static_cast<int32_t>(cut.partials + p),
                              static_cast<int32_t>(cut.split.size()), 0, begin + length * p / pieces,
                              begin + length * (p + 1) / pieces});
    }
    cut.split.push_back(
        {static_cast<int32_t>(cut.partials), static_cast<int32_t>(pieces), static_cast<int32_t>(length), 0});
    cut.partials += pieces;
  }
  return cut;
}

RowCut cut_by_sources(const cpu::RowView& view, const SourceBlocks& sources, int64_t longest, const RowSpan& rows) {
  return SourceCut(view, sources, longest).run(rows.of(view.rows));
}

}  // namespace nacre
