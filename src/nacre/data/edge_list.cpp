#include "nacre/data/edge_list.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/data/node_data.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

enum class Column { src, dst, weight, type, ignored };
using Columns = std::vector<Column>;

struct Part {
  std::vector<NodeId> src;
  std::vector<NodeId> dst;
  std::vector<float> weight;
  std::vector<uint16_t> type;
  int64_t lines = 0;
  int64_t error_line = -1;
  std::string error;
};

class PieceParser {
 public:
  explicit PieceParser(const Columns& columns) : columns_(columns) {}

  Part parse(std::string_view text) const {
    Part part;
    const size_t guess = text.size() / 8 + 1;
    part.src.reserve(guess);
    part.dst.reserve(guess);
    const char* end = text.data() + text.size();
    for (const char* p = text.data(); p != end; ++part.lines) {
      p = skip_blanks(p, end);
      if (is_comment(p, end)) {
        p = find_line_end(p, end);
      } else if (!at_line_end(p, end)) {
        if (!edge(p, end, part)) {
          part.error_line = part.lines;
          return part;
        }
      }
      if (p != end) ++p;
    }
    return part;
  }

 private:
  bool edge(const char*& p, const char* end, Part& part) const {
    const size_t last = columns_.size() - 1;
    for (size_t c = 0; c <= last; ++c) {
      const char* field = p;
      if (!value(columns_[c], p, end, part)) {
        part.error = why(columns_[c], field, end);
        return false;
      }
      const After after = after_field(p, end);
      if (after == After::garbage) {
        part.error = why(columns_[c], field, end);
        return false;
      }
      if ((after == After::field) != (c < last)) {
        part.error = "does not have " + std::to_string(columns_.size()) + " columns like the first edge";
        return false;
      }
    }
    return true;
  }

  static bool value(Column column, const char*& p, const char* end, Part& part) {
    switch (column) {
      case Column::src:
        return id(p, end, part.src);
      case Column::dst:
        return id(p, end, part.dst);
      case Column::weight:
        return weight(p, end, part.weight);
      case Column::type:
        return type(p, end, part.type);
      case Column::ignored:
        while (!at_line_end(p, end) && !is_blank(*p) && *p != ',' && *p != ';') ++p;
        return true;
    }
    return false;
  }

  static bool id(const char*& p, const char* end, std::vector<NodeId>& out) {
    const char* begin = p;
    uint64_t value = 0;
    for (; p != end && static_cast<unsigned char>(*p - '0') < 10; ++p) {
      value = value * 10 + static_cast<uint64_t>(*p - '0');
      if (value > kMaxNodeId) return false;
    }
    out.push_back(static_cast<NodeId>(value));
    return p != begin;
  }

  static bool weight(const char*& p, const char* end, std::vector<float>& out) {
    double value = 0;
    const auto [next, error] = std::from_chars(p, end, value);
    if (error == std::errc::invalid_argument || !(std::abs(value) <= std::numeric_limits<float>::max())) return false;
    p = next;
    out.push_back(static_cast<float>(value));
    return true;
  }

  static bool type(const char*& p, const char* end, std::vector<uint16_t>& out) {
    uint32_t value = 0;
    const auto [next, error] = std::from_chars(p, end, value);
    if (error != std::errc() || value >= kMaxEdgeTypes) return false;
    p = next;
    out.push_back(static_cast<uint16_t>(value));
    return true;
  }

  static std::string why(Column column, const char* field, const char* end) {
    const std::string shown = shown_field(field, end);
    if (column == Column::weight) return shown + " is not a finite edge weight";
    if (column == Column::type) return shown + " is not an edge type (0 to 65,534)";
    if (column == Column::ignored) return shown + " is followed by nothing";
    const bool digits = std::all_of(shown.begin() + 1, shown.end() - 1, [](char c) { return c >= '0' && c <= '9'; });
    if (shown.size() > 3 && shown[1] == '-') return shown + " is a negative vertex id";
    if (shown.size() > 10 && digits) return shown + " is beyond the largest vertex id, 4,294,967,294";
    return shown + " is not a vertex id";
  }

  const Columns& columns_;
};

Column column_named(std::string_view name) {
  std::string low;
  for (const char c : name) {
    if (c != '"' && c != '\'' && c != '_' && c != '-' && c != ':')
      low += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  const auto is_one_of = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), low) != names.end();
  };
  if (is_one_of({"src", "source", "from", "srcid", "sourceid", "fromnodeid", "fromid", "u", "head", "node1", "id1",
                 "startid"})) {
    return Column::src;
  }
  if (is_one_of({"dst", "dest", "target", "to", "dstid", "targetid", "tonodeid", "toid", "v", "tail", "node2", "id2",
                 "endid"})) {
    return Column::dst;
  }
  if (is_one_of({"weight", "w", "value", "edgeweight"})) return Column::weight;
  if (is_one_of({"type", "etype", "edgetype", "rel", "relation", "reltype"})) return Column::type;
  return Column::ignored;
}

class Reader {
 public:
  explicit Reader(const std::shared_ptr<const MappedFile>& file) : blocks_(file) {}

  EdgeList read() {
    for (std::string_view block = blocks_.next(); !block.empty(); block = blocks_.next()) {
      if (columns_.empty() && !begin(block)) continue;
      take(block);
    }
    return std::move(edges_);
  }

  std::vector<std::string> notes;

