// Sources that score predictions in device memory. Every block counts over one piece of a list of
// rows and writes its sums to places of its own. A last launch adds these sums in order, so that
// the bits depend on the lists only.
#pragma once

#include "nacre/kernel/cuda/params.h"

namespace nacre::cuda {

inline constexpr int64_t kScorePieceRows = 256;  // most rows of a piece
inline constexpr int64_t kScoreSums = 3;         // doubles that a block writes for its piece

// The positions of a piece in the list of rows, as they lie in device memory.
NACRE_STRUCT(ScorePiece, (long long, begin, end));

enum class ScoreLabels : uint8_t { single, multiple };

NACRE_PARAMS(ScoreParams, (const float* __restrict__, logits), (const Label* __restrict__, labels),
             (const u32* __restrict__, rows), (const ScorePiece* __restrict__, pieces), (double* __restrict__, places),
             (long long, classes), (int, by_row));
// Scores the rows of one piece in each block. A single label is an int32 (negative if the row has
// none); multiple labels are one byte for each class. The label of the i-th row of the list lies at
// that row if `by_row`, otherwise at i. The sums of single labels are the number of rows that are
// right (the logit of the label is the first of the largest, and none is NaN) and the number of
// rows that have a label. The sums of multiple labels are the numbers of classes that are
// predicted and true, predicted, and true; a class is predicted if its logit is positive.
Source score_rows(ScoreLabels labels, int64_t classes);
// Sums the losses of the rows of one piece in each block. Takes ScoreParams, too. The sums are the
// sum of the losses and the number of rows that have a label.
Source score_loss(ScoreLabels labels);
NACRE_PARAMS(ScoreTotalsParams, (const double* __restrict__, places), (const i64* __restrict__, first),
             (double* __restrict__, out));
// Adds the sums of the pieces first[b] to first[b + 1] - 1 in block b.
Source score_totals();

}  // namespace nacre::cuda
