// Finds values that can take the place of an operand.
#pragma once

#include <functional>

#include "nacre/plan/plan.h"

namespace nacre {

// A value that a row program stores may overwrite an operand of equal size that the program reads
// row by row and that nobody reads afterwards: a gradient takes the place of the activation whose
// sign it needed. Returns that operand, or -1. `last` says whether other kernels allow an operand
// to be overwritten.
NodeRef overwritten_operand(const Plan& plan, const Kernel& kernel, NodeRef written,
                            const std::function<bool(NodeRef)>& last);

}  // namespace nacre
