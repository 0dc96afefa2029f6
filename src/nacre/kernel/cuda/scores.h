// Sources that score predictions where they lie: every block counts over one piece of a list of rows and leaves its
// sums in slots of its own; a last launch adds the slots in order, so that the bits depend on the lists only.
#pragma once

#include "nacre/kernel/cuda/source.h"

namespace nacre::cuda {

inline constexpr int64_t kScorePieceRows = 256;  // of a piece, at most
inline constexpr int64_t kScoreSlots = 3;        // doubles that a piece leaves

// In device memory, as the kernels read it: positions in the list of rows.
struct ScorePiece {
  int64_t begin, end;
};

enum class ScoreLabels : uint8_t { single, multiple };

// score_rows(logits, labels, rows: const u32*, pieces, slots: double*, classes: int64, by_row: int32), a block for each
// piece. Labels are int32 (below zero: none) or one byte for each class; those of the list's i-th row lie at that row
// where `by_row`, otherwise at i. Slots of single labels: rows that are right (the label's logit is the first of the
// largest, and none is NaN), rows that have a label. Slots of multiple labels: classes predicted rightly, predicted,
// true; a class is predicted where its logit is positive.
Source score_rows(ScoreLabels labels, int64_t classes);
// score_loss, with the same arguments. Slots: the sum of the rows' losses, rows that have a label.
Source score_loss(ScoreLabels labels);
// score_totals(slots, first: const int64*, out: double*): block b adds the slots of pieces first[b] to first[b + 1]
// - 1.
Source score_totals();

}  // namespace nacre::cuda
