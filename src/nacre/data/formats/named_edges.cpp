// Edge lists whose ids are words: "alice bob", or a table whose first line names its columns. Nodes
// are numbered in the order in which they appear, and their words are kept as names.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/warnings.h"
#include "nacre/data/edge_columns.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/named_lines.h"
#include "nacre/data/node_data.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

using Columns = std::vector<EdgeColumn>;

bool has(const Columns& columns, EdgeColumn column) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

// Returns the columns that a first line names, or nothing if the line is an edge.
Columns named_columns(const std::vector<std::string>& line) {
  Columns columns;
  for (const std::string& name : line) columns.push_back(edge_column_named(name));
  return has(columns, EdgeColumn::src) && has(columns, EdgeColumn::dst) ? columns : Columns();
}

// Returns true if the field begins with a word that no edge list of numbers could hold in the place
// of an id. Only the part before the first blank counts: numbers may be separated by tabs and
// blanks in one line.
bool is_word(const std::string& field) {
  const auto end = std::find(field.begin(), field.end(), ' ');
  return !std::all_of(field.begin(), end, [](char c) { return (c >= '0' && c <= '9') || c == '.' || c == '-'; });
}

class NamedEdges {
 public:
  explicit NamedEdges(const std::shared_ptr<const MappedFile>& file) : file_(file->name()) {
    for_each_named_line(file, [&](const std::vector<std::string>& line, int64_t number) { take(line, number); });
  }

  EdgeList edges;
  WordIds names;
  bool unnamed_weight = false;  // whether the third column was only assumed to be the weight

 private:
  void take(const std::vector<std::string>& line, int64_t number) {
    if (columns_.empty() && begin(line, number)) return;
    if (line.size() != columns_.size()) {
      throw_at_line(
          file_, number,
          "has " + std::to_string(line.size()) + " columns, the first line has " + std::to_string(columns_.size()),
          "put names that hold blanks or commas in double quotes");
    }
    for (size_t i = 0; i < line.size(); ++i) {
      if (columns_[i] == EdgeColumn::src) edges.src.push_back(node(line[i], number));
      if (columns_[i] == EdgeColumn::dst) edges.dst.push_back(node(line[i], number));
      if (columns_[i] == EdgeColumn::weight) edges.weight.push_back(weight(line[i], number));
      if (columns_[i] == EdgeColumn::type) edges.type.push_back(type(line[i], number));
    }
  }

  // Handles the first line. Returns true if it only names the columns.
  bool begin(const std::vector<std::string>& line, int64_t number) {
    columns_ = named_columns(line);
    if (!columns_.empty()) {
      for (const EdgeColumn column : columns_) {
        if (column != EdgeColumn::ignored && std::count(columns_.begin(), columns_.end(), column) > 1)
          throw_at_line(file_, number, "two columns have the same role", "use src,dst[,weight][,type]");
      }
      return true;
    }
    if (line.size() < 2 || line.size() > 3) {
      throw_at_line(file_, number,
                    "has " + std::to_string(line.size()) + (line.size() == 1 ? " column" : " columns") +
                        "; an edge is 'src dst' or 'src dst weight'",
                    "for other columns begin the file with a line of names, such as src,dst,weight,type");
    }
    columns_ = {EdgeColumn::src, EdgeColumn::dst};
    if (line.size() == 3) columns_.push_back(EdgeColumn::weight);
    unnamed_weight = line.size() == 3;
    return false;
  }

  NodeId node(const std::string& name, int64_t number) {
    if (name.empty()) throw_at_line(file_, number, "has an empty name of a node");
    if (names.size() >= kMaxNodeId) throw_at_line(file_, number, "names more nodes than 32 bits can count");
    return static_cast<NodeId>(names.add(name));
  }

  float weight(const std::string& text, int64_t number) const {
    float value = 0;
    if (!parse_real(text, value)) {
      throw_at_line(file_, number, in_quotes(text) + " is not a finite edge weight",
                    "the third column is the weight unless the first line names the columns, such as src,dst,weight");
    }
    return value;
  }

  uint16_t type(const std::string& text, int64_t number) {
    int64_t value = 0;
    if (!parse_whole(text, value) || value < 0 || value >= kMaxEdgeTypes)
      throw_at_line(file_, number, in_quotes(text) + " is not an edge type (0 to 65,534)");
    edges.num_types = std::max(edges.num_types, static_cast<int>(value) + 1);
    return static_cast<uint16_t>(value);
  }

  std::string file_;
  Columns columns_;
};

}  // namespace

bool has_word_ids(const std::shared_ptr<const MappedFile>& file) {
  const auto lines = first_named_lines(file, 2);
  if (lines.empty() || lines[0].size() < 2) return false;
  const Columns columns = named_columns(lines[0]);
  // Without known names of columns, a line of two or three fields is an edge between words if a
  // word is among the first two. But if the second line names nodes by numbers, the first one holds
  // unknown names of columns.
  if (columns.empty()) {
    const auto names_nodes = [](const std::vector<std::string>& line) {
      return std::any_of(line.begin(), line.begin() + std::min<int64_t>(2, std::ssize(line)), is_word);
    };
    return lines[0].size() <= 3 && std::all_of(lines.begin(), lines.end(), names_nodes);
  }
  if (lines.size() < 2 || lines[1].size() != columns.size()) return false;
  for (size_t i = 0; i < columns.size(); ++i) {
    if ((columns[i] == EdgeColumn::src || columns[i] == EdgeColumn::dst) && is_word(lines[1][i])) return true;
  }
  return false;
}

// Recognises nothing, so this format is used only when asked for; the format "edges" looks for
// words itself.
static std::string recognise_names(const DataSource&) { return ""; }

Dataset load_names(const DataSource& source, const std::string&, const LoadOptions&) {
  NamedEdges read(source.file());
  const std::string& name = source.file()->name();
  if (read.edges.src.empty()) throw UserError(name, "ends without an edge", "check that it is an edge list");
  Dataset data;
  read.edges.num_nodes = read.names.size();
  data.graph = build_graph(std::move(read.edges), name);
  data.origins.graph = {name, "edge"};
  data.node_names = std::move(read.names).take_words();
  data.notes.push_back("the ids of the " + human_count(data.num_nodes()) +
                       " nodes are words: they are numbered in the order in which they appear");
  if (read.unnamed_weight) data.notes.push_back(std::string(kWarningNote) + "the third column was read as edge weight");
  return data;
}

std::vector<Format> formats_in_named_edges() {
  return {{"names", "text edge list, ids are words; .gz too", recognise_names, load_names}};
}

}  // namespace nacre
