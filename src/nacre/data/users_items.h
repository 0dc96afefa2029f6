// Recognises data of recommenders: users and items, and no classes of nodes.
#pragma once

#include "nacre/data/dataset.h"

namespace nacre {

// Returns whether the nodes are users and items: there are no classes, and either pairs of nodes
// are held out or the reader of pairs gave the two kinds these names.
bool users_and_items(const Dataset& dataset);

}  // namespace nacre
