// GraphBolt's sets on disk: metadata.yaml names the kinds of vertices and their numbers, the edges
// ([2, E] arrays or headerless csv), features and tasks. The sets of a task give vertices (seeds)
// and their labels. Pairs of vertices are kept as held-out edges.
#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/builder.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/relation_name.h"
#include "nacre/data/formats/torch_file.h"
#include "nacre/data/formats/yaml.h"
#include "nacre/data/node_data.h"
#include "nacre/data/npz.h"

namespace nacre {
namespace {

constexpr const char* kFile = "metadata.yaml";
constexpr const char* kOnlyType = "_N";

// Returns the kind of an entry, or `otherwise` if it has none: the field is absent or null.
std::string type_of(const Yaml& entry, const std::string& otherwise) {
  const std::string type = entry.string("type", "");
  return type.empty() || type == "null" || type == "~" ? otherwise : type;
}

std::shared_ptr<const MappedFile> open_path(const DataSource& source, const Yaml& entry) {
  return named_file(source, entry, "path");
}

std::vector<int64_t> whole_numbers(const DataSource& source, const Yaml& entry, int64_t& columns) {
  const std::string format = entry.string("format", "numpy");
  const auto file = open_path(source, entry);
  columns = 1;
  if (format == "torch") return TorchFile(file).numbers("").value_or(std::vector<int64_t>());
  if (format != "numpy") throw UserError(entry.where, "format '" + format + "' is not supported", "use numpy or torch");
  NpyReader array(file);
  if (array.shape().size() == 2) columns = array.shape()[1];
  const Buffer<int64_t> values = array.to_i64(NanAs::minus_one);
  return {values.data(), values.data() + values.size()};
}

class Reader {
 public:
  explicit Reader(const DataSource& source)
      : source_(source), meta_(read_yaml(source.open(kFile))), builder_(source.path()) {}

  DatasetBuilder read(const std::string& variant) {
    builder_.data.name = meta_.string("dataset_name", "");
    read_graph();
    read_features();
    read_task(variant);
    return std::move(builder_);
  }

 private:
  void read_graph() {
    const Yaml& graph = meta_.get("graph");
    if (!graph.given()) throw UserError(meta_.where, "has no 'graph'");
    int64_t nodes = 0;
    for (const Yaml& entry : graph.list("nodes")) {
      const int64_t count = entry.get("num").given() ? entry.get("num").whole() : -1;
      if (count < 0) throw UserError(entry.where, "'num' does not give the number of nodes");
      builder_.add_type(type_of(entry, kOnlyType), count);
      nodes += count;
    }
    if (nodes == 0) throw UserError(meta_.where, "has no nodes");
    int64_t edges = 0;
    for (const Yaml& entry : graph.list("edges")) {
      EdgeInput input = edge_input(entry);
      edges += input.at_most;
      builder_.add_edges(relation(entry), std::move(input));
    }
    check_vertex_count(nodes, std::max(edges, evidence()), graph.list("nodes")[0].where);
  }

  // Returns the number of values in the feature arrays. Like the number of edges, it shows whether
  // a claimed number of vertices is plausible.
  int64_t evidence() const {
    int64_t rows = 0;
    if (!meta_.get("feature_data").given()) return 0;
    for (const Yaml& entry : meta_.list("feature_data")) {
      if (entry.string("format", "numpy") == "numpy" && source_.has(entry.string("path", "")))
        rows += std::max<int64_t>(0, NpyReader(open_path(source_, entry)).header().count);
    }
    return rows;
  }

  Relation relation(const Yaml& entry) const {
    const std::string type = type_of(entry, "");
    if (type.empty()) return {0, "_E", 0};
    const RelationName names = split_relation(type, ":", entry.where);
    return {builder_.type(names.src, entry.where), names.name, builder_.type(names.dst, entry.where)};
  }

  EdgeInput edge_input(const Yaml& entry) {
    const std::string format = entry.string("format", "csv");
    if (format == "numpy") return npy_edges(open_path(source_, entry), PairLayout::two_rows);
    if (format != "csv") throw UserError(entry.where, "format '" + format + "' is not supported", "use csv or numpy");
    return text_edges(open_path(source_, entry));
  }

  void read_features() {
    if (!meta_.get("feature_data").given()) return;
    std::string unused;
    std::vector<std::string> done;
    for (const bool named_feat : {true, false}) {
      for (const Yaml& entry : meta_.list("feature_data")) {
        const std::string name = entry.string("name", "");
        if ((name == "feat") != named_feat) continue;
        const std::string type = type_of(entry, kOnlyType);
        const bool wanted = entry.string("domain", "node") == "node" && entry.string("format", "numpy") == "numpy" &&
                            std::find(done.begin(), done.end(), type) == done.end() &&
                            (named_feat || name.find("feat") != std::string::npos);
        if (!wanted) {
          unused += (unused.empty() ? "" : ", ") + type + "/" + name;
          continue;
        }
        done.push_back(type);
        builder_.set_features(builder_.type(type, entry.where), npy_features(open_path(source_, entry)));
      }
    }
    if (!unused.empty()) builder_.data.notes.push_back("feature data that was not used: " + unused);
  }

  const Yaml* task(const std::string& variant) {
    if (!meta_.get("tasks").given()) return nullptr;
    std::string names;
    for (const Yaml& entry : meta_.list("tasks")) {
      const std::string name = entry.string("name", "");
      if (variant.empty() || name == variant) {
        if (variant.empty() && meta_.list("tasks").size() > 1)
          builder_.data.notes.push_back("the first task, " + name +
                                        ", was read; --format graphbolt:TASK reads another");
        return &entry;
      }
      names += (names.empty() ? "" : ", ") + name;
    }
    if (variant.empty()) return nullptr;
    throw UserError(meta_.where, "has no task '" + variant + "'", "found: " + names);
  }

