// The parts of data_sizes(): sizes of layouts that are judged by their text, by what a reader opens
// without reading, or only by the bytes of their files. Used by sizes.cpp alone.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "nacre/data/formats/format.h"
#include "nacre/data/sizes.h"

namespace nacre {

// Bytes of the files of a place; of a folder, with the folders inside it.
int64_t bytes_of(const DataSource& source);

// Lines of a text, and the values on each line, judged by the beginning of the text. Gzipped text
// is unpacked for this as far as needed.
struct TextGuess {
  int64_t lines = 0;
  int64_t columns = 0;
  int64_t bytes = 0;  // of the whole text, unpacked
};
TextGuess guess_text(const std::shared_ptr<const MappedFile>& file);

// Sizes of a list of edges as text. `format` is edges, snap, names or mtx.
DataSizes edge_text_sizes(std::string_view format, const std::shared_ptr<const MappedFile>& file,
                          const LoadOptions& options);

// Sizes of a data set whose edges and features still lie in their files.
DataSizes builder_sizes(const DatasetBuilder& builder, int64_t file_bytes);

// Sizes of GraphSAINT's folder.
DataSizes saint_sizes(const DataSource& source);

// Bytes that reading takes at least, for layouts that tell no more than the sizes of their files.
DataSizes byte_sizes(const DataSource& source);

// Completes sizes whose graph, features and labels are known. `sources`: bytes of the files that
// are read.
void complete_sizes(DataSizes& sizes, int64_t sources);

}  // namespace nacre
