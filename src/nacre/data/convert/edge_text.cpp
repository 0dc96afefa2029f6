#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/base/warnings.h"
#include "nacre/data/convert/edge_source.h"
#include "nacre/data/convert/pages.h"
#include "nacre/data/edge_columns.h"
#include "nacre/data/node_data.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

using Column = EdgeColumn;
using Columns = std::vector<Column>;

struct Part {
  EdgePart* edges = nullptr;
  int64_t lines = 0;
  int64_t error_line = -1;
  std::string error;
};

class PieceParser {
 public:
  explicit PieceParser(const Columns& columns)
      : columns_(columns), pairs_(columns == Columns{Column::src, Column::dst}) {}

  void parse(std::string_view text, Part& part) const {
    EdgePart& edges = *part.edges;
    // The vectors are cleared and used again, because memory that many threads allocate and free is
    // not all returned to the system.
    edges.src.clear();
    edges.dst.clear();
    edges.weight.clear();
    edges.type.clear();
    const size_t guess = text.size() / 8 + 1;
    edges.src.reserve(guess);
    edges.dst.reserve(guess);
    const char* end = text.data() + text.size();
    const char* p = text.data();
    while (p != end) {
      if (pairs_) p = plain_pairs(p, text, part);
      if (p == end) return;
      ++part.lines;
      p = skip_blanks(p, end);
      if (is_comment(p, end)) {
        p = find_line_end(p, end);
      } else if (!at_line_end(p, end)) {
        if (!edge(p, end, part)) {
          part.error_line = part.lines - 1;
          return;
        }
      }
      if (p != end) ++p;
    }
  }

 private:
  // Parses lines of the usual form quickly: digits, one separator, digits. Returns the beginning of
  // the first line that is not of this form.
  static const char* plain_pairs(const char* p, std::string_view text, Part& part) {
    const size_t last = text.rfind('\n');
    if (last == std::string_view::npos) return p;
    // Every line before `end` ends with a line break, so a loop over digits stops there at the
    // latest.
    const char* end = text.data() + last + 1;
    EdgePart& edges = *part.edges;
    while (p != end) {
      const char* line = p;
      uint64_t src = 0;
      for (; is_digit(*p); ++p) src = src * 10 + static_cast<uint64_t>(*p - '0');
      const int64_t src_digits = p - line;
      if (*p != '\t' && *p != ' ' && *p != ',') return line;
      const char* field = ++p;
      uint64_t dst = 0;
      for (; is_digit(*p); ++p) dst = dst * 10 + static_cast<uint64_t>(*p - '0');
      const int64_t dst_digits = p - field;
      const auto short_number = [](int64_t digits) { return digits > 0 && digits < 10; };
      if (*p != '\n' || !short_number(src_digits) || !short_number(dst_digits)) return line;
      edges.src.push_back(static_cast<NodeId>(src));
      edges.dst.push_back(static_cast<NodeId>(dst));
      ++part.lines;
      ++p;
    }
    return p;
  }

  static bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

  bool edge(const char*& p, const char* end, Part& part) const {
    const size_t last = columns_.size() - 1;
    for (size_t c = 0; c <= last; ++c) {
      const char* field = p;
      if (!value(columns_[c], p, end, part)) {
        part.error = why(columns_[c], field, end);
        return false;
      }
      const After after = after_field(p, end);
      if (after == After::garbage) {
        part.error = why(columns_[c], field, end);
        return false;
      }
      if ((after == After::field) != (c < last)) {
        part.error = "does not have " + std::to_string(columns_.size()) + " columns like the first edge";
        return false;
      }
    }
    return true;
  }

  static bool value(Column column, const char*& p, const char* end, Part& part) {
    switch (column) {
      case Column::src:
        return id(p, end, part.edges->src);
      case Column::dst:
        return id(p, end, part.edges->dst);
      case Column::weight:
        return weight(p, end, part.edges->weight);
      case Column::type:
        return type(p, end, part.edges->type);
      case Column::ignored:
        while (!at_line_end(p, end) && !is_blank(*p) && *p != ',' && *p != ';') ++p;
        return true;
    }
    return false;
  }

  static bool id(const char*& p, const char* end, std::vector<NodeId>& out) {
    const char* begin = p;
    uint64_t value = 0;
    for (; p != end && static_cast<unsigned char>(*p - '0') < 10; ++p) {
      value = value * 10 + static_cast<uint64_t>(*p - '0');
      if (value > kMaxNodeId) return false;
    }
    out.push_back(static_cast<NodeId>(value));
    return p != begin;
  }

  static bool weight(const char*& p, const char* end, std::vector<float>& out) {
    double value = 0;
    const auto [next, error] = std::from_chars(p, end, value);
    if (error == std::errc::invalid_argument || !(std::abs(value) <= std::numeric_limits<float>::max())) return false;
    p = next;
    out.push_back(static_cast<float>(value));
    return true;
  }

  static bool type(const char*& p, const char* end, std::vector<uint16_t>& out) {
    uint32_t value = 0;
    const auto [next, error] = std::from_chars(p, end, value);
    if (error != std::errc() || value >= kMaxEdgeTypes) return false;
    p = next;
    out.push_back(static_cast<uint16_t>(value));
    return true;
  }

