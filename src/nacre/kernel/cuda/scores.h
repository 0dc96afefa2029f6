// Sources that score predictions where they lie: every block counts over one piece of a list of rows and leaves its
// sums in slots of its own; a last launch adds the slots in order, so that the bits depend on the lists only.
#pragma once

#include "nacre/kernel/cuda/params.h"

namespace nacre::cuda {

inline constexpr int64_t kScorePieceRows = 256;  // of a piece, at most
inline constexpr int64_t kScoreSlots = 3;        // doubles that a piece leaves

// In device memory, as the kernels read it: positions in the list of rows.
struct ScorePiece {
  int64_t begin, end;
};

enum class ScoreLabels : uint8_t { single, multiple };

NACRE_PARAMS(ScoreParams, (const float* __restrict__, logits), (const Label* __restrict__, labels),
             (const u32* __restrict__, rows), (const ScorePiece* __restrict__, pieces), (double* __restrict__, slots),
             (long long, classes), (int, by_row));
// One block for each piece. Labels are int32 (below zero: none) or one byte for each class; those of the list's i-th
// row lie at that row where `by_row`, otherwise at i. Slots of single labels: rows that are right (the label's logit is
// the first of the largest, and none is NaN), rows that have a label. Slots of multiple labels: classes predicted
// rightly, predicted, true; a class is predicted where its logit is positive.
Source score_rows(ScoreLabels labels, int64_t classes);
// Takes ScoreParams too. Slots: the sum of the rows' losses, rows that have a label.
Source score_loss(ScoreLabels labels);
NACRE_PARAMS(ScoreTotalsParams, (const double* __restrict__, slots), (const i64* __restrict__, first),
             (double* __restrict__, out));
// Block b adds the slots of pieces first[b] to first[b + 1] - 1.
Source score_totals();

}  // namespace nacre::cuda
