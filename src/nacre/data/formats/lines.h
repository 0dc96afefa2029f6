// Text read line by line, for layouts whose lines are no plain table of numbers.
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

// Calls fn(line, number) for every line, blank ones and comments too, without its end; numbers count from 1. Plain or
// gzipped.
void for_each_line(const std::shared_ptr<const MappedFile>& file, FunctionRef<void(std::string_view, int64_t)> fn);
// The first line that is not blank; empty when there is none or the file cannot be read. Never throws.
std::string first_line(const std::string& path);

// The fields of a line one by one, cut at blanks; for lines too many to keep lists of their fields.
class FieldCursor {
 public:
  explicit FieldCursor(std::string_view line) : rest_(line) {}
  // Empty when there are no more.
  std::string_view next();

 private:
  std::string_view rest_;
};

// Cuts at blanks (tabs too); empty fields do not exist.
std::vector<std::string_view> split_blanks(std::string_view line);
// Cuts at every `separator`; fields may be empty and keep their blanks.
std::vector<std::string_view> split_at(std::string_view line, char separator);
std::string_view trimmed(std::string_view text);

// The whole of `text` as a number; false when it is none or out of range.
bool parse_whole(std::string_view text, int64_t& value);
bool parse_real(std::string_view text, float& value);  // finite values only
// For messages: at most 40 characters in quotes, unprintable ones replaced.
std::string in_quotes(std::string_view text);

// Whole numbers, one per line; blank lines are skipped.
std::vector<int64_t> read_whole_numbers(const std::shared_ptr<const MappedFile>& file);

// Words and the numbers they get, in order of appearance.
class WordIds {
 public:
  int64_t add(std::string_view word);
  int64_t find(std::string_view word) const;  // -1: unknown
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