 private:
  bool begin(std::string_view& block) {
    if (block.starts_with("%%MatrixMarket")) {
      throw UserError(blocks_.name(), "is a Matrix Market file, whose ids begin at 1", "read it with --format mtx");
    }
    const FirstLine first = find_first_line(block);
    lines_ += first.lines_before;
    if (!first.found) return false;
    block.remove_prefix(first.begin);
    const std::vector<std::string_view> fields = split_fields(first.line);
    if (!names_columns(first.line)) {
      from_width(fields.size());
      return true;
    }
    from_names(fields);
    block.remove_prefix(std::min(block.size(), first.line.size() + 1));
    ++lines_;
    return true;
  }

  void from_width(size_t width) {
    if (width < 2 || width > 3) {
      throw_at_line(blocks_.name(), lines_ + 1,
                    "has " + std::to_string(width) + (width == 1 ? " column" : " columns") +
                        "; an edge is 'src dst' or 'src dst weight'",
                    "for other columns begin the file with a line of names, such as src,dst,weight,type");
    }
    columns_ = {Column::src, Column::dst};
    if (width == 3) {
      columns_.push_back(Column::weight);
      notes.emplace_back("the third column was read as edge weight");
    }
  }

  void from_names(const std::vector<std::string_view>& fields) {
    std::string ignored;
    for (const std::string_view field : fields) {
      const Column column = column_named(field);
      if (column == Column::ignored) {
        ignored += (ignored.empty() ? "" : ", ") + shown_field(field.data(), field.data() + field.size());
      } else if (std::find(columns_.begin(), columns_.end(), column) != columns_.end()) {
        throw_at_line(blocks_.name(), lines_ + 1, "two columns are called alike", "use src,dst[,weight][,type]");
      }
      columns_.push_back(column);
    }
    const auto missing = [&](Column c) { return std::find(columns_.begin(), columns_.end(), c) == columns_.end(); };
    if (missing(Column::src) || missing(Column::dst)) {
      throw_at_line(blocks_.name(), lines_ + 1,
                    shown_field(fields[0].data(), fields[0].data() + fields[0].size()) +
                        " is neither a vertex id nor the name of a column",
                    "use numbers, or name the columns src,dst[,weight][,type]");
    }
    if (!ignored.empty()) notes.push_back("columns that were not used: " + ignored);
  }

  void take(std::string_view block) {
    const std::vector<std::string_view> pieces = split_at_lines(block);
    std::vector<Part> parts(pieces.size());
    const PieceParser parser(columns_);
    parallel_tasks(static_cast<int64_t>(pieces.size()), [&](int64_t i) { parts[i] = parser.parse(pieces[i]); });
    for (const Part& part : parts) {
      if (part.error_line >= 0) {
        throw_at_line(blocks_.name(), lines_ + part.error_line + 1, part.error,
                      "every line must be an edge: src dst [weight]");
      }
      lines_ += part.lines;
      append(edges_.src, part.src);
      append(edges_.dst, part.dst);
      append(edges_.weight, part.weight);
      append(edges_.type, part.type);
    }
    reserve_rest(block.size());
  }

  template <class T>
  static void append(std::vector<T>& to, const std::vector<T>& from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  // After the first block of a plain file: room for all edges at its density, so that vectors do not double later.
  void reserve_rest(size_t block_bytes) {
    const auto total = static_cast<double>(blocks_.total_bytes());
    if (reserved_ || total <= static_cast<double>(block_bytes) || block_bytes == 0) return;
    reserved_ = true;
    const auto count =
        static_cast<size_t>(static_cast<double>(edges_.src.size()) * total / static_cast<double>(block_bytes) * 1.02);
    edges_.src.reserve(count);
    edges_.dst.reserve(count);
    if (!edges_.weight.empty()) edges_.weight.reserve(count);
    if (!edges_.type.empty()) edges_.type.reserve(count);
  }

  TextBlocks blocks_;
  Columns columns_;
  EdgeList edges_;
  int64_t lines_ = 0;
  bool reserved_ = false;
};

int64_t count_unused(const Graph& graph) {
  std::vector<char> used(static_cast<size_t>(graph.num_nodes()), 0);
  for (const NodeId source : graph.col_idx()) used[source] = 1;
  int64_t unused = 0;
  for (int64_t v = 0; v < graph.num_nodes(); ++v) unused += used[v] == 0 && graph.in_degree(v) == 0 ? 1 : 0;
  return unused;
}

}  // namespace

EdgeList read_edge_text(const std::shared_ptr<const MappedFile>& file, std::vector<std::string>& notes) {
  Reader reader(file);
  EdgeList edges = reader.read();
  notes.insert(notes.end(), reader.notes.begin(), reader.notes.end());
  for (const uint16_t type : edges.type) edges.num_types = std::max(edges.num_types, type + 1);
  return edges;
}

Dataset read_edge_list(const std::shared_ptr<const MappedFile>& file, const LoadOptions& options) {
  Dataset data;
  EdgeList edges = read_edge_text(file, data.notes);
  const auto count = static_cast<int64_t>(edges.src.size());
  if (count == 0 && options.num_nodes == 0) {
    throw UserError(file->name(), "holds no edges",
                    "is it an edge list? state the number of vertices if it is meant so");
  }
  edges.num_nodes = options.num_nodes > 0 ? options.num_nodes : largest_id(edges) + 1;
  if (options.num_nodes == 0) check_vertex_count(edges.num_nodes, count, file->name());
  data.graph = build_graph(std::move(edges), file->name());
  if (options.num_nodes == 0) {
    const int64_t unused = count_unused(data.graph);
    if (unused > data.num_nodes() / 2) {
      data.notes.push_back(human_count(unused) + " of " + human_count(data.num_nodes()) +
                           " vertex ids are not used by any edge: --format snap renumbers them");
    }
  }
  return data;
}

}  // namespace nacre
