#include "nacre/data/label_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <unordered_set>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/named_lines.h"
#include "nacre/data/node_data.h"
#include "nacre/data/node_finder.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

struct Line {
  std::vector<std::string> fields;
  int64_t number;
};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool one_of(const std::string& text, std::initializer_list<const char*> words) {
  return std::find(words.begin(), words.end(), lower(text)) != words.end();
}

bool names_node(const std::string& text) {
  return one_of(text, {"node", "id", "node_id", "nodeid", "vertex", "name", "paper", "user", "index"});
}
bool names_label(const std::string& text) {
  return one_of(text, {"label", "labels", "class", "y", "target", "category"});
}

// Parses a whole number, which may also be written as 3.0. Returns false for any other text.
bool class_number(const std::string& text, int64_t& value) {
  if (parse_whole(text, value)) return true;
  float real = 0;
  if (!parse_real(text, real) || real != std::trunc(real) || std::abs(real) > 1e9F) return false;
  value = static_cast<int64_t>(real);
  return true;
}

bool no_label(const std::string& text) {
  int64_t value = 0;
  return one_of(text, {"", "nan", "na", "null", "none"}) || (class_number(text, value) && value < 0);
}

// Returns whether `text` is a number; infinite and NaN count as numbers.
bool is_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error != std::errc::invalid_argument && end == text.data() + text.size();
}

// Returns whether `lines` have two columns that are nodes and classes: there is a header that says
// so, or the nodes of `data` have names, or no text occurs twice in the first column. But two
// columns of 0 and 1 with a line for every node are 0/1 targets.
bool is_node_list(const std::vector<Line>& lines, bool header, const Dataset& data) {
  if (lines.empty() || lines[0].fields.size() != 2) return false;
  if (header) return true;
  if (!data.node_names.empty()) return true;
  const auto bit = [](const std::string& text) { return text == "0" || text == "1"; };
  const bool bits = std::all_of(lines.begin(), lines.end(),
                                [&](const Line& l) { return std::all_of(l.fields.begin(), l.fields.end(), bit); });
  if (bits && static_cast<int64_t>(lines.size()) == data.num_nodes()) return false;
  std::unordered_set<std::string> seen;
  return std::all_of(lines.begin(), lines.end(), [&](const Line& l) { return seen.insert(l.fields[0]).second; });
}

void set_by_node(const std::vector<Line>& lines, const std::string& file, Dataset& data) {
  std::vector<std::string> words(data.num_nodes());
  std::vector<char> seen(words.size(), 0);
  NodeFinder nodes(data);
  for (const Line& line : lines) {
    if (line.fields.size() != 2)
      throw_at_line(file, line.number, "has " + std::to_string(line.fields.size()) + " columns; 'node,label' has two");
    const int64_t node = nodes.find_at(line.fields[0], file, line.number);
    if (node < 0) continue;
    if (std::exchange(seen[node], 1) != 0)
      throw_at_line(file, line.number, "gives the node " + in_quotes(line.fields[0]) + " a label again");
    words[node] = line.fields[1];
  }
  nodes.note_unknown("labels", file, static_cast<int64_t>(lines.size()), data);
  set_class_words(words, data);
}

}  // namespace

void set_class_words(const std::vector<std::string>& words, Dataset& data) {
  std::vector<int32_t> labels(words.size(), -1);
  const bool numbers = std::all_of(words.begin(), words.end(), [](const std::string& word) {
    int64_t value = 0;
    return no_label(word) || (class_number(word, value) && value < kMaxClasses);
  });
  std::vector<std::string> names;
  if (!numbers) {
    for (const std::string& word : words) {
      if (!no_label(word)) names.push_back(word);
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
  }
  for (size_t i = 0; i < words.size(); ++i) {
    if (no_label(words[i])) continue;
    int64_t value = 0;
    if (numbers) {
      class_number(words[i], value);
    } else {
      value = std::lower_bound(names.begin(), names.end(), words[i]) - names.begin();
    }
    labels[i] = static_cast<int32_t>(value);
  }
  const auto top = std::max_element(labels.begin(), labels.end());
  data.num_classes = !names.empty() ? static_cast<int64_t>(names.size()) : top == labels.end() ? 0 : int64_t{*top} + 1;
  if (data.num_classes > kMaxClasses)
    throw UserError("labels", "there are " + human_count(data.num_classes) + " different labels",
                    "check that the file holds classes, not names");
  data.labels = std::move(labels);
  data.class_names = std::move(names);
  if (data.class_names.empty()) return;
  std::string list;
  for (size_t i = 0; i < std::min<size_t>(data.class_names.size(), 20); ++i) {
    const std::string name = in_quotes(data.class_names[i]);
    list += (i == 0 ? "" : ", ") + std::to_string(i) + " " + name.substr(1, name.size() - 2);
  }
  data.notes.push_back("classes: " + list + (data.class_names.size() > 20 ? ", …" : ""));
}

void read_label_text(const std::shared_ptr<const MappedFile>& file, Dataset& data) {
  const auto head = first_named_lines(file, 2);
  const bool header = !head.empty() && head[0].size() == 2 && names_node(head[0][0]) && names_label(head[0][1]);
  const bool words = !head.empty() && head[0].size() == 1 && !is_number(head.back()[0]) && !no_label(head.back()[0]);
  const bool pairs = !head.empty() && head[0].size() == 2;
  if (!pairs && !words) return labels_from_text(file, data);
  std::vector<Line> lines;
  bool first = true;
  for_each_named_line(file, [&](const std::vector<std::string>& fields, int64_t number) {
    const bool title = std::exchange(first, false) && (header || (words && names_label(fields[0])));
    if (!title) lines.push_back({fields, number});
  });
  data.origins.labels = {file->name()};
  if (words) {
    std::vector<std::string> list;
    for (const Line& line : lines) {
      if (line.fields.size() != 1) throw_at_line(file->name(), line.number, "has several columns; one is expected");
      list.push_back(line.fields[0]);
    }
    return set_class_words(list, data);
  }
  if (!is_node_list(lines, header, data)) return labels_from_text(file, data);
  set_by_node(lines, file->name(), data);
}

}  // namespace nacre
