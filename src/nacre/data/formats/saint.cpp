// GraphSAINT: adj_full.npz (a SciPy CSR matrix), feats.npy, class_map.json ({"id": class} or {"id":
// [0, 1, …]}) and role.json ({"tr": [ids], "va": …, "te": …}).
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/formats/sparse.h"
#include "nacre/data/node_data.h"

namespace nacre {
namespace {

// Parses {"key": number or [numbers], …}, which is all that class_map.json and role.json hold. It
// never builds the JSON document, which would take many times the size of the file.
class FlatJson : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit FlatJson(const std::shared_ptr<const MappedFile>& file) : file_(file) {}
  virtual void number(const std::string& key, int64_t value, bool in_list) = 0;

  void parse() {
    const auto bytes = file_->bytes();
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    begin_ = at_ = text;
    nlohmann::json::sax_parse(Cursor{text, &at_}, Cursor{text + bytes.size(), &at_}, this);
  }

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("true or false"); }
  bool number_float(double value, const std::string&) override {
    // Some programs write labels as 0.0 and 1.0.
    if (value != std::trunc(value) || std::abs(value) > 1e15) return refuse("a fraction");
    return take(static_cast<int64_t>(value));
  }
  bool number_integer(int64_t value) override { return take(value); }
  bool number_unsigned(uint64_t value) override {
    return value > INT64_MAX ? refuse("a huge number") : take(static_cast<int64_t>(value));
  }
  bool string(std::string&) override { return refuse("a string"); }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool start_object(size_t) override { return depth_++ == 0 || refuse("an object in an object"); }
  bool key(std::string& name) override {
    key_ = std::move(name);
    return true;
  }
  bool end_object() override { return true; }
  bool start_array(size_t) override {
    return (depth_ == 1 && !std::exchange(in_list_, true)) || refuse("a list in a list");
  }
  bool end_array() override {
    in_list_ = false;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw UserError(file_->name() + " at byte " + std::to_string(position), "is not valid JSON",
                    "the file is truncated or damaged: fetch it again");
  }

 protected:
  const std::string& name() const { return file_->name(); }
  // Returns how far the parser has come, which is just behind the value it is reporting.
  int64_t position() const { return at_ - begin_; }
  std::string here() const { return name() + " at byte " + std::to_string(position()); }

 private:
  // An iterator that records how far the parser has read.
  struct Cursor {
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;
    const char* at;
    const char** furthest;
    reference operator*() const { return *at; }
    Cursor& operator++() {
      *furthest = ++at;
      return *this;
    }
    Cursor operator++(int) {
      const Cursor before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Cursor& other) const { return at == other.at; }
    bool operator!=(const Cursor& other) const { return at != other.at; }
  };

  bool refuse(const std::string& what) const {
    throw UserError(here(), "holds " + what + " at key " + in_quotes(key_));
  }
  bool take(int64_t value) {
    if (depth_ != 1) refuse("a number outside an object");
    number(key_, value, in_list_);
    return true;
  }

  std::shared_ptr<const MappedFile> file_;
  const char* begin_ = nullptr;
  const char* at_ = nullptr;
  std::string key_;
  int depth_ = 0;
  bool in_list_ = false;
};

class Roles : public FlatJson {
 public:
  using FlatJson::FlatJson;

  void number(const std::string& key, int64_t value, bool) override {
    const int part = key == "tr" ? 0 : key == "va" ? 1 : key == "te" ? 2 : -1;
    if (part < 0) throw UserError(here(), in_quotes(key) + " is not a role", "use tr, va and te");
    if (value < 0 || value > kMaxNodeId)
      throw UserError(here(), "names node " + std::to_string(value) + ", which is out of range");
    ids_[part].push_back(static_cast<NodeId>(value));
    positions_[part].push_back(position());
  }

  void finish(Dataset& data) {
    data.splits = {std::move(ids_[0]), std::move(ids_[1]), std::move(ids_[2])};
    Origin* origins[] = {&data.origins.train, &data.origins.val, &data.origins.test};
    for (size_t p = 0; p < 3; ++p) *origins[p] = {name(), "at byte", std::move(positions_[p])};
  }

 private:
  std::vector<NodeId> ids_[3];
  std::vector<int64_t> positions_[3];
};

