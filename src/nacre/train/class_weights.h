// Class weights: how much each class counts in the loss.
#pragma once

#include <string>
#include <vector>

#include "nacre/data/dataset.h"

namespace nacre {

// Returns the weights that `text` (--class-weights) asks for; an empty list if `text` is empty.
// `text` is one of
//   balanced   classes that are rare among the training nodes weigh more: nodes / (classes · nodes
//              of the class), or nodes without the class / nodes with it if a node may have several
//   1,0.5,2    a number for each class
//   FILE       a file with a number for each class; its numbers replace its name in `text`.
// Throws a UserError that names --class-weights.
std::vector<double> class_weights(std::string& text, const Dataset& dataset);

}  // namespace nacre
