// Text files of numbers and words, plain or gzipped. They are read in blocks of whole lines, and
// the lines of a block are parsed in parallel. Fields are separated by blanks, or by one comma or
// semicolon with blanks around it. Lines that begin with # or % are comments.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/data/byte_stream.h"
#include "nacre/data/mapped_file.h"
#include "nacre/data/npy.h"
#include "nacre/tensor/tensor.h"

namespace nacre {

[[noreturn]] void throw_at_line(const std::string& file, int64_t line, const std::string& what,
                                const std::string& remedy = "");

// Hands out a text file block by block. Plain files are not copied.
class TextBlocks {
 public:
  explicit TextBlocks(std::shared_ptr<const MappedFile> file);

  // Returns whole lines, which stay valid until the next call. Returns an empty text at the end.
  std::string_view next();
  // Returns the number of bytes of text, or 0 if it is unknown (gzip).
  int64_t total_bytes() const { return stream_ == nullptr ? file_->size() : 0; }
  const std::string& name() const { return file_->name(); }

 private:
  std::string_view next_mapped();
  std::string_view next_inflated();

  std::shared_ptr<const MappedFile> file_;
  std::unique_ptr<ByteStream> stream_;  // gzipped files only
  Buffer<char> buffer_;
  int64_t kept_begin_ = 0;  // range in the buffer of a line whose end has not arrived yet
  int64_t kept_end_ = 0;
  int64_t at_ = 0;  // position of the next byte of the text
  bool first_ = true;
  bool ended_ = false;
};

// Cuts a block into pieces of about 1 MiB at line ends. The cuts depend on the text only.
std::vector<std::string_view> split_at_lines(std::string_view block);

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
inline const char* skip_blanks(const char* p, const char* end) {
  while (p != end && is_blank(*p)) ++p;
  return p;
}
inline bool at_line_end(const char* p, const char* end) { return p == end || *p == '\n'; }
inline bool is_comment(const char* p, const char* end) { return p != end && (*p == '#' || *p == '%'); }
const char* find_line_end(const char* p, const char* end);

enum class After { field, line_end, garbage };
// Moves `p` from the end of one field to the beginning of the next or to the end of the line, and
// returns which of the two it is. Returns garbage if no separator follows the field, or if no field
// follows a comma or semicolon.
inline After after_field(const char*& p, const char* end) {
  const char* begin = p;
  p = skip_blanks(p, end);
  if (at_line_end(p, end)) return After::line_end;
  if (*p == ',' || *p == ';') {
    p = skip_blanks(p + 1, end);
    return at_line_end(p, end) ? After::garbage : After::field;
  }
  return p == begin ? After::garbage : After::field;
}

// Returns the fields of one line.
std::vector<std::string_view> split_fields(std::string_view line);
// Returns the field at `p` for a message: at most 40 characters, unprintable ones replaced.
std::string shown_field(const char* p, const char* end);

// The first line that is neither blank nor a comment.
struct FirstLine {
  std::string_view line;
  int64_t lines_before = 0;
  size_t begin = 0;  // offset in the block
  bool found = false;
};
FirstLine find_first_line(std::string_view block);
// Returns whether a first line names columns: its first field is not a number.
bool names_columns(std::string_view line);

// A table of numbers with one row per line. Every row has as many columns as the first.
struct TextMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> values;
  Tensor tensor() &&;
};
// Reads a table of numbers block by block, so that the whole table need not fit into memory.
class TextRows {
 public:
  TextRows(const std::shared_ptr<const MappedFile>& file, NanAs nan);
  int64_t columns() const { return columns_; }  // 0 if there are no rows
  int64_t lines() const { return lines_; }      // number of lines read so far
  // Appends the rows of the next block. Returns false at the end.
  bool next(std::vector<float>& values);
  [[noreturn]] void fail(int64_t line, const std::string& what) const;  // lines count from 0

 private:
  bool begin();

  TextBlocks blocks_;
  NanAs nan_;
  std::string_view block_;  // text that is not parsed yet
  int64_t columns_ = 0;
  int64_t lines_ = 0;
  int64_t blank_line_ = -1;
  bool ended_ = false;
};
TextMatrix read_text_matrix(const std::shared_ptr<const MappedFile>& file, NanAs nan);

// Calls fn(word, line number) for every line of a file of one word per line.
void for_each_word(const std::shared_ptr<const MappedFile>& file, FunctionRef<void(std::string_view, int64_t)> fn);

}  // namespace nacre
