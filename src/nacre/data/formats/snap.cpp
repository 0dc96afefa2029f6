// Edge lists whose ids may be of any size and sparse: they are renumbered in their own order.
#include <algorithm>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/node_data.h"
#include "nacre/data/text.h"

namespace nacre {

// Only when asked for: files beside the edges name vertices by the ids in the file, so "edges" keeps them.
std::string recognise_snap(const Place&) { return ""; }

Dataset load_snap(const Place& place, const std::string&, const LoadOptions&) {
  std::vector<int64_t> ends;  // source and destination in turn
  const std::string& name = place.file()->name();
  for_each_line(place.file(), [&](std::string_view line, int64_t number) {
    const char* end = line.data() + line.size();
    const char* p = skip_blanks(line.data(), end);
    if (p == end || is_comment(p, end)) return;
    const std::vector<std::string_view> fields = split_fields(line);
    if (fields.size() < 2) throw_at_line(name, number, "has one column; an edge is 'src dst'");
    for (size_t i = 0; i < 2; ++i) {
      int64_t id = 0;
      if (!parse_whole(fields[i], id)) throw_at_line(name, number, in_quotes(fields[i]) + " is not a vertex id");
      ends.push_back(id);
    }
  });
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
