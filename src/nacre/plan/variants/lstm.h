// Variants of LSTMs over the neighbours of each vertex on a GPU (lstm, lstm_grad).
#pragma once

#include "nacre/plan/variants.h"

namespace nacre {

struct LstmFacts {
  int64_t hidden = 0;  // units of the LSTM
};
LstmFacts lstm_facts(const PlannedKernel& k);

// How the sequences share the device: each sequence has a group of threads whose registers hold
// the recurrent matrix, or a block of threads runs a tile of sequences and reads the matrix from
// memory.
enum class LstmWay { groups, tiles };
const VariantList<LstmFacts>& lstm_variants();

}  // namespace nacre
