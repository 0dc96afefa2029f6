// LINQS: NAME.content ("id features… class", one vertex per line) and NAME.cites ("cited citing").
// Edges lead from the citing paper to the cited one. Classes are numbered in the order of their
// names.
#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/label_text.h"
#include "nacre/data/node_data.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

// Returns the name that both files share, or an empty text if there is no such pair.
std::string pair_name(const DataSource& source) {
  for (const std::string& file : source.files()) {
    constexpr std::string_view ending = ".content";
    if (!file.ends_with(ending)) continue;
    std::string name = file.substr(0, file.size() - ending.size());
    if (source.has(name + ".cites")) return name;
  }
  return "";
}

class Content {
 public:
  WordIds papers;
  std::vector<float> features;
  std::vector<std::string> classes;
  int64_t width = -1;

  void read(const std::shared_ptr<const MappedFile>& file) {
    for_each_line(file, [&](std::string_view line, int64_t number) {
      const std::vector<std::string_view> fields = split_blanks(line);
      if (fields.empty()) return;
      if (fields.size() < 3) throw_at_line(file->name(), number, "is not 'id features class'");
      const auto columns = static_cast<int64_t>(fields.size()) - 2;
      if (width >= 0 && columns != width) {
        throw_at_line(file->name(), number,
                      "has " + human_count(columns) + " features, but other lines have " + human_count(width));
      }
      width = columns;
      if (papers.find(fields[0]) >= 0) throw_at_line(file->name(), number, "names " + in_quotes(fields[0]) + " again");
      papers.add(fields[0]);
      for (size_t i = 1; i + 1 < fields.size(); ++i) {
        float value = 0;
        if (!parse_real(fields[i], value))
          throw_at_line(file->name(), number, in_quotes(fields[i]) + " is not a number");
        features.push_back(value);
      }
      classes.emplace_back(fields.back());
    });
    if (papers.size() == 0)
      throw UserError(file->name() + " at byte " + std::to_string(file->size()), "ends without naming a paper");
  }
};

std::string recognise_linqs(const DataSource& source) {
  const std::string name = pair_name(source);
  return name.empty() ? "" : "holds " + name + ".content and " + name + ".cites";
}

Dataset load_linqs(const DataSource& source, const std::string&, const LoadOptions&) {
  Dataset data;
  data.name = pair_name(source);
  if (data.name.empty()) throw UserError(source.path(), "holds no NAME.content with NAME.cites");
  Content content;
  content.read(source.open(data.name + ".content"));
  TextMatrix matrix{content.papers.size(), content.width, std::move(content.features)};
  data.features = std::move(matrix).tensor();
  set_class_words(content.classes, data);
  EdgeList edges;
  edges.num_nodes = content.papers.size();
  int64_t unknown = 0;
  const auto cites = source.open(data.name + ".cites");
  for_each_line(cites, [&](std::string_view line, int64_t number) {
    const std::vector<std::string_view> fields = split_blanks(line);
    if (fields.empty()) return;
    if (fields.size() != 2) throw_at_line(cites->name(), number, "is not 'cited citing'");
    const int64_t cited = content.papers.find(fields[0]);
    const int64_t citing = content.papers.find(fields[1]);
    if (cited < 0 || citing < 0) {
      ++unknown;
      return;
    }
    edges.src.push_back(static_cast<NodeId>(citing));
    edges.dst.push_back(static_cast<NodeId>(cited));
  });
  data.graph = build_graph(std::move(edges), cites->name());
  data.node_names = std::move(content.papers).take_words();
  if (unknown > 0)
    data.notes.push_back(human_count(unknown) + " citations of papers that are not in " + data.name +
                         ".content were left out");
  data.notes.emplace_back("edges lead from the citing to the cited paper; --undirected adds their reverse");
  return data;
}

}  // namespace

std::vector<Format> formats_in_linqs() { return {{"linqs", "LINQS .content and .cites", recognise_linqs, load_linqs}}; }

}  // namespace nacre
