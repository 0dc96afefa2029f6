#include "nacre/data/load.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/base/warnings.h"
#include "nacre/data/formats/builder.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/made_features.h"
#include "nacre/data/node_data.h"
#include "nacre/data/split.h"
#include "nacre/data/twin.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTwin = "twin:";

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

// Returns at most `most` files of `folder`, those most like `name` first.
std::vector<std::string> nearby(const fs::path& folder, const std::string& name, size_t most) {
  std::vector<std::pair<size_t, std::string>> found;
  std::error_code error;
  constexpr int most_looked_at = 10'000;
  int looked_at = 0;
  for (fs::directory_iterator it(folder, error), end; !error && it != end && looked_at < most_looked_at;
       it.increment(error)) {
    ++looked_at;
    const std::string candidate = it->path().filename().string();
    if (!candidate.starts_with(".")) found.emplace_back(edit_distance(lower(candidate), lower(name)), candidate);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(most, found.size()); ++i) names.push_back((folder / found[i].second).string());
  return names;
}

std::string with_commas(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

[[noreturn]] void refuse_missing(const std::string& spec) {
  const fs::path path(spec);
  const std::string stem = lower(path.stem().string());
  for (const TwinSpec& twin : twin_specs()) {
    if (lower(twin.name) == stem) {
      throw UserError(spec, "no such file", "try twin:" + twin.name + " for a generated stand-in");
    }
  }
  std::error_code error;
  fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error))
    throw UserError(spec, "no such file", "the folder " + folder.string() + " does not exist");
  if (folder == ".") folder.clear();
  const std::vector<std::string> names = nearby(folder.empty() ? fs::path(".") : folder, path.filename().string(), 5);
  const std::string hint = names.empty() ? "the folder is empty" : "nearby: " + with_commas(names);
  throw UserError(spec, "no such file", hint + "; generated data sets are named twin:NAME");
}

std::string stem_of(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  for (const char* ending : {".gz", ".npz", ".nacre", ".txt", ".csv", ".tsv", ".edges", ".mtx"}) {
    if (name.ends_with(ending) && name.size() > std::string_view(ending).size())
      name.resize(name.size() - std::string_view(ending).size());
  }
  return name;
}

Dataset load_place(const std::string& path, const LoadOptions& options) {
  std::error_code error;
  if (!fs::exists(path, error)) refuse_missing(path);
  const DataSource source(path);
  const Choice choice = choose_format(source, options.format);
  Dataset data = choice.format->load(source, choice.variant, options);
  if (data.name.empty()) data.name = source.is_folder() ? source.name() : stem_of(path);
  // read_native() has already validated as much as was asked for.
  if (!is_own_file(choice)) validate(data, path);
  return data;
}

// Returns a warning if the classes look wrong, otherwise an empty text. Labels such as 0, 1, 2 and
// one stray 50,000 give 50,001 classes, and labels that are ids give one class per node.
std::string doubtful_classes(const Dataset& data) {
  if (data.labels.empty() || data.num_classes < 1) return "";
  std::vector<bool> seen(data.num_classes, false);
  int64_t labelled = 0;
  for (const int32_t label : data.labels) {
    if (label < 0) continue;
    ++labelled;
    seen[label] = true;
  }
  constexpr int64_t kFew = 8;
  const int64_t present = std::count(seen.begin(), seen.end(), true);
  if (data.num_classes > 2 * present + kFew) {
    return "the labels give " + human_count(data.num_classes) + " classes, of which only " + human_count(present) +
           " occur: the largest label is " + human_count(data.num_classes - 1) + "; check the labels";
  }
  if (labelled >= 2 * kFew && 2 * present > labelled) {
    return "the labels give " + human_count(present) + " classes for " + human_count(labelled) +
           " labelled nodes; check that the file holds labels";
  }
  return "";
}

void add_warning(const std::string& what, Dataset& data) {
  const std::string note = kWarningNote + what;
  if (what.empty() || std::find(data.notes.begin(), data.notes.end(), note) != data.notes.end()) return;
  data.notes.push_back(note);
}

void drop_weights(Dataset& data) {
  if (!data.graph.weighted()) {
    data.notes.emplace_back("--ignore-edge-weights has no effect: the edges have no weights");
    return;
  }
  GraphArrays arrays = data.graph.arrays();
  arrays.edge_weight = {};
  data.graph = Graph::trusted(std::move(arrays));
  data.notes.emplace_back("the weights of the edges are ignored");
}

// Throws UserError for options that cannot be followed, before anything is read.
void check_options(const LoadOptions& options) {
  if (options.num_nodes < 0) throw UserError("--num-nodes", "is negative", "leave it out or give the number of nodes");
  if (options.split.empty()) return;
  parse_split(options.split);
  if (!options.splits_file.empty())
    throw UserError("--split", "draws a split, and --splits reads one from a file", "give one of the two");
}

}  // namespace

Dataset load_dataset(const std::string& spec, const LoadOptions& options) {
  check_options(options);
  const bool twin = spec.starts_with(kTwin);
  // The features of a twin are not generated if others are made instead.
  const bool features = !is_made_features(options.features_file);
  Dataset data =
      twin ? make_twin(std::string_view(spec).substr(kTwin.size()), options.seed, features) : load_place(spec, options);
  return complete_dataset(std::move(data), spec, options);
}

Dataset complete_dataset(Dataset data, const std::string& spec, const LoadOptions& options) {
  check_options(options);
  if (options.num_nodes > 0 && options.num_nodes != data.num_nodes()) {
    throw UserError(spec, "has " + human_count(data.num_nodes()) + " nodes, not " + human_count(options.num_nodes),
                    "leave --num-nodes out");
  }
  if (read_node_files(options, data)) validate(data, spec);
  if (!spec.starts_with(kTwin)) add_warning(doubtful_classes(data), data);
  if (options.ignore_edge_weights) drop_weights(data);
  const bool labelled = data.multilabel() || !data.labels.empty();
  if (!options.split.empty() && (options.split_needed || labelled)) draw_split(options.split, options.split_seed, data);
  if (options.undirected) {
    const int64_t before = data.graph.num_edges();
    if (data.relations.empty()) {
      data.graph = make_undirected(data.graph);
    } else {
      data = add_reverse_relations(std::move(data));
    }
    data.notes.push_back("made undirected: " + human_count(before) + " edges became " +
                         human_count(data.graph.num_edges()));
  }
  if (is_made_features(options.features_file)) make_features(options.features_file, data);
  return data;
}

}  // namespace nacre
