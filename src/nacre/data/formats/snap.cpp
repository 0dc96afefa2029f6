// Edge lists whose ids may be of any size and sparse: they are renumbered in their own order.
#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/node_data.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

// What one piece of the text holds: source and destination in turn.
struct Part {
  std::vector<int64_t> ends;
  int64_t lines = 0;
  int64_t error_line = -1;
  std::string error;
};

Part parse(std::string_view text, bool at_file_begin) {
  Part part;
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p != end; ++part.lines) {
    const char* line_end = find_line_end(p, end);
    const char* field = skip_blanks(p, line_end);
    p = line_end == end ? end : line_end + 1;
    if (field == line_end || is_comment(field, line_end)) continue;
    // Names of the columns, where somebody has taken the # away.
    if (at_file_begin && part.ends.empty() && names_columns({field, static_cast<size_t>(line_end - field)})) continue;
    for (int i = 0; i < 2; ++i) {
      int64_t id = 0;
      const char* begin = field;
      const auto [next, error] = std::from_chars(field, line_end, id);
      field = next;
      const After after = error == std::errc() ? after_field(field, line_end) : After::garbage;
      if (after == After::garbage || (after == After::line_end && i == 0)) {
        part.error_line = part.lines;
        part.error = after == After::garbage ? shown_field(begin, line_end) + " is not a vertex id"
                                             : "has one column; an edge is 'src dst'";
        return part;
      }
      part.ends.push_back(id);
    }
  }
  return part;
}

std::vector<int64_t> read_ends(const std::shared_ptr<const MappedFile>& file) {
  std::vector<int64_t> ends;
  TextBlocks blocks(file);
  int64_t lines = 0;
  for (std::string_view block = blocks.next(); !block.empty(); block = blocks.next()) {
    const std::vector<std::string_view> pieces = split_at_lines(block);
    std::vector<Part> parts(pieces.size());
    parallel_tasks(static_cast<int64_t>(pieces.size()),
                   [&](int64_t i) { parts[i] = parse(pieces[i], i == 0 && lines == 0); });
    for (const Part& part : parts) {
      if (part.error_line >= 0) throw_at_line(file->name(), lines + part.error_line + 1, part.error);
      lines += part.lines;
      ends.insert(ends.end(), part.ends.begin(), part.ends.end());
    }
  }
  return ends;
}

}  // namespace

// Only when asked for: files beside the edges name vertices by the ids in the file, so "edges" keeps them.
std::string recognise_snap(const Place&) { return ""; }

Dataset load_snap(const Place& place, const std::string&, const LoadOptions&) {
  const std::string& name = place.file()->name();
  const std::vector<int64_t> ends = read_ends(place.file());
  if (ends.empty()) throw UserError(name, "holds no edges", "is it an edge list?");
  std::vector<int64_t> ids = ends;
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (static_cast<int64_t>(ids.size()) > kMaxNodeId) throw UserError(name, "has more than 4,294,967,295 vertices");
  EdgeList edges;
  edges.num_nodes = static_cast<int64_t>(ids.size());
  edges.src.resize(ends.size() / 2);
  edges.dst.resize(ends.size() / 2);
  parallel_for(static_cast<int64_t>(edges.src.size()), 1 << 16, [&](int64_t b, int64_t e) {
    const auto rank = [&](int64_t id) {
      return static_cast<NodeId>(std::lower_bound(ids.begin(), ids.end(), id) - ids.begin());
    };
    for (int64_t i = b; i < e; ++i) {
      edges.src[i] = rank(ends[2 * i]);
      edges.dst[i] = rank(ends[2 * i + 1]);
    }
  });
  Dataset data;
  data.graph = build_graph(std::move(edges), name);
  if (ids.front() != 0 || ids.back() + 1 != static_cast<int64_t>(ids.size())) {
    data.notes.push_back("vertex ids " + std::to_string(ids.front()) + " to " + std::to_string(ids.back()) +
                         " were renumbered in order, 0 to " + std::to_string(ids.size() - 1));
    data.original_ids = std::move(ids);
  }
  return data;
}

}  // namespace nacre
