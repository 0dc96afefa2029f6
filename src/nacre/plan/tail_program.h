// The program that a kernel runs over its rows after it has computed its root.
#pragma once

#include "nacre/plan/draft.h"

namespace nacre {

// Returns the program of the nodes of the kernel besides its roots. If `stored` is given, the
// program writes those nodes to memory that `stored` marks.
RowProgram tail_program(const Draft& draft, const Kernel& kernel, const NodeVector<char>* stored);

}  // namespace nacre
