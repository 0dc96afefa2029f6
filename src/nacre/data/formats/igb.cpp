// IGB and IGBH: processed/KIND/node_feat.npy, processed/paper/node_label_{19,2K}.npy and
// processed/KIND__RELATION__KIND/edge_index.npy [E, 2]. In the large sets, features and labels have
// no header: they are f32, with 1024 features per row.
#include <algorithm>
#include <numeric>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/philox.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/lsc.h"
#include "nacre/data/formats/torch_file.h"
#include "nacre/data/node_data.h"

namespace nacre {
namespace {

constexpr int64_t kWidth = 1024;
constexpr const char* kCites = "paper__cites__paper/edge_index.npy";
constexpr const char* kKinds[] = {"paper", "author", "institute", "fos", "journal", "conference"};

// Returns the folder with the data, ending in a slash: the place itself or processed/ in it.
// Returns an empty text if there is none.
std::string base_of(const DataSource& source) {
  if (source.has(std::string("processed/") + kCites)) return "processed/";
  return source.has(kCites) ? "./" : "";
}

std::vector<std::string> kinds_of(const std::vector<LargeRelation>& relations) {
  std::vector<std::string> kinds(std::begin(kKinds), std::end(kKinds));
  for (const LargeRelation& r : relations) {
    for (const std::string& kind : {r.name.src, r.name.dst}) {
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
    }
  }
  return kinds;
}

bool has_header(const MappedFile& file) { return file.starts_with("\x93NUMPY"); }

NpyReader open_labels(const std::shared_ptr<const MappedFile>& file) {
  if (has_header(*file)) return NpyReader(file);
  constexpr int64_t bytes = sizeof(float);
  if (file->size() == 0 || file->size() % bytes != 0) {
    throw UserError(
        file->name() + " at byte " + std::to_string(file->size() / bytes * bytes),
        "has no .npy header, and its " + std::to_string(file->size()) + " bytes are not a whole number of f32 labels",
        "the file is truncated: fetch it again");
  }
  return NpyReader::headerless(file, {}, {file->size() / bytes});
}

std::string label_file(const DataSource& source, const std::string& base, const std::string& variant) {
  if (!variant.empty() && variant != "19" && variant != "2K")
    throw UserError("--format", "unknown set of labels '" + variant + "'", "choose 19 or 2K");
  for (const std::string name : {"19", "2K"}) {
    std::string file = base + "paper/node_label_" + name + ".npy";
    if ((variant.empty() || variant == name) && source.has(file)) return file;
  }
  if (!variant.empty()) throw UserError(source.path(), "has no labels " + variant);
  return "";
}

// labelled_prefix() returns how many papers have labels. In the full set, which has kFullPapers
// papers, only the first papers have labels, whatever the file holds after them.
constexpr int64_t kFullPapers = 269'346'174;
int64_t labelled_prefix(int64_t papers, const std::string& file) {
  if (papers != kFullPapers) return papers;
  return file.ends_with("_19.npy") ? 227'130'858 : 157'675'969;
}

// Draws 60 % of the labelled papers for training, 20 % for validation and 20 % for test. The papers
// are shuffled by the seed, except in the full set, where they keep their order.
void draw_splits(int paper, uint64_t seed, DatasetBuilder& builder) {
  const bool shuffled = builder.count(paper) != kFullPapers;
  std::vector<NodeId> ids;
  const int64_t first = builder.offset(paper);
  for (int64_t v = first; v < first + builder.count(paper); ++v) {
    if (builder.data.multilabel() || builder.data.labels[v] >= 0) ids.push_back(static_cast<NodeId>(v));
  }
  const uint64_t key = mix_key(seed, 0x494742);  // "IGB"
  for (size_t i = shuffled ? ids.size() : 0; i > 1; --i) {
    const PhiloxBlock block = philox(key, 0, i);
    const auto j = static_cast<size_t>((static_cast<__uint128_t>(uint64_t{block[0]} << 32 | block[1]) * i) >> 64);
    std::swap(ids[i - 1], ids[j]);
  }
  const auto train = static_cast<int64_t>(ids.size() * 6 / 10);
  const auto val = static_cast<int64_t>(ids.size() * 2 / 10);
  const auto piece = [&](int64_t begin, int64_t end) {
    std::vector<NodeId> part(ids.begin() + begin, ids.begin() + end);
    std::sort(part.begin(), part.end());
    return part;
  };
  builder.data.splits = {piece(0, train), piece(train, train + val),
                         piece(train + val, static_cast<int64_t>(ids.size()))};
  builder.data.notes.emplace_back(
      shuffled ? "the set has no split: 60 / 20 / 20 % of the labelled papers were drawn at random (--data-seed)"
               : "the set has no split: the first 60, next 20 and last 20 % of the labelled papers were taken");
}

void read_labels(const DataSource& source, const std::string& file, int paper, DatasetBuilder& builder) {
  Dataset part;
  labels_from(open_labels(source.open(file)), part);
  std::vector<int32_t> labels(part.labels.begin(), part.labels.end());
  part.labels = {};
  const int64_t prefix = std::min(labelled_prefix(builder.count(paper), file), static_cast<int64_t>(labels.size()));
  std::fill(labels.begin() + prefix, labels.end(), -1);
  if (static_cast<int64_t>(labels.size()) < builder.count(paper)) labels.resize(builder.count(paper), -1);
  builder.set_labels(paper, std::move(labels), part.num_classes, part.origins.labels);
}

void read_splits(const DataSource& source, const std::string& base, int paper, uint64_t seed, DatasetBuilder& builder) {
  for (const std::string& folder : {base, std::string("./")}) {
    if (!source.has(folder + "train_idx.pt") || !source.has(folder + "val_idx.pt")) continue;
    using Part = DatasetBuilder::Part;
    for (const auto& [name, part] : {std::pair{"train_idx.pt", Part::train}, std::pair{"val_idx.pt", Part::val}}) {
      const TorchFile file(source.open(folder + name));
      builder.set_split(part, paper, file.numbers("").value_or(std::vector<int64_t>()), {file.name(), "entry"});
    }
    builder.data.notes.emplace_back("the splits are those of train_idx.pt and val_idx.pt; there is no test split");
    return;
  }
  if (builder.data.num_classes > 0) draw_splits(paper, seed, builder);
}

std::string recognise_igb(const DataSource& source) {
  return source.is_folder() && !base_of(source).empty() ? std::string("holds ") + kCites : "";
}

DatasetBuilder open_igb(const DataSource& source, const std::string& variant, const LoadOptions& options) {
  const std::string base = base_of(source);
  if (base.empty()) throw UserError(source.path(), std::string("holds no ") + kCites);
  std::vector<LargeRelation> relations =
      open_large_relations(source, base.substr(0, base.size() - 1), "__", PairLayout::two_columns);
  DatasetBuilder builder(source.path());
  std::vector<std::pair<std::string, FeatureInput>> features;
  for (const std::string& kind : kinds_of(relations)) {
    const std::string inside = base + kind + "/node_feat.npy";
    if (!has_edges(relations, kind) && kind != "paper") continue;
    if (!source.has(inside)) {
      builder.add_type(kind, count_in_edges(relations, kind));
      continue;
    }
    const auto file = source.open(inside);
    features.emplace_back(kind, has_header(*file) ? npy_features(file) : raw_features(file, kWidth));
    builder.add_type(kind, features.back().second.rows);
  }
  add_relations(std::move(relations), builder);
  for (auto& [kind, input] : features) builder.set_features(builder.find_type(kind), std::move(input));
  const int paper = builder.find_type("paper");
  const std::string file = label_file(source, base, variant);
  if (!file.empty()) builder.data.notes.push_back("labels of " + file.substr(base.size()));
  builder.data.notes.emplace_back("relations are directed as stored; --undirected adds a reverse of each");
  builder.later(paper, [=, seed = options.seed](DatasetBuilder& b) {
    if (!file.empty()) read_labels(source, file, paper, b);
    read_splits(source, base, paper, seed, b);
  });
  return builder;
}

}  // namespace

std::vector<Format> formats_in_igb() {
  return {{"igb", "IGB and IGBH", recognise_igb, load_opened<open_igb>, "the labels: 19 or 2K", opened<open_igb>}};
}

}  // namespace nacre
