// Variants of LSTMs over the neighbours of each vertex on a GPU (lstm, lstm_grad).
#pragma once

#include "nacre/plan/variants.h"
#include "nacre/plan/variants/chunks.h"

namespace nacre {

struct LstmFacts {
  int64_t hidden = 0;  // units of the LSTM
  int64_t steps = 0;   // steps of all sequences together: one for each edge
  // For the gradient: whether rows of several steps are added to the row of one source. They are
  // not if the rows of the inputs belong to edges or nobody asks for their gradient.
  bool by_source = false;
};
LstmFacts lstm_facts(const PlannedKernel& k);

// How the sequences share the device: each sequence has a group of threads whose registers hold
// the recurrent matrix, or a block of threads runs a tile of sequences and reads the matrix from
// memory.
enum class LstmWay { groups, tiles };
const VariantList<LstmFacts>& lstm_variants();

// Returns what decides how many steps a gradient kernel takes at a time. The kernel runs these
// steps forward again, keeps what they compute, and walks back over them.
ChunkFacts lstm_chunks(const LstmFacts& facts, const DeviceTraits& device);

// The decision `long rows of sources`, for the gradient: the rows of the steps of a source are
// added. A source of more steps than the limit is cut into pieces of two thirds as many steps, and
// their sums are added in order.
enum class LongSources { in_pieces, whole };
const VariantList<LstmFacts>& long_source_variants();
// Returns the steps of a piece if sources of more steps than `limit` are cut.
int64_t piece_of_source(int64_t limit);

}  // namespace nacre