  static std::string why(Column column, const char* field, const char* end) {
    const std::string shown = shown_field(field, end);
    if (column == Column::weight) return shown + " is not a finite edge weight";
    if (column == Column::type) return shown + " is not an edge type (0 to 65,534)";
    if (column == Column::ignored) return shown + " is followed by a separator, but no value";
    const bool digits = std::all_of(shown.begin() + 1, shown.end() - 1, [](char c) { return c >= '0' && c <= '9'; });
    if (shown.size() > 3 && shown[1] == '-') return shown + " is a negative node id";
    if (shown.size() > 10 && digits) return shown + " is beyond the largest node id, 4,294,967,294";
    return shown + " is not a node id";
  }

  const Columns& columns_;
  bool pairs_;
};

class EdgeText final : public EdgeSource {
 public:
  explicit EdgeText(const std::shared_ptr<const MappedFile>& file) : file_(file), blocks_(file) {
    // Looks for the first edge, which says what the columns are.
    for (block_ = blocks_.next(); !block_.empty() && !begin(block_); block_ = blocks_.next()) {
    }
  }

  bool next(std::vector<EdgePart>& parts) override {
    if (block_.empty()) return false;
    const std::vector<std::string_view> pieces = split_at_lines(block_);
    parts.resize(pieces.size());
    std::vector<Part> parsed(pieces.size());
    const PieceParser parser(columns_);
    parallel_tasks(static_cast<int64_t>(pieces.size()), [&](int64_t i) {
      parsed[i].edges = &parts[i];
      parser.parse(pieces[i], parsed[i]);
    });
    for (const Part& part : parsed) {
      if (part.error_line >= 0) {
        throw_at_line(blocks_.name(), lines_ + part.error_line + 1, part.error,
                      "every line must be an edge: src dst [weight]; if ids are words, use --format names");
      }
      lines_ += part.lines;
    }
    advance();
    return true;
  }

  void skip() override {
    lines_ += std::count(block_.begin(), block_.end(), '\n');
    advance();
  }

  bool ended() const override { return block_.empty(); }

  bool weighted() const override { return has(Column::weight); }
  bool typed() const override { return has(Column::type); }
  // An edge takes at least four bytes ("1 2" and the line end), and deflate compresses at most 1032
  // : 1.
  int64_t most_edges() const override { return file_->size() / 4 * (zipped() ? 1032 : 1) + 1; }
  double total_bytes() const override { return static_cast<double>(blocks_.total_bytes()); }
  double bytes_done() const override { return done_; }
  std::vector<std::string> notes() const override { return notes_; }

 private:
  bool begin(std::string_view& block) {
    if (block.starts_with("%%MatrixMarket")) {
      throw UserError(blocks_.name() + ":1", "is a Matrix Market file, whose ids begin at 1",
                      "read it with --format mtx");
    }
    const FirstLine first = find_first_line(block);
    lines_ += first.lines_before;
    if (!first.found) return false;
    block.remove_prefix(first.begin);
    const std::vector<std::string_view> fields = split_fields(first.line);
    if (!names_columns(first.line)) {
      from_width(fields.size());
      return true;
    }
    from_names(fields);
    block.remove_prefix(std::min(block.size(), first.line.size() + 1));
    ++lines_;
    return true;
  }

  void from_width(size_t width) {
    if (width < 2 || width > 3) {
      throw_at_line(blocks_.name(), lines_ + 1,
                    "has " + std::to_string(width) + (width == 1 ? " column" : " columns") +
                        "; an edge is 'src dst' or 'src dst weight'",
                    "for other columns begin the file with a line of names, such as src,dst,weight,type");
    }
    columns_ = {Column::src, Column::dst};
    if (width == 3) {
      columns_.push_back(Column::weight);
      notes_.emplace_back(std::string(kWarningNote) + "the third column of " + blocks_.name() +
                          " was read as edge weight; if it is something else, begin the file with a line of names, "
                          "such as src,dst,type");
    }
  }

  void from_names(const std::vector<std::string_view>& fields) {
    std::string ignored;
    for (const std::string_view field : fields) {
      const Column column = edge_column_named(field);
      if (column == Column::ignored) {
        ignored += (ignored.empty() ? "" : ", ") + shown_field(field.data(), field.data() + field.size());
      } else if (std::find(columns_.begin(), columns_.end(), column) != columns_.end()) {
        throw_at_line(blocks_.name(), lines_ + 1, "two columns have the same role", "use src,dst[,weight][,type]");
      }
      columns_.push_back(column);
    }
    const auto missing = [&](Column c) { return std::find(columns_.begin(), columns_.end(), c) == columns_.end(); };
    if (missing(Column::src) || missing(Column::dst)) {
      throw_at_line(blocks_.name(), lines_ + 1,
                    shown_field(fields[0].data(), fields[0].data() + fields[0].size()) +
                        " is neither a node id nor the name of a column",
                    "use numbers, or name the columns src,dst[,weight][,type]");
    }
    if (!ignored.empty()) notes_.push_back("columns that were not used: " + ignored);
  }

  void advance() {
    done_ += static_cast<double>(block_.size());
    if (!zipped()) drop_pages(*file_, block_.data(), static_cast<int64_t>(block_.size()));
    block_ = blocks_.next();
  }

  bool has(Column column) const { return std::find(columns_.begin(), columns_.end(), column) != columns_.end(); }
  bool zipped() const { return blocks_.total_bytes() == 0; }

  std::shared_ptr<const MappedFile> file_;
  TextBlocks blocks_;
  std::string_view block_;  // text that is not parsed yet
  Columns columns_;
  int64_t lines_ = 0;
  double done_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace

std::unique_ptr<EdgeSource> open_edge_text(const std::shared_ptr<const MappedFile>& file) {
  return std::make_unique<EdgeText>(file);
}

}  // namespace nacre
