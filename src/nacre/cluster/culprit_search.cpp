#include "nacre/cluster/culprit_search.h"

namespace nacre {
namespace {

constexpr double kAnswerSeconds = 2;  // a rank answers within this time on a busy machine, too

}  // namespace

void CulpritSearch::begin(int blocker) {
  asked_.assign(asked_.size(), false);
  found_ = silent_ = false;
  ask(blocker);
}

void CulpritSearch::stop() { at_ = -1; }

void CulpritSearch::ask(int rank) {
  at_ = rank;
  asked_[rank] = true;
  ++question_;
  to_ask_ = true;
  patience_ = Patience(kAnswerSeconds);
}

std::optional<int> CulpritSearch::next_to_ask() {
  if (!to_ask_) return std::nullopt;
  to_ask_ = false;
  return at_;
}

void CulpritSearch::answered(int by, uint64_t question, int waits_for) {
  if (by != at_ || question != question_ || found_) return;
  // If ranks wait in a circle, none of them is the last. The search then ends at the rank whose
  // answer has closed the circle.
  if (waits_for < 0 || waits_for == rank_ || asked_[waits_for]) {
    found_ = true;
  } else {
    ask(waits_for);
  }
}

std::optional<int> CulpritSearch::culprit() {
  if (begun() && !found_ && patience_.tick()) found_ = silent_ = true;
  return begun() && found_ ? std::optional(at_) : std::nullopt;
}

}  // namespace nacre
