// These functions cut the rows of a reduction into pieces, on the host.
#pragma once

#include <vector>

#include "nacre/engine/gpu/context.h"
#include "nacre/kernel/blocks.h"
#include "nacre/kernel/cuda/rows.h"
#include "nacre/kernel/row_span.h"

namespace nacre {

// Holds the segments of a reduction in host memory.
struct RowCut {
  std::vector<cuda::reduction::Segment> segments;
  std::vector<cuda::reduction::SplitRow> split;
  int64_t partials = 0;
};

// Cuts the listed rows into pieces of at most `longest` entries.
RowCut cut_rows(const std::vector<GpuRows::Long>& rows, int64_t longest);

// Describes the vertices that the entries of rows name, divided into blocks of equally many
// vertices.
struct SourceBlocks {
  int64_t vertices = 0;
  RowIds ids;  // numbers of the vertices in the whole graph; the entries of each row come in the
               // order of these
  int blocks = 1;
};
// Cuts each of `rows` where its entries come to the next block, and further into pieces of at most
// `longest` entries. The segments of the first block come first, then those of the second block,
// and so on. Rows without entries are in the first block.
RowCut cut_by_sources(const cpu::RowView& view, const SourceBlocks& sources, int64_t longest, const RowSpan& rows = {});

}  // namespace nacre
