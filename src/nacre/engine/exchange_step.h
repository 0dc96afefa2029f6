// Binds the communication kernels of a plan. They are the same on every back end: the links of the
// rank know where its values lie.
#pragma once

#include "nacre/engine/executor.h"

namespace nacre {

// The two halves of a bound communication kernel. Between them the rank may compute anything that
// neither reads the result nor changes the operand.
struct ExchangeStep {
  Step start, finish;
};

// Without other ranks, `start` copies the operand and `finish` does nothing.
ExchangeStep bind_exchange(const Executor& executor, const Kernel& kernel);

}  // namespace nacre
