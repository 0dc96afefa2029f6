// What the forward and backward passes of the LSTM share: running the steps of a batch.
#pragma once

#include <cstdint>

#include "nacre/kernel/cpu/lstm.h"

namespace nacre::cpu {

// The weights w in the two orders in which they are multiplied. Either packed pointer may be null.
struct LstmWeights {
  const float* w = nullptr;         // [H, 4H]
  const float* packed = nullptr;    // packed w, for h·w
  const float* packed_t = nullptr;  // packed wᵀ, for gates·wᵀ
};

// Describes the sequences of a batch at one step.
struct LstmStep {
  const LstmView* view = nullptr;
  const LstmView::Batch* batch = nullptr;
  int64_t hidden = 0;
  int64_t step = 0;

  int64_t entry() const { return view->step_ptr[batch->first_step + step]; }
  int64_t rows() const { return view->step_rows(*batch, step); }
  // Returns the number of sequences that have ended but still take part in the products.
  int64_t padding() const { return view->options.pad ? batch->end - batch->begin - rows() : 0; }
  // Returns the number of sequences that go on after this step.
  int64_t rows_after() const { return step + 1 < batch->steps ? view->step_rows(*batch, step + 1) : 0; }
};

// Computes gates[rows, 4H] = z of the step's sources + h·w; at step 0 there is no h.
void lstm_gates(const LstmStep& at, const LstmWeights& weights, const float* z, const float* h, float* gates);

// Computes gates[rows, 4H] = h·w + beta · gates.
void lstm_multiply(const LstmWeights& weights, int64_t rows, int64_t hidden, const float* h, float* gates, float beta);

}  // namespace nacre::cpu
