#include "nacre/data/load.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/edge_list.h"
#include "nacre/data/mapped_file.h"
#include "nacre/data/native.h"
#include "nacre/data/node_data.h"
#include "nacre/data/npz.h"
#include "nacre/data/twin.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTwin = "twin:";
constexpr const char* kFormats = "Nacre reads .nacre, .npz and edge lists as text or .gz";

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

// Levenshtein distance of two short names.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row[b.size()];
}

// Files in `folder`, those most like `name` first; at most `most`.
std::vector<std::string> nearby(const fs::path& folder, const std::string& name, size_t most) {
  std::vector<std::pair<size_t, std::string>> found;
  std::error_code error;
  constexpr int most_looked_at = 10'000;
  int looked_at = 0;
  for (fs::directory_iterator it(folder, error), end; !error && it != end && looked_at < most_looked_at;
       it.increment(error)) {
    ++looked_at;
    const std::string candidate = it->path().filename().string();
    if (!candidate.starts_with(".")) found.emplace_back(distance(lower(candidate), lower(name)), candidate);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(most, found.size()); ++i) names.push_back((folder / found[i].second).string());
  return names;
}

std::string listed(const std::vector<std::string>& names) {
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
  const std::string hint = names.empty() ? "the folder is empty" : "nearby: " + listed(names);
  throw UserError(spec, "no such file", hint + "; generated data sets are named twin:NAME");
}

[[noreturn]] void refuse_folder(const std::string& spec) {
  std::vector<std::string> usable;
  for (const std::string& name : nearby(spec, "", 200)) {
    for (const char* ending : {".npz", ".nacre", ".txt", ".csv", ".tsv", ".edges", ".gz"}) {
      if (name.ends_with(ending) && usable.size() < 5) usable.push_back(name);
    }
  }
  throw UserError(spec, "is a folder",
                  usable.empty() ? "name a file; " + std::string(kFormats) : "name a file, such as " + listed(usable));
}

// Names of formats that are often tried, by their first bytes.
std::string known_stranger(const MappedFile& file) {
  constexpr std::pair<std::string_view, const char*> strangers[] = {{"\x89HDF", "an HDF5 file"},
                                                                    {"PAR1", "a Parquet file"},
                                                                    {"\x80\x02", "a Python pickle"},
                                                                    {"\x80\x04", "a Python pickle"},
                                                                    {"\x28\xB5\x2F\xFD", "a Zstandard file"},
                                                                    {"BZh", "a bzip2 file"},
                                                                    {"\xFD"
                                                                     "7zXZ",
                                                                     "an xz file"}};
  for (const auto& [magic, name] : strangers) {
    if (file.starts_with(magic)) return name;
  }
  return "";
}

std::string recognise(const MappedFile& file) {
  if (file.size() == 0) throw UserError(file.name(), "is empty");
  if (is_native(file)) return "nacre";
  if (file.starts_with("PK\x03\x04") || file.starts_with("PK\x05\x06")) return "npz";
  if (file.starts_with("\x93NUMPY")) {
    throw UserError(file.name(), "is a single array, not a data set",
                    "give an edge list and this file as its features or labels");
  }
  const std::string stranger = known_stranger(file);
  if (!stranger.empty()) throw UserError(file.name(), "is " + stranger, kFormats);
  if (file.starts_with("\x1F\x8B")) return "edges";
  const auto head = file.bytes().first(static_cast<size_t>(std::min<int64_t>(file.size(), 4096)));
  const auto binary = [](std::byte b) {
    const auto c = static_cast<unsigned char>(b);
    return c < 32 && c != '\n' && c != '\r' && c != '\t' && c != '\v' && c != '\f';
  };
  if (std::any_of(head.begin(), head.end(), binary)) throw UserError(file.name(), "is of no known format", kFormats);
  return "edges";
}

std::string stem_of(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  for (const char* ending : {".gz", ".npz", ".nacre", ".txt", ".csv", ".tsv", ".edges"}) {
    if (name.ends_with(ending) && name.size() > std::string_view(ending).size())
      name.resize(name.size() - std::string_view(ending).size());
  }
  return name;
}

Dataset load_file(const std::string& path, const LoadOptions& options) {
  std::error_code error;
  if (fs::is_directory(path, error)) refuse_folder(path);
  if (!fs::exists(path, error)) refuse_missing(path);
  const auto file = MappedFile::open(path);
  const std::string format = options.format.empty() ? recognise(*file) : options.format;
  Dataset data;
  if (format == "nacre") {
    data = read_native(file, options.verify);
  } else if (format == "npz") {
    data = read_npz(file, options);
  } else if (format == "edges") {
    data = read_edge_list(file, options);
  } else {
    throw UserError("format", "'" + format + "' is unknown", "use nacre, npz or edges");
  }
  if (data.name.empty()) data.name = stem_of(path);
  if (format != "nacre") validate(data, path);  // read_native has done so as far as was asked
  return data;
}

}  // namespace

Dataset load_dataset(const std::string& spec, const LoadOptions& options) {
  if (options.num_nodes < 0) throw UserError("number of vertices", "is negative", "leave it out or give a count");
  const bool twin = spec.starts_with(kTwin);
  Dataset data = twin ? make_twin(std::string_view(spec).substr(kTwin.size()), options.seed) : load_file(spec, options);
  if (options.num_nodes > 0 && options.num_nodes != data.num_nodes()) {
    throw UserError(spec, "has " + human_count(data.num_nodes()) + " vertices, not " + human_count(options.num_nodes),
                    "leave the number of vertices out");
  }
  if (read_node_files(options, data)) validate(data, spec);
  if (options.undirected) {
    const int64_t before = data.graph.num_edges();
    data.graph = make_undirected(data.graph);
    data.notes.push_back("made undirected: " + human_count(before) + " edges became " +
                         human_count(data.graph.num_edges()));
  }
  return data;
}

}  // namespace nacre