  void read_task(const std::string& variant) {
    const Yaml* chosen = task(variant);
    if (chosen == nullptr) return;
    Dataset& d = builder_.data;
    HeldOutEdges ignored;
    read_sets(*chosen, "train_set", {d.splits.train, d.origins.train, ignored});
    read_sets(*chosen, "validation_set", {d.splits.val, d.origins.val, d.val_edges});
    read_sets(*chosen, "test_set", {d.splits.test, d.origins.test, d.test_edges});
    if (labels_.empty()) return;
    int64_t classes = 0;
    for (const int32_t label : labels_) classes = std::max(classes, int64_t{label} + 1);
    if (chosen->get("num_classes").given()) classes = std::max(classes, chosen->get("num_classes").whole());
    builder_.set_labels(labelled_, std::move(labels_), classes, {source_.at(kFile)});
  }

  // Says where read_sets() puts what one of the three sets holds: ids of vertices with their
  // origin, or pairs of vertices.
  struct Into {
    Array<NodeId>& ids;
    Origin& origin;
    HeldOutEdges& pairs;
  };

  void read_sets(const Yaml& chosen, const char* key, const Into& into) {
    if (!chosen.get(key).given()) return;
    for (const Yaml& set : chosen.list(key)) {
      const std::string type = type_of(set, kOnlyType);
      const Yaml* seeds = nullptr;
      const Yaml* labels = nullptr;
      for (const Yaml& part : set.list("data")) {
        const std::string name = part.string("name", seeds == nullptr ? "seeds" : "labels");
        if (name == "seeds" || name == "seed_nodes" || name == "node_pairs") seeds = &part;
        if (name == "labels") labels = &part;
      }
      if (seeds == nullptr) throw UserError(set.where, "names no seeds");
      read_set(type, *seeds, labels, into);
    }
  }

  void read_set(const std::string& type, const Yaml& seeds, const Yaml* labels, const Into& into) {
    int64_t columns = 0;
    const std::vector<int64_t> numbers = whole_numbers(source_, seeds, columns);
    if (columns == 2) return read_pairs(type, numbers, seeds, into.pairs);
    if (columns != 1)
      throw UserError(seeds.where, "seeds have " + human_count(columns) + " columns; 1 or 2 are supported");
    const int of = builder_.type(type, seeds.where);
    const Origin origin{file_of(seeds), "entry"};
    const Array<NodeId> more = builder_.split(of, numbers, origin);
    // An origin can name one file only. If the ids come from several files, it names metadata.yaml.
    into.origin = into.ids.empty() ? origin : Origin{source_.at(kFile) + " at", "entry"};
    std::vector<NodeId> all(into.ids.begin(), into.ids.end());
    all.insert(all.end(), more.begin(), more.end());
    into.ids = std::move(all);
    if (labels == nullptr) return;
    const std::vector<int64_t> classes = whole_numbers(source_, *labels, columns);
    if (classes.size() != numbers.size()) {
      throw UserError(file_of(*labels) + " entry " + std::to_string(std::min(classes.size(), numbers.size())),
                      human_count(static_cast<int64_t>(numbers.size())) + " seeds have " +
                          human_count(static_cast<int64_t>(classes.size())) + " labels");
    }
    if (labels_.empty()) {
      labelled_ = of;
      labels_.assign(builder_.count(of), -1);
    }
    if (labelled_ != of)
      throw UserError(seeds.where, "labels two kinds of nodes", "keep the labels of one kind of node only");
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (classes[i] >= kMaxClasses)
        throw UserError(file_of(*labels) + " entry " + std::to_string(i),
                        "class " + std::to_string(classes[i]) + " is out of range");
      labels_[numbers[i]] = static_cast<int32_t>(std::max<int64_t>(classes[i], -1));
    }
  }

  void read_pairs(const std::string& type, const std::vector<int64_t>& numbers, const Yaml& seeds,
                  HeldOutEdges& pairs) {
    int from = 0;
    int to = 0;
    if (is_relation(type, ":")) {
      const RelationName names = split_relation(type, ":", seeds.where);
      from = builder_.type(names.src, seeds.where);
      to = builder_.type(names.dst, seeds.where);
    }
    std::vector<int64_t> ends[2];
    for (size_t i = 0; i < numbers.size(); ++i) ends[i % 2].push_back(numbers[i]);
    pairs.src = builder_.split(from, ends[0], {file_of(seeds)});
    pairs.dst = builder_.split(to, ends[1], {file_of(seeds)});
  }

  std::string file_of(const Yaml& entry) const { return source_.at(entry.string("path")); }

  const DataSource& source_;
  Yaml meta_;
  DatasetBuilder builder_;
  std::vector<int32_t> labels_;
  int labelled_ = 0;
};

std::string recognise_graphbolt(const DataSource& source) {
  return source.has(kFile) ? std::string("holds ") + kFile : "";
}

DatasetBuilder open_graphbolt(const DataSource& source, const std::string& variant, const LoadOptions&) {
  return Reader(source).read(variant);
}

}  // namespace

std::vector<Format> formats_in_graphbolt() {
  return {{"graphbolt", "DGL GraphBolt on disk (metadata.yaml)", recognise_graphbolt, load_opened<open_graphbolt>,
           "the task", opened<open_graphbolt>}};
}

}  // namespace nacre
