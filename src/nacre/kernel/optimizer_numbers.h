// The numbers of one step of an optimiser, which the kernels of the CPU and of CUDA read.
#pragma once

#include "nacre/kernel/field_list.h"

namespace nacre {

// `first_step` is 1 in the first step and 0 afterwards. `clip_norm` is 0 if gradients are not
// clipped. The new average is average_old · the old average + average_new · the new weight.
NACRE_STRUCT(OptimizerNumbers,
             (float, lr, decay, decoupled, beta1, beta2, rest1, rest2, correction1, correction2, epsilon, momentum),
             (int, first_step), (float, clip_norm, average_old, average_new));

}  // namespace nacre
