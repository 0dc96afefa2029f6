// The numbers of one step of an optimiser, which the kernels of the CPU and of CUDA read.
#pragma once

#include <cstdint>

namespace nacre {

struct OptimizerNumbers {
  float lr, decay, decoupled, beta1, beta2, rest1, rest2, correction1, correction2, epsilon, momentum;
  int32_t first_step;  // 1 in the first step, else 0
  float clip_norm;     // 0 if gradients are not clipped
  // The new average is average_old · the old average + average_new · the new weight.
  float average_old, average_new;
};

}  // namespace nacre
