// What the LSTM's forward and backward passes share: running the steps of a batch.
#pragma once

#include <cstdint>

#include "nacre/kernel/cpu/lstm.h"

namespace nacre::cpu {

// w in the two orders in which it is multiplied; a packed one may be null.
struct LstmWeights {
  const float* w = nullptr;         // [H, 4H]
  const float* packed = nullptr;    // for h·w
  const float* packed_t = nullptr;  // for gates·wᵀ
};

// The sequences of a batch at one step.
struct LstmStep {
  const LstmView* view = nullptr;
  const LstmView::Batch* batch = nullptr;
  int64_t hidden = 0;
  int64_t step = 0;

  int64_t entry() const { return view->step_ptr[batch->first_step + step]; }
  int64_t rows() const { return view->step_rows(*batch, step); }
  // Sequences that have ended but take part in the products.
  int64_t padding() const { return view->options.pad ? batch->end - batch->begin - rows() : 0; }
  // Sequences that go on after this step.
  int64_t rows_after() const { return step + 1 < batch->steps ? view->step_rows(*batch, step + 1) : 0; }
};

// gates[rows, 4H] = z of the step's sources + h·w (nothing from h at step 0).
void lstm_gates(const LstmStep& at, const LstmWeights& weights, const float* z, const float* h, float* gates);

// gates[rows, 4H] (+)= h·w.
void lstm_multiply(const LstmWeights& weights, int64_t rows, int64_t hidden, const float* h, float* gates, float beta);

}  // namespace nacre::cpu
