// Tells where a file holds the features of a data set, for code that reads rows without mapping the
// file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nacre/data/dataset.h"

namespace nacre {

struct StoredRows {
  std::string path;
  int64_t offset = 0;  // position of row 0 in the file
  int64_t rows = 0;
  int64_t row_bytes = 0;
  uint64_t checksum = 0;  // checksum of the bytes of all rows

  int64_t bytes() const { return rows * row_bytes; }
};

// Returns where a .nacre file holds f32 features of all vertices. Returns nothing for other files,
// for narrow features, and for features of several kinds of vertices.
std::optional<StoredRows> stored_features(const std::string& path);

// Returns the value of dataset.fingerprint() without reading the features: the file has their
// checksum.
uint64_t fingerprint_with(const Dataset& dataset, const StoredRows& features);

}  // namespace nacre
