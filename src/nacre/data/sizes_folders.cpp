#include <algorithm>
#include <filesystem>
#include <string>

#include "nacre/base/error.h"
#include "nacre/data/npz.h"
#include "nacre/data/sizes_parts.h"
#include "nacre/data/zip.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

constexpr int kMostFiles = 10'000;
// Bytes of memory that ids and numbers take for each byte of the text they are read from.
constexpr int64_t kOfText = 2;

// Calls fn(path, bytes) for the files of a place, at most kMostFiles of them.
template <class Fn>
void for_each_file(const DataSource& source, const Fn& fn) {
  std::error_code error;
  if (!source.is_folder()) {
    fn(source.path(), static_cast<int64_t>(fs::file_size(source.path(), error)));
    return;
  }
  int looked_at = 0;
  for (fs::recursive_directory_iterator it(source.path(), error), end; !error && it != end; it.increment(error)) {
    if (++looked_at > kMostFiles) return;
    if (it->is_regular_file(error)) fn(it->path().string(), static_cast<int64_t>(it->file_size(error)));
  }
}

int64_t unpacked_bytes(const std::string& path, int64_t bytes) {
  if (bytes == 0) return 0;
  if (path.ends_with(".npz")) {
    const ZipArchive archive(MappedFile::open(path));
    int64_t sum = 0;
    for (const ZipEntry& entry : archive.entries()) sum += entry.size;
    return sum;
  }
  if (path.ends_with(".gz")) return guess_text(MappedFile::open(path)).bytes;
  return bytes;
}

int64_t edges_of(const EdgeInput& input) {
  std::error_code error;
  int64_t edges = input.stated;
  // A text does not state its number of lines, so the number is guessed from the beginning of the
  // file. If the input is a text, `where` is the path of its file.
  if (edges < 0)
    edges = fs::is_regular_file(input.where, error) && !input.where.ends_with(".npy")
                ? guess_text(MappedFile::open(input.where)).lines
                : input.at_most;
  return edges * (input.both_ways ? 2 : 1);
}

}  // namespace

int64_t bytes_of(const DataSource& source) {
  int64_t sum = 0;
  for_each_file(source, [&](const std::string&, int64_t bytes) { sum += bytes; });
  return sum;
}

DataSizes builder_sizes(const DatasetBuilder& builder, int64_t file_bytes) {
  DataSizes s;
  s.heterogeneous = builder.num_types() > 1;
  s.graph.nodes = builder.num_nodes();
  s.graph.typed = !builder.plain();
  s.edge_types = std::max(1, static_cast<int>(builder.relations().size()));
  for (const auto& input : builder.edge_inputs()) {
    s.graph.edges += edges_of(input.edges);
    s.exact = s.exact && input.edges.stated >= 0;
  }
  int64_t mapped = 0;  // features that stay in their files
  for (const auto& input : builder.feature_inputs()) {
    if (!input) continue;
    const int64_t bytes = input->rows > 0 ? input->rows * input->columns * 4 : input->memory;
    s.feature_bytes += bytes;
    if (input->memory == 0) mapped += bytes;
    if (!s.heterogeneous) s.features = input->columns;
    s.exact = s.exact && input->rows > 0;
  }
  s.label_bytes = builder.later_bytes();
  // The builder keeps a type for each edge in any case. It copies the list of each relation into
  // the list of all relations, so there are two lists while it reads.
  const int64_t lists = s.graph.edges * (8 + 8 + 2);
  s.reading = file_bytes + s.feature_bytes - mapped + s.label_bytes +
              std::max(lists, build_graph_bytes(s.graph) + s.graph.edges * (s.graph.typed ? 0 : 2));
  s.held = -mapped;
  s.mapped = mapped;
  complete_sizes(s, file_bytes);
  return s;
}

DataSizes saint_sizes(const DataSource& source) {
  const NpzFile adjacency(source.open("adj_full.npz"));
  DataSizes s;
  s.exact = false;  // weights are kept only where some value is not 1
  s.graph.nodes = std::max<int64_t>(0, adjacency.open("indptr").header().count - 1);
  s.graph.edges = adjacency.open("indices").header().count;
  if (source.has("feats.npy")) {
    const NpyHeader header = NpyReader(source.open("feats.npy")).header();
    s.features = header.shape.size() == 2 ? header.shape[1] : 1;
    s.feature_bytes = header.count * 4;
  }
  s.label_bytes = s.graph.nodes * 24;
  const int64_t files = bytes_of(source);
  // Bytes of the rows, columns and values of the matrix, and of the row pointers as they are read.
  const int64_t matrix = s.graph.edges * 12 + s.graph.nodes * 8;
  s.reading = files + s.feature_bytes + std::max(matrix, build_graph_bytes(s.graph));
  complete_sizes(s, files);
  return s;
}

DataSizes byte_sizes(const DataSource& source) {
  DataSizes s;
  s.exact = s.counted = false;
  int64_t files = 0, held = 0;
  for_each_file(source, [&](const std::string& path, int64_t bytes) {
    files += bytes;
    held += path.ends_with(".npy") ? bytes : unpacked_bytes(path, bytes) / kOfText;
  });
  s.held = held;
  s.reading = files + held;
  return s;
}

}  // namespace nacre
