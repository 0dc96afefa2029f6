#include "nacre/data/named_lines.h"

#include <algorithm>
#include <utility>

#include "nacre/data/formats/lines.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

bool is_text_line(std::string_view line) {
  const char* end = line.data() + line.size();
  const char* p = skip_blanks(line.data(), end);
  return p != end && !is_comment(p, end);
}

// Returns the text of a quoted field. `at` is the position just behind the first quote, and becomes
// the position just behind the last quote.
std::string quoted(std::string_view line, size_t& at, const std::string& file, int64_t number) {
  std::string field;
  for (; at < line.size(); ++at) {
    if (line[at] != '"') {
      field += line[at];
    } else if (at + 1 < line.size() && line[at + 1] == '"') {
      field += line[at++];
    } else {
      ++at;
      return field;
    }
  }
  throw_at_line(file, number, "has a quote that is not closed", "end the field with a double quote");
}

}  // namespace

char separator_of(std::string_view line) {
  for (const char c : {'\t', ',', ';'}) {
    if (line.find(c) != std::string_view::npos) return c;
  }
  return ' ';
}

std::vector<std::string> named_fields(std::string_view line, char separator, const std::string& file, int64_t number) {
  std::vector<std::string> fields;
  const auto ends = [&](char c) { return separator == ' ' ? is_blank(c) : c == separator; };
  size_t at = 0;
  const auto skip = [&] {
    while (at < line.size() && is_blank(line[at]) && (separator == ' ' || !ends(line[at]))) ++at;
  };
  for (skip(); at < line.size() || (separator != ' ' && !fields.empty()); skip()) {
    if (at < line.size() && line[at] == '"') {
      fields.push_back(quoted(line, ++at, file, number));
      skip();
      if (at < line.size() && !ends(line[at]) && separator != ' ')
        throw_at_line(file, number, "has more text behind a closing quote");
    } else {
      const size_t begin = at;
      while (at < line.size() && !ends(line[at])) ++at;
      fields.emplace_back(trimmed(line.substr(begin, at - begin)));
    }
    if (at >= line.size()) break;
    if (separator != ' ') ++at;
  }
  return fields;
}

void for_each_named_line(const std::shared_ptr<const MappedFile>& file,
                         FunctionRef<void(const std::vector<std::string>&, int64_t)> fn) {
  char separator = 0;
  for_each_line(file, [&](std::string_view line, int64_t number) {
    if (!is_text_line(line)) return;
    if (separator == 0) separator = separator_of(line);
    fn(named_fields(line, separator, file->name(), number), number);
  });
}

std::vector<std::vector<std::string>> first_named_lines(const std::shared_ptr<const MappedFile>& file, size_t count) {
  std::vector<std::vector<std::string>> lines;
  TextBlocks blocks(file);
  char separator = 0;
  for (std::string_view block = blocks.next(); !block.empty(); block = blocks.next()) {
    while (!block.empty()) {
      const size_t end = std::min(block.find('\n'), block.size());
      std::string_view line = block.substr(0, end);
      block.remove_prefix(std::min(block.size(), end + 1));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!is_text_line(line)) continue;
      if (separator == 0) separator = separator_of(line);
      lines.push_back(named_fields(line, separator, file->name(), 0));
      if (lines.size() == count) return lines;
    }
  }
  return lines;
}

}  // namespace nacre
