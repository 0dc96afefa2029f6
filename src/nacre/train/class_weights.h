// How much each class counts in the loss.
#pragma once

#include <string>
#include <vector>

#include "nacre/data/dataset.h"

namespace nacre {

// `text` is "balanced" (classes that are rare among the training nodes weigh more: nodes / (classes · nodes of the
// class); where a node may have several classes: nodes without the class / nodes with it), a list "1,0.5,2", or a file
// of numbers, one per class. Empty text: no weights, an empty list. A file's numbers replace its name in `text`. Throws
// UserError naming --class-weights.
std::vector<double> class_weights(std::string& text, const Dataset& dataset);

}  // namespace nacre
