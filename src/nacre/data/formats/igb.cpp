// IGB and IGBH: processed/KIND/node_feat.npy, processed/paper/node_label_{19,2K}.npy and
// processed/KIND__RELATION__KIND/edge_index.npy [E, 2]. In the large sets features and labels have no header: they are
// f32, 1024 features a row.
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

// The folder with the data: the place itself or processed/ in it, with a slash at its end.
std::string base_of(const Place& place) {
  if (place.has(std::string("processed/") + kCites)) return "processed/";
  return place.has(kCites) ? "./" : "";
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

NpyReader open_rows(const std::shared_ptr<const MappedFile>& file, int64_t width) {
  if (file->starts_with("\x93NUMPY")) return NpyReader(file);
  const int64_t row = width * static_cast<int64_t>(sizeof(float));
  if (file->size() == 0 || file->size() % row != 0) {
    throw UserError(file->name(),
                    "has no .npy header, and its " + std::to_string(file->size()) +
                        " bytes are no whole number of rows of " + std::to_string(width) + " f32",
                    "the file is truncated: fetch it again");
  }
  const int64_t rows = file->size() / row;
  return NpyReader::headerless(file, {}, width == 1 ? Shape{rows} : Shape{rows, width});
}

std::string label_file(const Place& place, const std::string& base, const std::string& variant) {
  if (!variant.empty() && variant != "19" && variant != "2K")
    throw UserError("format", "'" + variant + "' are no labels of IGB", "use 19 or 2K");
  for (const std::string name : {"19", "2K"}) {
    std::string file = base + "paper/node_label_" + name + ".npy";
    if ((variant.empty() || variant == name) && place.has(file)) return file;
  }
  if (!variant.empty()) throw UserError(place.path(), "has no labels " + variant);
  return "";
}

// The full set: only the first papers have labels, whatever the file holds behind them, and splits follow their order.
constexpr int64_t kFullPapers = 269'346'174;
int64_t labelled_prefix(int64_t papers, const std::string& file) {
  if (papers != kFullPapers) return papers;
  return file.ends_with("_19.npy") ? 227'130'858 : 157'675'969;
}

// 60 % train, 20 % val, 20 % test of the labelled papers: shuffled by the seed, or by their order in the full set.
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

void read_splits(const Place& place, const std::string& base, int paper, const LoadOptions& options,
                 DatasetBuilder& builder) {
  for (const std::string& folder : {base, std::string("./")}) {
    if (!place.has(folder + "train_idx.pt") || !place.has(folder + "val_idx.pt")) continue;
    const auto ids = [&](const char* name) {
      const TorchFile file(place.open(folder + name));
      return builder.split(paper, file.numbers("").value_or(std::vector<int64_t>()), file.name());
    };
    builder.data.splits = {ids("train_idx.pt"), ids("val_idx.pt"), {}};
    builder.data.notes.emplace_back("splits of train_idx.pt and val_idx.pt; there is no test split");
    return;
  }
  if (builder.data.num_classes > 0) draw_splits(paper, options.seed, builder);
}

}  // namespace

std::string recognise_igb(const Place& place) {
  return place.is_folder() && !base_of(place).empty() ? std::string("holds ") + kCites : "";
}

Dataset load_igb(const Place& place, const std::string& variant, const LoadOptions& options) {
  const std::string base = base_of(place);
  if (base.empty()) throw UserError(place.path(), std::string("holds no ") + kCites);
  std::vector<LargeRelation> relations =
      read_large_relations(place, base.substr(0, base.size() - 1), "__", PairLayout::two_columns);
  DatasetBuilder builder(place.path());
  int64_t evidence = 0;
  for (const LargeRelation& r : relations) evidence += static_cast<int64_t>(r.edges.src.size());
  std::vector<std::pair<std::string, Tensor>> features;
  for (const std::string& kind : kinds_of(relations)) {
    int64_t count = count_in_edges(relations, kind);
    const std::string file = base + kind + "/node_feat.npy";
    if (count == 0 && kind != "paper") continue;
    if (place.has(file)) {
      NpyReader array = open_rows(place.open(file), kWidth);
      check_conversion(array);
      features.emplace_back(kind, features_from(std::move(array)));
      count = features.back().second.rows();
      evidence += count;
    }
    builder.add_type(kind, count);
  }
  check_vertex_count(builder.num_nodes(), evidence, place.path());
  for (LargeRelation& r : relations) {
    builder.add_edges({builder.type(r.name.src, r.file), r.name.name, builder.type(r.name.dst, r.file)},
                      std::move(r.edges), place.at(r.file));
  }
  for (auto& [kind, tensor] : features) builder.set_features(builder.find_type(kind), std::move(tensor));
  const int paper = builder.find_type("paper");
  if (const std::string file = label_file(place, base, variant); !file.empty()) {
    Dataset part;
    labels_from(open_rows(place.open(file), 1), part);
    std::vector<int32_t> labels(part.labels.begin(), part.labels.end());
    const int64_t prefix = std::min(labelled_prefix(builder.count(paper), file), static_cast<int64_t>(labels.size()));
    std::fill(labels.begin() + prefix, labels.end(), -1);
    if (static_cast<int64_t>(labels.size()) < builder.count(paper))
      labels.resize(static_cast<size_t>(builder.count(paper)), -1);
    builder.set_labels(paper, std::move(labels), part.num_classes);
    builder.data.notes.push_back("labels of " + file.substr(base.size()));
  }
  read_splits(place, base, paper, options, builder);
  builder.data.notes.emplace_back("relations are directed as stored; --undirected adds a reverse of each");
  return builder.finish();
}

}  // namespace nacre
