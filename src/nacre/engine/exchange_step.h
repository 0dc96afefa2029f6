// bind_exchange() binds the communication kernels of a plan. Bound kernels are the same on every
// back end, because the links of the rank know where its values lie.
#pragma once

#include "nacre/engine/executor.h"

namespace nacre {

// Holds the two halves of a bound communication kernel. Between them the rank may compute anything
// that neither reads the result nor changes the operand.
struct ExchangeStep {
  Step start, finish;
};

// Returns the two halves of a communication kernel. Without other ranks, `start` copies the operand
// and `finish` does nothing.
ExchangeStep bind_exchange(const Executor& executor, const Kernel& kernel);

}  // namespace nacre
