// Matrix Market coordinate files: a banner, comments, "rows columns entries", and one entry per
// line. Rows and columns are counted from 1.
#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/node_data.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

constexpr std::string_view kBanner = "%%MatrixMarket";

class Reader {
 public:
  explicit Reader(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {}

  EdgeList read() {
    for_each_line(file_, [&](std::string_view line, int64_t number) {
      number_ = number;
      if (number == 1) return banner(line);
      FieldCursor fields(line);
      const std::string_view first = fields.next();
      if (first.empty() || first.front() == '%') return;
      if (entries_ < 0) return sizes(split_blanks(line));
      entry(first, fields);
    });
    if (entries_ < 0) fail("the file ends without a line of sizes");
    if (seen_ != entries_) {
      fail("the file ends after " + human_count(seen_) + " of " + human_count(entries_) + " entries",
           "the file is truncated: fetch it again");
    }
    return std::move(edges_);
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& remedy = "") const {
    throw_at_line(file_->name(), number_, what, remedy);
  }

  void banner(std::string_view line) {
    std::string low(line);
    std::transform(low.begin(), low.end(), low.begin(), [](unsigned char c) { return std::tolower(c); });
    const std::vector<std::string_view> words = split_blanks(low);
    if (words.size() != 5 || words[0] != "%%matrixmarket" || words[1] != "matrix")
      fail("is not a Matrix Market banner", "begin the file with %%MatrixMarket matrix coordinate real general");
    if (words[2] != "coordinate") fail("holds a dense matrix", "a graph is a coordinate matrix");
    if (words[3] != "pattern" && words[3] != "real" && words[3] != "integer" && words[3] != "double")
      fail(in_quotes(words[3]) + " entries cannot be edge weights", "use pattern, real or integer entries");
    if (words[4] != "general" && words[4] != "symmetric") {
      fail(in_quotes(words[4]) + " matrices are not supported", "use a general or symmetric matrix");
    }
    weighted_ = words[3] != "pattern";
    symmetric_ = words[4] == "symmetric";
  }

  void sizes(const std::vector<std::string_view>& fields) {
    int64_t rows = 0;
    int64_t columns = 0;
    if (fields.size() != 3 || !parse_whole(fields[0], rows) || !parse_whole(fields[1], columns) ||
        !parse_whole(fields[2], entries_) || entries_ < 0) {
      fail("is not 'rows columns entries'");
    }
    if (rows != columns) {
      fail("a matrix of " + human_count(rows) + " by " + human_count(columns) + " is not a graph",
           "a graph has as many rows as columns");
    }
    if (rows < 1 || rows > kMaxNodeId + 1) fail("the number of rows is out of range");
    check_vertex_count(rows, entries_, file_->name() + ":" + std::to_string(number_));
    edges_.num_nodes = rows;
  }

  void entry(std::string_view first, FieldCursor& fields) {
    if (seen_ == entries_) fail("this line comes after the last of the " + human_count(entries_) + " entries");
    int64_t row = 0;
    int64_t column = 0;
    float weight = 1;
    const std::string_view second = fields.next();
    const std::string_view value = weighted_ ? fields.next() : "1";
    if (value.empty() || !fields.next().empty()) fail("is not 'row column" + std::string(weighted_ ? " value'" : "'"));
    if (!id(first, row) || !id(second, column)) {
      fail(in_quotes(first) + ", " + in_quotes(second) + " is not a place in a matrix of " +
           human_count(edges_.num_nodes) + " rows");
    }
    if (weighted_ && !parse_real(value, weight)) fail(in_quotes(value) + " is not a finite number");
    add(row, column, weight);
    if (symmetric_ && row != column) add(column, row, weight);
    ++seen_;
  }

  bool id(std::string_view text, int64_t& value) const {
    return parse_whole(text, value) && value >= 1 && value <= edges_.num_nodes;
  }

  void add(int64_t row, int64_t column, float weight) {
    edges_.src.push_back(static_cast<NodeId>(row - 1));
    edges_.dst.push_back(static_cast<NodeId>(column - 1));
    if (weighted_) edges_.weight.push_back(weight);
  }

  std::shared_ptr<const MappedFile> file_;
  EdgeList edges_;
  int64_t number_ = 0;
  int64_t entries_ = -1;
  int64_t seen_ = 0;
  bool weighted_ = false;
  bool symmetric_ = false;
};

std::string recognise_matrix_market(const DataSource& source) {
  if (source.is_folder()) return "";
  const MappedFile& file = *source.file();
  const bool packed = file.starts_with("\x1F\x8B");
  if (file.starts_with(kBanner) || (packed && first_line(source.path()).starts_with(kBanner)))
    return "begins with its banner";
  return source.path().ends_with(".mtx") || source.path().ends_with(".mtx.gz") ? "is called .mtx" : "";
}

Dataset load_matrix_market(const DataSource& source, const std::string&, const LoadOptions&) {
  Dataset data;
  data.graph = build_graph(Reader(source.file()).read(), source.path());
  data.notes.emplace_back("entry (row, column) was read as an edge row → column");
  return data;
}

}  // namespace

std::vector<Format> formats_in_matrix_market() {
  return {{"mtx", "Matrix Market; .gz too", recognise_matrix_market, load_matrix_market}};
}

}  // namespace nacre
