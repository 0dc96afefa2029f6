// Nacre's own format (.nacre): one file, memory-mapped, versioned, checksummed. Layout in native_layout.h.
#pragma once

#include <memory>
#include <string>

#include "nacre/data/dataset.h"
#include "nacre/data/mapped_file.h"

namespace nacre {

// Writes to a temporary file beside `path`, syncs, renames: never a half-written data set.
void write_native(const Dataset& dataset, const std::string& path);
// Maps the file; arrays point into it. Header, graph, labels and splits are always validated; `verify` also reads
// everything else once and checks the checksums.
Dataset read_native(const std::string& path, bool verify);
Dataset read_native(const std::shared_ptr<const MappedFile>& file, bool verify);

bool is_native(const MappedFile& file);

}  // namespace nacre
