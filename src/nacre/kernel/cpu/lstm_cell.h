// The elementwise part of one LSTM step, forward and backward, on the calling thread.
#pragma once

#include <cstdint>

namespace nacre::cpu {

// Gates of a row are 4H floats: input, forget, cell, output.
struct LstmCell {
  int64_t rows = 0;
  int64_t hidden = 0;
  float* gates = nullptr;           // rows × 4H
  const float* c_before = nullptr;  // rows × H; null at the first step, where it is 0
};

// gates holds the sums before the nonlinearity. c = f·c_before + i·g (c may be c_before), h =
// o·tanh(c) for the first h_rows rows. With keep_gates, gates becomes the values after the
// nonlinearity.
struct LstmForward {
  float* c = nullptr;
  float* h = nullptr;
  int64_t h_rows = 0;
  bool keep_gates = false;
};
void lstm_cell_forward(const LstmCell& cell, const LstmForward& to);

// One row's states from kept gates: c = f·c_before + i·g, h = o·tanh(c).
struct LstmStates {
  int64_t hidden = 0;
  const float* kept = nullptr;      // 4H
  const float* c_before = nullptr;  // null: 0
  float* c = nullptr;
  float* h = nullptr;  // null: not wanted
};
void lstm_cell_states(const LstmStates& row);

// gates holds the kept values, unless these lie elsewhere (`kept`), and becomes their gradients
// before the nonlinearity; dh is the gradient of h; dc that of c, and becomes that of c_before.
struct LstmBackward {
  const float* c = nullptr;
  const float* dh = nullptr;
  float* dc = nullptr;
  const float* kept = nullptr;
};
void lstm_cell_backward(const LstmCell& cell, const LstmBackward& from);

}  // namespace nacre::cpu
