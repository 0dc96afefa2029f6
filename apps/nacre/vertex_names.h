// What a vertex is called in what the program writes: as the source of the data called it.
#pragma once

#include <cstdint>
#include <string>

#include "nacre/data/dataset.h"

namespace nacre::cli {

// Index of the kind of a vertex; 0 where there is only one.
size_t kind_of(const Dataset& d, int64_t v);
// Kinds count their vertices by themselves.
int64_t original_id(const Dataset& d, int64_t v);
// Its name where it has one, otherwise its number; quoted where a field needs it.
std::string csv_name(const Dataset& d, int64_t v);
// The name of a class where it has one, otherwise its number, likewise.
std::string csv_class(const Dataset& d, int64_t k);
// Writes beside the predictions in `output` what their rows and columns are called, where that is a
// word: OUTPUT.nodes.csv (unless the rows say so themselves) and OUTPUT.classes.csv, OUTPUT without
// its ending.
void write_names(const std::string& output, const Dataset& d, bool rows_named, bool classes);

}  // namespace nacre::cli
