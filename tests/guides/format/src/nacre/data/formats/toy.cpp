// A toy: a text file with a line "toy NODES", lines "node ID CLASS FEATURE…" and lines "edge FROM
// TO".
#include <utility>

#include "nacre/base/error.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

class Reader {
 public:
  explicit Reader(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {}

  Dataset read() {
    for_each_line(file_, [&](std::string_view line, int64_t number) {
      number_ = number;
      const std::vector<std::string_view> fields = split_blanks(line);
      if (fields.empty()) return;
      if (fields[0] == "toy" && fields.size() == 2) return begin(fields[1]);
      if (fields[0] == "node" && fields.size() > 3) return node(fields);
      if (fields[0] == "edge" && fields.size() == 3) return edge(fields);
      fail("is not 'toy NODES', 'node ID CLASS FEATURE…' or 'edge FROM TO'");
    });
    if (labels_.empty()) fail("is the last line, and none names a node");
    Dataset data;
    data.graph = build_graph(std::move(edges_), file_->name());
    const auto rows = static_cast<int64_t>(labels_.size());
    data.features = Tensor(DType::f32, {rows, width_});
    std::copy(features_.begin(), features_.end(), data.features.data<float>());
    data.num_classes = classes_;
    data.labels = Array<int32_t>(std::move(labels_));
    return data;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw_at_line(file_->name(), number_, what); }

  int64_t whole(std::string_view text, int64_t below) const {
    int64_t value = 0;
    if (!parse_whole(text, value) || value < 0 || value >= below) fail(in_quotes(text) + " is out of range");
    return value;
  }

  void begin(std::string_view nodes) {
    edges_.num_nodes = whole(nodes, 1'000'000);
    labels_.assign(static_cast<size_t>(edges_.num_nodes), -1);
  }

  void node(const std::vector<std::string_view>& fields) {
    const int64_t id = whole(fields[1], edges_.num_nodes);
    const int64_t label = whole(fields[2], 1000);
    const auto columns = static_cast<int64_t>(fields.size()) - 3;
    if (width_ == 0) {
      width_ = columns;
      features_.assign(static_cast<size_t>(edges_.num_nodes * width_), 0);
    }
    if (columns != width_) fail("has another number of features than the first node");
    labels_[static_cast<size_t>(id)] = static_cast<int32_t>(label);
    classes_ = std::max(classes_, label + 1);
    for (int64_t f = 0; f < width_; ++f) {
      if (!parse_real(fields[static_cast<size_t>(f) + 3], features_[static_cast<size_t>(id * width_ + f)]))
        fail(in_quotes(fields[static_cast<size_t>(f) + 3]) + " is not a number");
    }
  }

  void edge(const std::vector<std::string_view>& fields) {
    edges_.src.push_back(static_cast<NodeId>(whole(fields[1], edges_.num_nodes)));
    edges_.dst.push_back(static_cast<NodeId>(whole(fields[2], edges_.num_nodes)));
  }

  std::shared_ptr<const MappedFile> file_;
  int64_t number_ = 0;
  EdgeList edges_;
  std::vector<int32_t> labels_;
  std::vector<float> features_;
  int64_t width_ = 0;
  int64_t classes_ = 0;
};

std::string recognise(const DataSource& source) {
  return !source.is_folder() && source.file()->starts_with("toy ") ? "begins with 'toy'" : "";
}

Dataset load(const DataSource& source, const std::string&, const LoadOptions&) { return Reader(source.file()).read(); }

}  // namespace

std::vector<Format> formats_in_toy() { return {{"toy", "a toy: nodes and edges as text", recognise, load}}; }

}  // namespace nacre
