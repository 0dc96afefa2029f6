// The parts of data_sizes(): sizes of layouts that are judged by their text, by what a reader opens
// without reading, or only by the bytes of their files. Used by sizes.cpp alone.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "nacre/data/formats/format.h"
#include "nacre/data/sizes.h"

namespace nacre {

// Returns the bytes of the file, or of all files of the folder and of the folders inside it.
int64_t bytes_of(const DataSource& source);

// The number of lines of a text and the number of values on each line, guessed from the beginning
// of the text. Gzipped text is unpacked as far as this needs.
struct TextGuess {
  int64_t lines = 0;
  int64_t columns = 0;
  int64_t bytes = 0;  // size of the whole text, unpacked
};
TextGuess guess_text(const std::shared_ptr<const MappedFile>& file);

// Returns the sizes of an edge list as text. `format` is edges, snap, names or mtx.
DataSizes edge_text_sizes(std::string_view format, const std::shared_ptr<const MappedFile>& file,
                          const LoadOptions& options);

// Returns the sizes of a data set whose edges and features still lie in their files.
DataSizes builder_sizes(const DatasetBuilder& builder, int64_t file_bytes);

// Returns the sizes of a folder in GraphSAINT's layout.
DataSizes saint_sizes(const DataSource& source);

// Returns the least bytes that reading takes, for layouts of which only the sizes of the files are
// known.
DataSizes byte_sizes(const DataSource& source);

// Computes the remaining members of `sizes` from its graph, features and labels. `sources` is the
// number of bytes of the files that are read.
void complete_sizes(DataSizes& sizes, int64_t sources);

}  // namespace nacre
