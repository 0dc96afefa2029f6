// Data of recommenders, as far as other parts must recognise them: users, items, and no classes of nodes.
#pragma once

#include "nacre/data/dataset.h"

namespace nacre {

// Whether the nodes are users and items: there are no classes, and either pairs of nodes are held out or the reader of
// pairs named the two kinds so.
bool users_and_items(const Dataset& dataset);

}  // namespace nacre
