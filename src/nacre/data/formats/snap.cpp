// Edge lists whose ids may be huge and sparse. Nodes are renumbered in the order of their ids.
#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/node_data.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

// The content of one piece of the text: sources and destinations in turn.
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
    // A first line of column names is skipped, although it does not begin with #.
    if (at_file_begin && part.ends.empty() && names_columns({field, static_cast<size_t>(line_end - field)})) continue;
    for (int i = 0; i < 2; ++i) {
      int64_t id = 0;
      const char* begin = field;
      const auto [next, error] = std::from_chars(field, line_end, id);
      field = next;
      const After after = error == std::errc() ? after_field(field, line_end) : After::garbage;
      if (after == After::garbage || (after == After::line_end && i == 0)) {
        part.error_line = part.lines;
        part.error = after == After::garbage ? shown_field(begin, line_end) + " is not a node id"
                                             : "has one column; an edge is 'src dst'";
        return part;
      }
      part.ends.push_back(id);
    }
  }
  return part;
}

// Gives numbers to ids in the order of their appearance. It uses open addressing, because there may
// be hundreds of millions of ids.
class IdTable {
 public:
  const std::vector<int64_t>& ids() const { return ids_; }

  NodeId number(int64_t id) {
    if (2 * ids_.size() >= buckets_.size()) grow();
    NodeId& bucket = buckets_[find(id)];
    if (bucket == kFree) {
      bucket = static_cast<NodeId>(ids_.size());
      ids_.push_back(id);
    }
    return bucket;
  }

 private:
  static constexpr NodeId kFree = 0xFFFFFFFF;

  // Returns the bucket of the id, or the bucket where it belongs.
  size_t find(int64_t id) const {
    const size_t mask = buckets_.size() - 1;
    size_t at = mix_key(0, static_cast<uint64_t>(id)) & mask;
    while (buckets_[at] != kFree && ids_[buckets_[at]] != id) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    buckets_.assign(std::max<size_t>(1024, 2 * buckets_.size()), kFree);
    for (size_t i = 0; i < ids_.size(); ++i) buckets_[find(ids_[i])] = static_cast<NodeId>(i);
  }

  std::vector<int64_t> ids_;
  std::vector<NodeId> buckets_;  // the size is a power of two
};

EdgeList read_edges(const std::shared_ptr<const MappedFile>& file, IdTable& table) {
  EdgeList edges;
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
      if (static_cast<int64_t>(table.ids().size() + part.ends.size()) > kMaxNodeId)
        throw_at_line(file->name(), lines, "names more than 4,294,967,295 nodes");
      for (size_t i = 0; i < part.ends.size(); i += 2) {
        edges.src.push_back(table.number(part.ends[i]));
        edges.dst.push_back(table.number(part.ends[i + 1]));
      }
    }
  }
  return edges;
}

// Recognises nothing, so this format is used only when asked for: files beside the edges name
// vertices by the ids in the file, so the default is "edges", which keeps the ids.
std::string recognise_snap(const DataSource&) { return ""; }

Dataset load_snap(const DataSource& source, const std::string&, const LoadOptions&) {
  const std::string& name = source.file()->name();
  IdTable table;
  EdgeList edges = read_edges(source.file(), table);
  if (edges.src.empty())
    throw UserError(name + " at byte " + std::to_string(source.file()->size()), "ends without an edge",
                    "check that it is an edge list");
  std::vector<int64_t> ids = table.ids();
  std::sort(ids.begin(), ids.end());
  std::vector<NodeId> rank(ids.size());  // rank by value of the ids in order of appearance
  parallel_for(static_cast<int64_t>(ids.size()), 1 << 14, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i)
      rank[i] = static_cast<NodeId>(std::lower_bound(ids.begin(), ids.end(), table.ids()[i]) - ids.begin());
  });
  edges.num_nodes = static_cast<int64_t>(ids.size());
  parallel_for(static_cast<int64_t>(edges.src.size()), 1 << 16, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      edges.src[i] = rank[edges.src[i]];
      edges.dst[i] = rank[edges.dst[i]];
    }
  });
  Dataset data;
  data.graph = build_graph(std::move(edges), name);
  if (ids.front() != 0 || ids.back() + 1 != static_cast<int64_t>(ids.size())) {
    data.notes.push_back("node ids " + std::to_string(ids.front()) + " to " + std::to_string(ids.back()) +
                         " were renumbered in order, 0 to " + std::to_string(ids.size() - 1));
    data.original_ids = std::move(ids);
  }
  return data;
}

}  // namespace

std::vector<Format> formats_in_snap() {
  return {{"snap", "text edge list, ids of any size renumbered; .gz too", recognise_snap, load_snap}};
}

}  // namespace nacre
