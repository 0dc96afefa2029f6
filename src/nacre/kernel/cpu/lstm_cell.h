// The elementwise part of one LSTM step, forward and backward. It runs on the calling thread.
#pragma once

#include <cstdint>

namespace nacre::cpu {

// The gates of a row are 4H floats: input, forget, cell and output gate.
struct LstmCell {
  int64_t rows = 0;
  int64_t hidden = 0;
  float* gates = nullptr;           // rows × 4H
  const float* c_before = nullptr;  // rows × H; null at the first step, where it is 0
};

// Computes one step forward. On entry, gates holds the sums before the nonlinearity. The step
// computes c = f·c_before + i·g (c may be the same memory as c_before) and, for the first h_rows
// rows, h = o·tanh(c). With keep_gates, gates holds the values after the nonlinearity on return.
struct LstmForward {
  float* c = nullptr;
  float* h = nullptr;
  int64_t h_rows = 0;
  bool keep_gates = false;
};
void lstm_cell_forward(const LstmCell& cell, const LstmForward& to);

// Computes the states of one row from kept gates: c = f·c_before + i·g, h = o·tanh(c).
struct LstmStates {
  int64_t hidden = 0;
  const float* kept = nullptr;      // 4H floats
  const float* c_before = nullptr;  // null stands for zeros
  float* c = nullptr;
  float* h = nullptr;  // null: not wanted
};
void lstm_cell_states(const LstmStates& row);

// Computes one step backward. The values of the gates after the nonlinearity are read from `kept`,
// or from the cell's gates if `kept` is null. On return, the cell's gates hold the gradients before
// the nonlinearity. dh is the gradient of h. dc is the gradient of c on entry and that of c_before
// on return.
struct LstmBackward {
  const float* c = nullptr;
  const float* dh = nullptr;
  float* dc = nullptr;
  const float* kept = nullptr;
};
void lstm_cell_backward(const LstmCell& cell, const LstmBackward& from);

}  // namespace nacre::cpu
