// Knowledge graphs: train.txt, valid.txt and test.txt with lines of "head relation tail", as names
// or as numbers. entities.dict and relations.dict ("number name") fix the numbering. Without them,
// names are numbered as they appear, and numbers are used as they are. Training triples make the
// graph; the others are held out.
#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/node_data.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

constexpr const char* kFiles[] = {"train.txt", "valid.txt", "test.txt"};

// Splits a line at tabs if it has any, because names may contain blanks; otherwise at blanks.
std::vector<std::string_view> fields_of(std::string_view line) {
  if (line.find('\t') == std::string_view::npos) return split_blanks(line);
  std::vector<std::string_view> fields = split_at(line, '\t');
  for (std::string_view& field : fields) field = trimmed(field);
  return fields;
}

bool all_whole(const std::vector<std::string_view>& fields) {
  int64_t value = 0;
  return std::all_of(fields.begin(), fields.end(),
                     [&](std::string_view f) { return parse_whole(f, value) && value >= 0; });
}

// Numbers entities or relations: by a dictionary, by appearance, or by their own numbers.
class Numbering {
 public:
  Numbering(const DataSource& source, const std::string& dictionary) {
    if (!source.has(dictionary)) return;
    fixed_ = true;
    const auto file = source.open(dictionary);
    for_each_line(file, [&](std::string_view line, int64_t number) {
      if (trimmed(line).empty()) return;
      const std::vector<std::string_view> fields = fields_of(line);
      int64_t id = 0;
      if (fields.size() != 2 || !parse_whole(fields[0], id))
        throw_at_line(file->name(), number, "is not 'number name'");
      if (id != words_.size() || words_.add(fields[1]) != id)
        throw_at_line(file->name(), number, "the numbers do not count up from 0, or a name occurs twice");
    });
  }

  bool fixed() const { return fixed_; }
  void take_numbers() { numbers_ = true; }

  int64_t id(std::string_view name, const std::string& where, int64_t line) {
    int64_t value = 0;
    if (numbers_) {
      if (!parse_whole(name, value) || value < 0 || value > kMaxNodeId)
        throw_at_line(where, line, in_quotes(name) + " is not a number, but the names before are numbers");
      if (value > top_) {
        top_ = value;
        where_top_ = where + ":" + std::to_string(line);
      }
      return value;
    }
    if (!fixed_) return words_.add(name);
    value = words_.find(name);
    // Triples may be given as numbers although there is a dictionary of names.
    if (value < 0 && parse_whole(name, value) && value >= 0 && value < words_.size()) return value;
    if (value < 0 || value >= words_.size()) throw_at_line(where, line, in_quotes(name) + " is not in the dictionary");
    return value;
  }

  int64_t size() const { return numbers_ ? top_ + 1 : words_.size(); }
  bool named() const { return !numbers_; }
  const std::string& where_top() const { return where_top_; }  // where the largest number was read
  WordIds& words() { return words_; }

 private:
  WordIds words_;
  bool fixed_ = false;
  bool numbers_ = false;
  int64_t top_ = -1;
  std::string where_top_;
};

struct Triples {
  std::vector<NodeId> head;
  std::vector<NodeId> tail;
  std::vector<uint16_t> type;
};

class Reader {
 public:
  explicit Reader(const DataSource& source) : entities_(source, "entities.dict"), relations_(source, "relations.dict") {
    if (!entities_.fixed() && !relations_.fixed() && all_whole(fields_of(first_line(source.at(kFiles[0]))))) {
      entities_.take_numbers();
      relations_.take_numbers();
    }
  }

  Triples read(const std::shared_ptr<const MappedFile>& file) {
    Triples triples;
    for_each_line(file, [&](std::string_view line, int64_t number) {
      if (trimmed(line).empty()) return;
      const std::vector<std::string_view> fields = fields_of(line);
      if (fields.size() != 3) throw_at_line(file->name(), number, "is not 'head relation tail'");
      triples.head.push_back(static_cast<NodeId>(entities_.id(fields[0], file->name(), number)));
      const int64_t relation = relations_.id(fields[1], file->name(), number);
      if (relation >= kMaxEdgeTypes)
        throw_at_line(file->name(), number, "names the 65,536th relation; at most 65,535 are possible");
      triples.type.push_back(static_cast<uint16_t>(relation));
      triples.tail.push_back(static_cast<NodeId>(entities_.id(fields[2], file->name(), number)));
    });
    return triples;
  }

  Numbering& entities() { return entities_; }
  Numbering& relations() { return relations_; }

 private:
  Numbering entities_;
  Numbering relations_;
};

HeldOutEdges held_out(Triples triples) {
  return {std::move(triples.head), std::move(triples.tail), std::move(triples.type)};
}

std::string recognise_triples(const DataSource& source) {
  if (!source.has(kFiles[0])) return "";
  if (source.has("entities.dict") && source.has("relations.dict")) return "holds entities.dict and relations.dict";
  const std::string line = first_line(source.at(kFiles[0]));
  const std::vector<std::string_view> fields = fields_of(line);
  if (source.has(kFiles[1])) return "holds train.txt and valid.txt";
  return fields.size() == 3 && !all_whole(fields) ? "train.txt begins with a triple" : "";
}

Dataset load_triples(const DataSource& source, const std::string&, const LoadOptions&) {
  Reader reader(source);
  Triples train = reader.read(source.open(kFiles[0]));
  Dataset data;
  if (source.has(kFiles[1])) data.val_edges = held_out(reader.read(source.open(kFiles[1])));
  if (source.has(kFiles[2])) data.test_edges = held_out(reader.read(source.open(kFiles[2])));
  if (reader.entities().size() == 0) throw_at_line(source.at(kFiles[0]), 1, "the file ends without a triple");
  EdgeList edges;
  edges.num_nodes = reader.entities().size();
  edges.num_types = std::max(1, static_cast<int>(reader.relations().size()));
  edges.src = std::move(train.head);
  edges.dst = std::move(train.tail);
  edges.type = std::move(train.type);
  const int64_t seen = static_cast<int64_t>(edges.src.size()) + data.val_edges.size() + data.test_edges.size();
  if (reader.entities().named()) {
    data.node_names = reader.entities().words().words();
  } else {
    check_vertex_count(edges.num_nodes, seen, reader.entities().where_top());
  }
  data.node_types = {"entity"};
  data.node_offsets = {0, edges.num_nodes};
  for (int64_t r = 0; r < edges.num_types; ++r) {
    const auto& words = reader.relations().words().words();
    const bool named = r < static_cast<int64_t>(words.size());
    data.relations.push_back({0, named ? words[r] : std::to_string(r), 0});
  }
  data.graph = build_graph(std::move(edges), source.path());
  data.notes.push_back(human_count(data.val_edges.size()) + " validation and " + human_count(data.test_edges.size()) +
                       " test triples are held out of the graph");
  return data;
}

}  // namespace

std::vector<Format> formats_in_triples() {
  return {{"triples", "knowledge graph: train, valid, test of head, relation, tail", recognise_triples, load_triples}};
}

}  // namespace nacre
