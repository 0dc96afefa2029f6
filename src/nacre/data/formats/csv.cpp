#include "nacre/data/formats/csv.h"

#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

std::string header_of(const std::shared_ptr<const MappedFile>& file) {
  TextBlocks blocks(file);
  const std::string_view block = blocks.next();
  return std::string(trimmed(block.substr(0, block.find('\n'))));
}

}  // namespace

CsvTable::CsvTable(std::shared_ptr<const MappedFile> file, char separator)
    : file_(std::move(file)), separator_(separator) {
  const std::string first = header_of(file_);
  split(first, 1, columns_);
  for (std::string& column : columns_) column = std::string(trimmed(column));
  if (columns_.empty() || columns_[0].empty()) throw_at_line(name(), 1, "the first line must name the columns");
}

int CsvTable::find(const std::string& column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  return found == columns_.end() ? -1 : static_cast<int>(found - columns_.begin());
}

int CsvTable::require(const std::string& column) const {
  const int found = find(column);
  if (found >= 0) return found;
  std::string list;
  for (const std::string& name : columns_) list += (list.empty() ? "" : ", ") + in_quotes(name);
  throw_at_line(name(), 1, "has no column " + in_quotes(column), "columns found: " + list);
}

int CsvTable::find_any(std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    if (const int found = find(name); found >= 0) return found;
  }
  return -1;
}

void CsvTable::for_each_row(FunctionRef<void(std::span<const std::string>, int64_t)> fn) const {
  std::vector<std::string> fields;
  for_each_line(file_, [&](std::string_view line, int64_t number) {
    if (number == 1 || trimmed(line).empty()) return;
    split(line, number, fields);
    if (fields.size() != columns_.size()) {
      throw_at_line(name(), number,
                    "has " + std::to_string(fields.size()) + " columns, but the first line has " +
                        std::to_string(columns_.size()));
    }
    fn(fields, number);
  });
}

// Cuts `line` into `fields`. A quoted field may hold anything but a line end; two quotes in it
// stand for one.
void CsvTable::split(std::string_view line, int64_t number, std::vector<std::string>& fields) const {
  fields.clear();
  size_t at = 0;
  while (true) {
    std::string& field = fields.emplace_back();
    const bool is_quoted = at < line.size() && line[at] == '"';
    if (is_quoted) {
      for (++at; at < line.size() && (line[at] != '"' || (at + 1 < line.size() && line[at + 1] == '"')); ++at) {
        if (line[at] == '"') ++at;
        field += line[at];
      }
      if (at >= line.size()) throw_at_line(name(), number, "a quote does not end on the line");
      ++at;
      if (at < line.size() && line[at] != separator_) throw_at_line(name(), number, "text follows a quoted field");
    } else {
      const size_t end = std::min(line.find(separator_, at), line.size());
      field.assign(line.substr(at, end - at));
      at = end;
    }
    if (at >= line.size()) return;
    ++at;
  }
}

void parse_vector(std::string_view text, std::vector<float>& values, const std::string& where, int64_t line) {
  for (const std::string_view field : split_at(text, ',')) {
    float value = 0;
    if (!parse_real(trimmed(field), value)) throw_at_line(where, line, in_quotes(field) + " is not a number");
    values.push_back(value);
  }
}

bool parse_flag(std::string_view text, const std::string& where, int64_t line) {
  const std::string_view word = trimmed(text);
  if (word == "1" || word == "True" || word == "true" || word == "1.0") return true;
  if (word == "0" || word == "False" || word == "false" || word == "0.0") return false;
  throw_at_line(where, line, in_quotes(word) + " is not 0 or 1");
}

}  // namespace nacre