class Classes : public FlatJson {
 public:
  Classes(const std::shared_ptr<const MappedFile>& file, int64_t num_nodes)
      : FlatJson(file), labels_(static_cast<size_t>(num_nodes), -1) {}

  void number(const std::string& key, int64_t value, bool in_list) override {
    if (key != key_ || !in_list) begin_vertex(key);
    if (value < 0 || value >= kMaxClasses)
      throw UserError(here(), "node " + key_ + " has class " + std::to_string(value) + ", which is out of range");
    if (!in_list) {
      labels_[vertex_] = static_cast<int32_t>(value);
      top_ = std::max(top_, value);
      return;
    }
    if (value > 1)
      throw UserError(
          here(), "node " + key_ + " has a list with " + std::to_string(value) + ", but lists may hold only 0 and 1");
    rows_.push_back(static_cast<uint8_t>(value));
  }

  void finish(Dataset& data) {
    end_vertex();
    if (rows_.empty()) {
      data.labels = std::move(labels_);
      data.num_classes = top_ + 1;
      return;
    }
    if (order_.size() != labels_.size() || top_ >= 0)
      throw UserError(here(), "the file ends, but some nodes have no list of 0 and 1");
    data.num_classes = width_;
    data.targets = Tensor(DType::u8, {static_cast<int64_t>(order_.size()), width_});
    for (size_t i = 0; i < order_.size(); ++i) {
      std::copy_n(rows_.begin() + static_cast<int64_t>(i) * width_, width_,
                  data.targets.data<uint8_t>() + order_[i] * width_);
    }
  }

 private:
  void begin_vertex(const std::string& key) {
    end_vertex();
    key_ = key;
    if (!parse_whole(key, vertex_) || vertex_ < 0 || vertex_ >= static_cast<int64_t>(labels_.size()))
      throw UserError(here(), in_quotes(key) + " is not a node; there are " +
                                  human_count(static_cast<int64_t>(labels_.size())) + " nodes");
    if (labels_[vertex_] != -1) throw UserError(here(), "names node " + key + " twice");
    first_ = rows_.size();
  }

  // Finishes the row of a vertex. All lists must be as long as the first.
  void end_vertex() {
    if (rows_.size() == first_) return;
    const auto length = static_cast<int64_t>(rows_.size() - first_);
    if (width_ != 0 && length != width_)
      throw UserError(
          here(), "node " + key_ + " has " + human_count(length) + " labels, but others have " + human_count(width_));
    width_ = length;
    labels_[vertex_] = 0;
    order_.push_back(vertex_);
    first_ = rows_.size();
  }

  std::vector<int32_t> labels_;
  std::vector<uint8_t> rows_;
  std::vector<int64_t> order_;  // vertex of each row in rows_
  std::string key_;
  int64_t vertex_ = 0;
  int64_t width_ = 0;
  int64_t top_ = -1;
  size_t first_ = 0;
};

std::string recognise_saint(const DataSource& source) {
  return source.has("adj_full.npz") && source.has("role.json") ? "holds adj_full.npz and role.json" : "";
}

Dataset load_saint(const DataSource& source, const std::string&, const LoadOptions&) {
  Dataset data;
  const NpzFile adjacency(source.open("adj_full.npz"));
  EdgeList edges = sparse_from(adjacency, "").edges();
  if (source.has("feats.npy")) set_features(NpyReader(source.open("feats.npy")), data);
  check_vertex_count(edges.num_nodes, static_cast<int64_t>(edges.src.size()), adjacency.name() + "[shape] entry 0");
  data.graph = graph_from(std::move(edges), adjacency.name());
  data.origins.graph = {adjacency.name(), "entry"};
  if (source.has("class_map.json")) {
    Classes classes(source.open("class_map.json"), data.num_nodes());
    classes.parse();
    classes.finish(data);
    data.origins.labels = {source.at("class_map.json"), "key"};
  }
  Roles roles(source.open("role.json"));
  roles.parse();
  roles.finish(data);
  data.notes.emplace_back("features are as stored; GraphSAINT's own code standardises them");
  return data;
}

}  // namespace

std::vector<Format> formats_in_saint() { return {{"saint", "GraphSAINT", recognise_saint, load_saint}}; }

}  // namespace nacre
