// Reads text line by line, for layouts whose lines are not a plain table of numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/data/mapped_file.h"

namespace nacre {

// Calls fn(line, number) for every line without its line break, also for blank lines and comments.
// Numbers count from 1. The file may be plain or gzipped.
void for_each_line(const std::shared_ptr<const MappedFile>& file, FunctionRef<void(std::string_view, int64_t)> fn);
// Returns the first line that is not blank, or an empty text if there is none or the file cannot be
// read. Never throws.
std::string first_line(const std::string& path);

// Hands out the fields of a line one by one, cut at blanks, for files with too many lines to keep
// lists of fields.
class FieldCursor {
 public:
  explicit FieldCursor(std::string_view line) : rest_(line) {}
  // Returns the next field, or an empty text if there are no more.
  std::string_view next();

 private:
  std::string_view rest_;
};

// Cuts a line at blanks and tabs into fields, none of which is empty.
std::vector<std::string_view> split_blanks(std::string_view line);
// Cuts a line at every `separator` into fields, which may be empty and keep their blanks.
std::vector<std::string_view> split_at(std::string_view line, char separator);
std::string_view trimmed(std::string_view text);

// Parse the whole of `text`. Both functions return false if it is not a number or out of range.
bool parse_whole(std::string_view text, int64_t& value);
bool parse_real(std::string_view text, float& value);  // finite values only
// Returns `text` in quotes for messages: at most 40 characters, unprintable ones replaced.
std::string in_quotes(std::string_view text);

// Reads whole numbers, one per line; blank lines are skipped.
std::vector<int64_t> read_whole_numbers(const std::shared_ptr<const MappedFile>& file);

// Gives numbers to words in the order of their appearance.
class WordIds {
 public:
  int64_t add(std::string_view word);
  int64_t find(std::string_view word) const;  // -1 if unknown
  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  const std::vector<std::string>& words() const { return words_; }
  std::vector<std::string> take_words() && { return std::move(words_); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> ids_;
  std::vector<std::string> words_;
};

}  // namespace nacre
