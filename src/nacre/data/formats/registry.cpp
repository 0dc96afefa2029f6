#include <algorithm>
#include <array>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/names.h"
#include "nacre/data/formats/format.h"

namespace nacre {
namespace {

template <DatasetBuilder (*open)(const Place&, const std::string&, const LoadOptions&)>
Dataset load_opened(const Place& place, const std::string& variant, const LoadOptions& options) {
  return open(place, variant, options).finish();
}

template <DatasetBuilder (*open)(const Place&, const std::string&, const LoadOptions&)>
std::optional<DatasetBuilder> opened(const Place& place, const std::string& variant, const LoadOptions& options) {
  return open(place, variant, options);
}

constexpr std::array kFormats = {
    Format{"nacre", "Nacre's own file", recognise_nacre, load_nacre},
    Format{"npz", "one .npz: edge_index, x, y, train_idx, …", recognise_npz, load_npz, "", open_npz},
    Format{"edges", "text edge list, ids kept; .gz too", recognise_edges, load_edges},
    Format{"snap", "text edge list, ids of any size renumbered; .gz too", recognise_snap, load_snap},
    Format{"names", "text edge list, ids are words; .gz too", recognise_names, load_names},
    Format{"mtx", "Matrix Market; .gz too", recognise_matrix_market, load_matrix_market},
    Format{"ogb", "OGB node property, csv.gz or npz", recognise_ogb, load_opened<open_ogb>, "the split",
           opened<open_ogb>},
    Format{"ogb-hetero", "OGB node property with several kinds of nodes", recognise_ogb_hetero,
           load_opened<open_ogb_hetero>, "the split", opened<open_ogb_hetero>},
    Format{"mag240m", "MAG240M of OGB-LSC", recognise_mag240m, load_opened<open_mag240m>, "", opened<open_mag240m>},
    Format{"igb", "IGB and IGBH", recognise_igb, load_opened<open_igb>, "the labels: 19 or 2K", opened<open_igb>},
    Format{"saint", "GraphSAINT", recognise_saint, load_saint},
    Format{"dgl-reddit", "DGL's Reddit", recognise_dgl_reddit, load_dgl_reddit, "the graph: plain or self_loop"},
    Format{"shchur", "one .npz: adj_data, attr_data, labels, …", recognise_shchur, load_shchur},
    Format{"geom-gcn", "Geom-GCN text", recognise_geom_gcn, load_geom_gcn, "the split: 0 to 9"},
    Format{"planetoid", "Planetoid's ind.* files", recognise_planetoid, load_planetoid, "the set, such as cora"},
    Format{"linqs", "LINQS .content and .cites", recognise_linqs, load_linqs},
    Format{"dgl-csv", "DGL CSVDataset (meta.yaml)", recognise_dgl_csv, load_dgl_csv},
    Format{"graphbolt", "DGL GraphBolt on disk (metadata.yaml)", recognise_graphbolt, load_opened<open_graphbolt>,
           "the task", opened<open_graphbolt>},
    Format{"triples", "knowledge graph: train, valid, test of head, relation, tail", recognise_triples, load_triples},
    Format{"lightgcn", "train.txt and test.txt of user item item …", recognise_lightgcn, load_lightgcn},
};

const Format& by_name(const std::string& name) {
  std::vector<std::string> names;
  names.reserve(kFormats.size());
  for (const Format& f : kFormats) names.emplace_back(f.name);
  const std::string known = choose_name("--format", "format", name.substr(0, 40), names);
  return *std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& f) { return known == f.name; });
}

std::string contents(const Place& place) {
  constexpr size_t shown = 6;
  std::vector<std::string> names = place.files();
  for (const std::string& folder : place.folders()) names.push_back(folder + "/");
  std::string text;
  for (size_t i = 0; i < std::min(shown, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > shown) text += " and " + std::to_string(names.size() - shown) + " more";
  return text.empty() ? "nothing" : text;
}

}  // namespace

std::span<const Format> formats() { return kFormats; }

std::string format_names() {
  std::string names;
  for (const Format& format : kFormats) names += (names.empty() ? "" : ", ") + std::string(format.name);
  return names;
}

Choice choose_format(const Place& place, const std::string& asked) {
  if (!asked.empty()) {
    const size_t colon = asked.find(':');
    const Format& format = by_name(asked.substr(0, colon));
    const std::string variant = colon == std::string::npos ? "" : asked.substr(colon + 1);
    if (!variant.empty() && std::string(format.variants).empty())
      throw UserError("format", std::string(format.name) + " has no variants", "leave out ':" + variant + "'");
    return {&format, variant};
  }
  std::vector<const Format*> fitting;
  std::string reasons;
  for (const Format& format : kFormats) {
    const std::string why = format.recognise(place);
    if (why.empty()) continue;
    fitting.push_back(&format);
    reasons += (reasons.empty() ? "" : ", ") + std::string(format.name) + " (" + why + ")";
  }
  if (fitting.size() == 1) return {fitting[0], ""};
  if (fitting.empty()) {
    if (!place.is_folder()) refuse_stranger(place);
    throw UserError(place.path(), "is a folder of no known layout; it holds " + contents(place),
                    "name a file in it, or say what it is with --format: " + format_names());
  }
  throw UserError(place.path(), "could be " + reasons, "say which with --format");
}

}  // namespace nacre
