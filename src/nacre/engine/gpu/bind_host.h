// Kernels that run on the host between copies.
#pragma once

#include "nacre/plan/plan.h"

namespace nacre {

// Whether a kernel's step can be recorded in a graph of launches. One that runs on the host cannot: its step waits for
// the device and throws while a recording is under way.
inline bool captures(const Kernel& kernel) { return kernel.kind != KernelKind::reference; }

}  // namespace nacre
