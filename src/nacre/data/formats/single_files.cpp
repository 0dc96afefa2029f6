// Data sets in one file: Nacre's own format, .npz, and edge lists as text.
#include <algorithm>
#include <string_view>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/data/edge_list.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/native.h"
#include "nacre/data/npz.h"

namespace nacre {
namespace {

bool is_archive(const MappedFile& file) { return file.starts_with("PK\x03\x04") || file.starts_with("PK\x05\x06"); }

// Returns the name of a file format that people often try, recognised by its first bytes.
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

// Returns the position of the first byte that is not text, or -1 if there is none in the first 4096
// bytes.
int64_t first_binary(const MappedFile& file) {
  const auto head = file.bytes().first(static_cast<size_t>(std::min<int64_t>(file.size(), 4096)));
  const auto found = std::find_if(head.begin(), head.end(), [](std::byte b) {
    const auto c = static_cast<unsigned char>(b);
    return c < 32 && c != '\n' && c != '\r' && c != '\t' && c != '\v' && c != '\f';
  });
  return found == head.end() ? -1 : found - head.begin();
}

std::string recognise_nacre(const DataSource& source) {
  return !source.is_folder() && is_native(*source.file()) ? "begins like one" : "";
}

Dataset load_nacre(const DataSource& source, const std::string&, const LoadOptions& options) {
  return read_native(source.file(), options.verify);
}

std::string recognise_npz(const DataSource& source) {
  return !source.is_folder() && is_archive(*source.file()) ? "is an archive" : "";
}

Dataset load_npz(const DataSource& source, const std::string&, const LoadOptions& options) {
  return read_npz(source.file(), options);
}

std::optional<DatasetBuilder> open_npz(const DataSource& source, const std::string&, const LoadOptions& options) {
  return open_npz_parts(source.file(), options);
}

std::string recognise_edges(const DataSource& source) {
  if (source.is_folder()) return "";
  const MappedFile& file = *source.file();
  if (file.size() == 0 || is_native(file) || is_archive(file)) return "";
  if (file.starts_with("\x1F\x8B")) return "is gzipped text";
  return known_stranger(file).empty() && first_binary(file) < 0 ? "is text" : "";
}

Dataset load_edges(const DataSource& source, const std::string& variant, const LoadOptions& options) {
  if (has_word_ids(source.file())) return load_names(source, variant, options);
  return read_edge_list(source.file(), options);
}

}  // namespace

std::vector<Format> formats_in_single_files() {
  return {{"nacre", "Nacre's own file", recognise_nacre, load_nacre},
          {"npz", "one .npz: edge_index, x, y, train_idx, …", recognise_npz, load_npz, "", open_npz, true},
          {"edges", "text edge list, ids kept; .gz too", recognise_edges, load_edges, "", nullptr, true}};
}

void refuse_stranger(const DataSource& source) {
  const MappedFile& file = *source.file();
  if (file.size() == 0) throw UserError(file.name() + " at byte 0", "the file is empty");
  if (file.starts_with("\x93NUMPY")) {
    throw UserError(file.name(), "is a single array, not a data set",
                    "give an edge list and this file as its features or labels");
  }
  const std::string stranger = known_stranger(file);
  const int64_t binary = first_binary(file);
  const std::string odd = binary >= 0 ? ": it is not text, because of byte " + std::to_string(binary) : std::string();
  throw UserError(file.name(), stranger.empty() ? "is of no known format" + odd : "is " + stranger,
                  "Nacre reads .nacre, .npz, .mtx, edge lists as text or .gz, and many folders");
}

}  // namespace nacre
