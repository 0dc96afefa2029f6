#include "nacre/data/formats/lines.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "nacre/base/error.h"
#include "nacre/data/text.h"

namespace nacre {

void for_each_line(const std::shared_ptr<const MappedFile>& file, FunctionRef<void(std::string_view, int64_t)> fn) {
  TextBlocks blocks(file);
  int64_t number = 0;
  for (std::string_view block = blocks.next(); !block.empty(); block = blocks.next()) {
    const char* end = block.data() + block.size();
    for (const char* p = block.data(); p != end;) {
      const char* line_end = find_line_end(p, end);
      std::string_view line(p, static_cast<size_t>(line_end - p));
      if (line.ends_with('\r')) line.remove_suffix(1);
      fn(line, ++number);
      p = line_end == end ? end : line_end + 1;
    }
  }
}

std::string first_line(const std::string& path) {
  try {
    TextBlocks blocks(MappedFile::open(path));
    const std::string_view block = blocks.next();
    const char* end = block.data() + block.size();
    for (const char* p = block.data(); p != end;) {
      const char* line_end = find_line_end(p, end);
      const std::string_view line = trimmed({p, static_cast<size_t>(line_end - p)});
      if (!line.empty()) return std::string(line);
      p = line_end == end ? end : line_end + 1;
    }
  } catch (const std::exception&) {  // the actual reader of the file will report the error
    return "";
  }
  return "";
}

std::string_view FieldCursor::next() {
  const char* end = rest_.data() + rest_.size();
  const char* begin = skip_blanks(rest_.data(), end);
  const char* p = begin;
  while (p != end && !is_blank(*p)) ++p;
  rest_ = {p, static_cast<size_t>(end - p)};
  return {begin, static_cast<size_t>(p - begin)};
}

std::vector<std::string_view> split_blanks(std::string_view line) {
  std::vector<std::string_view> fields;
  const char* end = line.data() + line.size();
  for (const char* p = skip_blanks(line.data(), end); p != end; p = skip_blanks(p, end)) {
    const char* begin = p;
    while (p != end && !is_blank(*p)) ++p;
    fields.emplace_back(begin, static_cast<size_t>(p - begin));
  }
  return fields;
}

std::vector<std::string_view> split_at(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t at = line.find(separator);
    fields.push_back(line.substr(0, at));
    if (at == std::string_view::npos) return fields;
    line.remove_prefix(at + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && (is_blank(text.back()) || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

bool parse_whole(std::string_view text, int64_t& value) {
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && next == end;
}

bool parse_real(std::string_view text, float& value) {
  const char* end = text.data() + text.size();
  double parsed = 0;
  const auto [next, error] = std::from_chars(text.data(), end, parsed);
  // If the number is out of range, it is either tiny, and becomes 0, or huge, and stays beyond
  // float.
  if (error == std::errc::invalid_argument || next != end) return false;
  if (error == std::errc::result_out_of_range && std::abs(parsed) < 1) parsed = 0;
  if (!(std::abs(parsed) <= std::numeric_limits<float>::max())) return false;
  value = static_cast<float>(parsed);
  return error == std::errc() || parsed == 0;
}

std::string in_quotes(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 40)) shown += c >= 32 && c < 127 ? c : '?';
  return "'" + shown + "'";
}

std::vector<int64_t> read_whole_numbers(const std::shared_ptr<const MappedFile>& file) {
  std::vector<int64_t> numbers;
  for_each_line(file, [&](std::string_view line, int64_t number) {
    const std::string_view word = trimmed(line);
    if (word.empty()) return;
    int64_t value = 0;
    if (!parse_whole(word, value)) throw_at_line(file->name(), number, in_quotes(word) + " is not a whole number");
    numbers.push_back(value);
  });
  return numbers;
}

int64_t WordIds::add(std::string_view word) {
  const auto found = ids_.find(word);
  if (found != ids_.end()) return found->second;
  const int64_t id = size();
  ids_.emplace(word, id);
  words_.emplace_back(word);
  return id;
}

int64_t WordIds::find(std::string_view word) const {
  const auto found = ids_.find(word);
  return found == ids_.end() ? -1 : found->second;
}

}  // namespace nacre
