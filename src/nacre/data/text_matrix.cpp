#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

// What one piece of a block holds. Line numbers count from the beginning of the piece.
struct Part {
  std::vector<float> values;
  int64_t rows = 0;
  int64_t lines = 0;
  int64_t blank_line = -1;  // first of the blank lines at its end
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

class MatrixReader {
 public:
  MatrixReader(const std::shared_ptr<const MappedFile>& file, NanAs nan) : blocks_(file), nan_(nan) {}

  TextMatrix read() {
    for (std::string_view block = blocks_.next(); !block.empty(); block = blocks_.next()) {
      if (matrix_.columns == 0 && !begin(block)) continue;
      take(block);
    }
    if (matrix_.rows == 0) throw UserError(blocks_.name(), "holds no rows of numbers", "give one row per vertex");
    return std::move(matrix_);
  }

 private:
  // Learns the number of columns; skips what precedes the first row. False when the block has no row.
  bool begin(std::string_view& block) {
    const FirstLine first = find_first_line(block);
    lines_ += first.lines_before;
    if (!first.found) return false;
    matrix_.columns = static_cast<int64_t>(split_fields(first.line).size());
    block.remove_prefix(first.begin);
    if (names_columns(first.line)) {
      block.remove_prefix(std::min(block.size(), first.line.size() + 1));
      ++lines_;
    }
    return true;
  }

  void take(std::string_view block) {
    const std::vector<std::string_view> pieces = split_at_lines(block);
    std::vector<Part> parts(pieces.size());
    const PieceParser parser(matrix_.columns, nan_);
    parallel_tasks(static_cast<int64_t>(pieces.size()), [&](int64_t i) { parts[i] = parser.parse(pieces[i]); });
    for (const Part& part : parts) {
      if (blank_line_ >= 0 && part.rows > 0) fail(blank_line_, "is empty, but more rows follow");
      if (part.error_line >= 0) fail(lines_ + part.error_line, part.error);
      if (part.blank_line >= 0 && blank_line_ < 0) blank_line_ = lines_ + part.blank_line;
      lines_ += part.lines;
      matrix_.rows += part.rows;
      matrix_.values.insert(matrix_.values.end(), part.values.begin(), part.values.end());
    }
  }

  [[noreturn]] void fail(int64_t line, const std::string& what) const {
    throw_at_line(blocks_.name(), line + 1, what, "give one row of numbers per vertex");
  }

  TextBlocks blocks_;
  NanAs nan_;
  TextMatrix matrix_;
  int64_t lines_ = 0;
  int64_t blank_line_ = -1;
};

}  // namespace

Tensor TextMatrix::tensor() && {
  auto owner = std::make_shared<std::vector<float>>(std::move(values));
  float* data = owner->data();
  return {DType::f32, {rows, columns}, std::shared_ptr<void>(std::move(owner)), data};
}

TextMatrix read_text_matrix(const std::shared_ptr<const MappedFile>& file, NanAs nan) {
  return MatrixReader(file, nan).read();
}

}  // namespace nacre
