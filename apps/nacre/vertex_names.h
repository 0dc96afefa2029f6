// Finds the names of vertices for the program's output: those that the source of the data uses.
#pragma once

#include <cstdint>
#include <string>

#include "nacre/data/dataset.h"

namespace nacre::cli {

// Returns the index of the kind of a vertex; 0 if there is only one kind.
size_t kind_of(const Dataset& d, int64_t v);
// Returns the number of a vertex in the source: among all vertices or, if there are several kinds,
// within its kind.
int64_t original_id(const Dataset& d, int64_t v);
// Returns the name of a vertex if it has one, otherwise its number; quoted if a CSV field needs
// quotes.
std::string csv_name(const Dataset& d, int64_t v);
// Returns the name of a class if it has one, otherwise its number; quoted if a CSV field needs
// quotes.
std::string csv_class(const Dataset& d, int64_t k);
// Writes the names of the rows and columns of the predictions beside the file `output`, if they
// have names: OUTPUT.nodes.csv (unless rows_named: the rows of the file carry their names) and
// OUTPUT.classes.csv, where OUTPUT stands for the file name without its ending.
void write_names(const std::string& output, const Dataset& d, bool rows_named, bool classes);

}  // namespace nacre::cli
