// Decides which ranks of a run with --precision auto switch to bf16 (NU6).
#pragma once

#include <string>
#include <vector>

#include "nacre/train/share_balance.h"

namespace nacre {

struct PrecisionChoice {
  std::vector<char> bf16;  // whether each rank should switch to bf16
  ShareChoice shares;      // which shares the ranks should then have
  std::string reason;      // why ranks switch, or why none does

  bool switches() const;
};

// Looks for the ranks that have too much work: those that take longest even with the shares of
// balance_shares(). As long as some of them can switch to bf16 (PartReport::bf16_part), and a step
// is then predicted to become more than 3 % shorter, with shares that follow the new times, they
// switch. If the rest of the run saves less than the change costs, no rank switches.
PrecisionChoice choose_precisions(const std::vector<PartReport>& parts, const BalanceSettings& settings);

}  // namespace nacre
