#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

// The content of one piece of a block. Line numbers count from the beginning of the piece.
struct Part {
  std::vector<float> values;
  int64_t rows = 0;
  int64_t lines = 0;
  int64_t blank_line = -1;  // first of the blank lines at the end
  int64_t error_line = -1;
  std::string error;
};

class PieceParser {
 public:
  PieceParser(int64_t columns, NanAs nan) : columns_(columns), nan_(nan) {}

  Part parse(std::string_view text) const {
    Part part;
    const char* end = text.data() + text.size();
    for (const char* p = text.data(); p != end; ++part.lines) {
      p = skip_blanks(p, end);
      if (at_line_end(p, end)) {
        if (part.blank_line < 0) part.blank_line = part.lines;
      } else if (is_comment(p, end)) {
        p = find_line_end(p, end);
      } else if (part.blank_line >= 0) {
        part.error_line = part.blank_line;
        part.error = "is empty, but more rows follow";
        return part;
      } else if (part.error = row(p, end, part.values); !part.error.empty()) {
        part.error_line = part.lines;
        return part;
      } else {
        ++part.rows;
      }
      if (p != end) ++p;
    }
    return part;
  }

 private:
  std::string row(const char*& p, const char* end, std::vector<float>& values) const {
    for (int64_t c = 0; c < columns_; ++c) {
      double value = 0;
      const auto [next, error] = std::from_chars(p, end, value);
      if (error == std::errc::invalid_argument) return shown_field(p, end) + " is not a number";
      const char* field = p;
      p = next;
      const After after = after_field(p, end);
      if (after == After::garbage) return shown_field(field, end) + " is not a number";
      if ((after == After::field) != (c + 1 < columns_)) {
        return "does not have " + std::to_string(columns_) + " columns like the first row";
      }
      if (std::isnan(value) && nan_ == NanAs::minus_one) value = -1;
      if (!(std::abs(value) <= std::numeric_limits<float>::max())) return shown_field(field, end) + " is not finite";
      values.push_back(static_cast<float>(value));
    }
    return "";
  }

  int64_t columns_;
  NanAs nan_;
};

}  // namespace

Tensor TextMatrix::tensor() && {
  auto owner = std::make_shared<std::vector<float>>(std::move(values));
  float* data = owner->data();
  return {DType::f32, {rows, columns}, std::shared_ptr<void>(std::move(owner)), data};
}

TextRows::TextRows(const std::shared_ptr<const MappedFile>& file, NanAs nan) : blocks_(file), nan_(nan) {
  for (block_ = blocks_.next(); !block_.empty() && !begin(); block_ = blocks_.next()) {
  }
}

// Finds the number of columns and skips what precedes the first row. Returns false if the block has
// no row.
bool TextRows::begin() {
  const FirstLine first = find_first_line(block_);
  lines_ += first.lines_before;
  if (!first.found) return false;
  columns_ = static_cast<int64_t>(split_fields(first.line).size());
  block_.remove_prefix(first.begin);
  if (names_columns(first.line)) {
    block_.remove_prefix(std::min(block_.size(), first.line.size() + 1));
    ++lines_;
  }
  return true;
}

bool TextRows::next(std::vector<float>& values) {
  // begin() may leave an empty block, if the line of names was all that the block held.
  while (block_.empty() && !ended_) {
    block_ = blocks_.next();
    ended_ = block_.empty();
  }
  if (ended_) return false;
  const std::vector<std::string_view> pieces = split_at_lines(block_);
  std::vector<Part> parts(pieces.size());
  const PieceParser parser(columns_, nan_);
  parallel_tasks(static_cast<int64_t>(pieces.size()), [&](int64_t i) { parts[i] = parser.parse(pieces[i]); });
  for (const Part& part : parts) {
    if (blank_line_ >= 0 && part.rows > 0) fail(blank_line_, "is empty, but more rows follow");
    if (part.error_line >= 0) fail(lines_ + part.error_line, part.error);
    if (part.blank_line >= 0 && blank_line_ < 0) blank_line_ = lines_ + part.blank_line;
    lines_ += part.lines;
    values.insert(values.end(), part.values.begin(), part.values.end());
  }
  block_ = {};
  return true;
}

void TextRows::fail(int64_t line, const std::string& what) const {
  throw_at_line(blocks_.name(), line + 1, what, "give one row of numbers per node");
}

TextMatrix read_text_matrix(const std::shared_ptr<const MappedFile>& file, NanAs nan) {
  TextRows rows(file, nan);
  TextMatrix matrix;
  while (rows.next(matrix.values)) {
  }
  if (matrix.values.empty()) rows.fail(rows.lines(), "the file ends without a row of numbers: there are no rows");
  matrix.columns = rows.columns();
  matrix.rows = static_cast<int64_t>(matrix.values.size()) / matrix.columns;
  return matrix;
}

}  // namespace nacre
