// Feature files that are read row by row, whatever their size.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nacre/data/mapped_file.h"
#include "nacre/data/native_writer.h"

namespace nacre {

// Opens a .npy matrix of f16, f32 or f64 in C order, or a headerless file of f32 rows (.bin or
// .raw), whose width follows from its size and the number of nodes. Returns nothing for other
// files, which are read as a whole. Throws UserError if the number of rows is not the number of
// nodes.
std::optional<native::RowSource> open_feature_rows(const std::string& path, int64_t num_nodes);
bool has_feature_rows(const std::string& path);

// Rows of f16, f32 or f64 that lie side by side in a file.
struct MappedRows {
  std::shared_ptr<const MappedFile> file;
  int64_t offset = 0;
  int element = 4;  // bytes of a float in the file
  int64_t rows = 0;
  int64_t columns = 0;
};
native::RowSource mapped_rows(const MappedRows& rows);

// Makes a source of rows that can only be read in order. `pull` appends whole rows to its argument
// and returns false if there are no more. There must be `rows` of them; if not, a UserError names
// `where` and the row.
native::RowSource rows_in_turn(int64_t rows, int64_t columns, const std::string& where,
                               const std::function<bool(std::vector<float>&)>& pull);

}  // namespace nacre
