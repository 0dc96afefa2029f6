#include "nacre/data/convert/fits.h"

#include <filesystem>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/native.h"
#include "nacre/data/zip.h"

namespace nacre {
namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& what, int64_t bytes, int64_t memory) {
  throw UserError(where,
                  what + " takes about " + human_bytes(static_cast<double>(bytes)) + ", more than the " +
                      human_bytes(static_cast<double>(memory)) + " of --memory",
                  "give more with --memory");
}

// Returns the number of bytes that a file holds when it is unpacked; for a gzipped file, an
// estimate.
int64_t unpacked_size(const std::string& path) {
  constexpr int64_t usual_ratio = 6;  // typical for gzipped numbers
  const auto file = MappedFile::open(path);
  if (file->starts_with("\x1F\x8B")) return file->size() * usual_ratio;
  if (!file->starts_with("PK")) return file->size();
  int64_t bytes = 0;
  const ZipArchive archive(file);
  for (const ZipEntry& entry : archive.entries()) bytes += entry.size;
  return bytes;
}

}  // namespace

void check_set(const DatasetBuilder& set, const std::string& source, const ConvertOptions& o) {
  if (o.load.num_nodes > 0 && o.load.num_nodes != set.num_nodes()) {
    throw UserError(source, "has " + human_count(set.num_nodes()) + " nodes, not " + human_count(o.load.num_nodes),
                    "leave --num-nodes out");
  }
  if (o.self_loops && !set.plain()) {
    throw UserError("--self-loops", "this graph has named relations, and a loop belongs to none of them",
                    "leave the option out");
  }
  if (set.later_bytes() > o.memory)
    refuse(source, "reading the labels and splits of its " + human_count(set.num_nodes()) + " nodes", set.later_bytes(),
           o.memory);
  for (const auto& input : set.feature_inputs()) {
    if (input && !o.load.features_file.empty())
      throw UserError(o.load.features_file, "the data set already holds what this file would give",
                      "leave the file out");
    if (input && !input->stream && input->memory > o.memory)
      refuse(input->where, "reading an array that is not stored row by row", input->memory, o.memory);
  }
}

void check_whole(const std::string& source, const ConvertOptions& o) {
  std::error_code error;
  if (!o.stream || source.starts_with("twin:") || !std::filesystem::exists(source, error)) return;
  const DataSource data_source(source);
  // A .nacre file is mapped, so it takes no memory.
  if (is_own_file(choose_format(data_source, o.load.format))) return;
  int64_t bytes = 0;
  if (data_source.is_folder()) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source, error)) {
      if (entry.is_regular_file()) bytes += unpacked_size(entry.path().string());
    }
  } else {
    bytes = unpacked_size(source);
  }
  // The bytes that are read and the data set that is made of them are held at the same time.
  if (2 * bytes > o.memory) refuse(source, "this layout is read as a whole, which", 2 * bytes, o.memory);
}

}  // namespace nacre
