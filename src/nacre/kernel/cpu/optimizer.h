// Applies one step of an optimiser to the elements of one parameter, on the CPU.
#pragma once

#include <cstdint>
#include <vector>

#include "nacre/kernel/optimizer_numbers.h"

namespace nacre::cpu {

// A parameter and what belongs to it, element by element.
struct OptimizedParameter {
  float* weights;
  const float* gradient;
  float* first;    // first moments; null: not used
  float* second;   // second moments; null: not used
  float* average;  // moving average of the weights; null: none is kept
  int64_t size;
};

// Applies one step of Adam or AdamW. `clip` is the factor that the gradient is multiplied by.
void adam_step(const OptimizerNumbers& numbers, float clip, const OptimizedParameter& p);
// Applies one step of SGD. The first moments hold the momentum, and the second are not used.
void sgd_step(const OptimizerNumbers& numbers, float clip, const OptimizedParameter& p);

// Returns `sum` plus the squares of the values, with the same bits on any number of threads.
// `chunks` is memory for the sums of chunks.
double add_squares(double sum, const float* values, int64_t size, std::vector<double>& chunks);

}  // namespace nacre::cpu
