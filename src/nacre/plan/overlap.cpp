#include "nacre/plan/overlap.h"

#include <algorithm>

#include "nacre/plan/order.h"

namespace nacre {
namespace {

constexpr int kMostMoves = 4;  // kernels that move between a communication and its reader

class Overlap {
 public:
  Overlap(Plan& plan, const Blocks& blocks) : plan_(plan), blocks_(blocks), kernels_(plan.kernels) {}

  void run() {
    size_t first = 0;  // the place behind the last communication
    for (size_t k = 0; k < kernels_.size(); ++k) {
      if (!communicates(k)) continue;
      const size_t to = std::max(first, ready_at(k, kernels_.size()));
      move(k, to);
      first = to + 1;
    }
    peak_ = peak_live_bytes(plan_, blocks_);
    for (size_t k = 0; k < kernels_.size(); ++k) {
      if (communicates(k)) fill(k);
    }
  }

 private:
  bool communicates(size_t k) const { return kernels_[k].kind == KernelKind::exchange && !kernels_[k].once; }

  // Moves a kernel to an earlier place.
  void move(size_t from, size_t to) {
    const auto at = [&](size_t k) { return kernels_.begin() + static_cast<std::ptrdiff_t>(k); };
    std::rotate(at(to), at(from), at(from + 1));
  }
  void move_back(size_t from, size_t to) {
    const auto at = [&](size_t k) { return kernels_.begin() + static_cast<std::ptrdiff_t>(k); };
    std::rotate(at(to), at(to + 1), at(from + 1));
  }

  // Returns the first place at which kernel k could run. Results of communication from kernel
  // `pending` on are not ready before their first reader.
  size_t ready_at(size_t k, size_t pending) const {
    const std::vector<NodeRef>& reads = kernels_[k].reads;
    size_t ready = 0;
    for (size_t i = 0; i < k; ++i) {
      if (kernels_[i].once) continue;
      const bool wanted = std::any_of(kernels_[i].writes.begin(), kernels_[i].writes.end(), [&](NodeRef w) {
        return std::find(reads.begin(), reads.end(), w) != reads.end();
      });
      if (wanted) ready = std::max(ready, communicates(i) && i >= pending ? k : i + 1);
    }
    return ready;
  }

  size_t first_reader(size_t k) const {
    const NodeRef result = kernels_[k].root;
    size_t reader = k + 1;
    while (reader < kernels_.size() && std::find(kernels_[reader].reads.begin(), kernels_[reader].reads.end(),
                                                 result) == kernels_[reader].reads.end()) {
      ++reader;
    }
    return reader;
  }

  // Moves other kernels to between communication kernel k and the first reader of its result.
  void fill(size_t k) {
    size_t reader = first_reader(k);
    int moves = 0;
    for (size_t j = reader + 1; j < kernels_.size() && moves < kMostMoves; ++j) {
      if (kernels_[j].once || communicates(j) || ready_at(j, k) > reader) continue;
      move(j, reader);
      if (peak_live_bytes(plan_, blocks_) > peak_) {
        move_back(j, reader);
        continue;
      }
      ++reader;
      ++moves;
    }
  }

  Plan& plan_;
  const Blocks& blocks_;
  std::vector<Kernel>& kernels_;
  int64_t peak_ = 0;
};

}  // namespace

void overlap_communication(Plan& plan, const Blocks& blocks) {
  if (blocks.links() != nullptr) Overlap(plan, blocks).run();
}

std::vector<size_t> ends_of_kernels(const Plan& plan, bool overlap) {
  std::vector<size_t> ends;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const Kernel& kernel = plan.kernels[k];
    size_t end = k + 1;
    if (kernel.kind == KernelKind::exchange && overlap && !kernel.once) {
      const auto reads = [&](const Kernel& other) {
        return std::find(other.reads.begin(), other.reads.end(), kernel.root) != other.reads.end();
      };
      while (end < plan.kernels.size() && !reads(plan.kernels[end])) ++end;
    }
    ends.push_back(end);
  }
  return ends;
}

std::vector<PlannedAction> step_actions(const Plan& plan, bool overlap) {
  using What = PlannedAction::What;
  std::vector<PlannedAction> actions;
  const std::vector<size_t> ends = ends_of_kernels(plan, overlap);
  std::vector<size_t> pending;  // kernels that communicate, in their order
  const auto finish_before = [&](size_t k) {
    std::erase_if(pending, [&](size_t p) {
      if (ends[p] <= k) actions.push_back({p, What::finish});
      return ends[p] <= k;
    });
  };
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const Kernel& kernel = plan.kernels[k];
    if (kernel.once) continue;
    const bool split = overlap && kernel.early.rows > 0;
    if (split) actions.push_back({k, What::early});
    finish_before(k);
    if (kernel.kind == KernelKind::exchange) {
      actions.push_back({k, What::start});
      pending.push_back(k);
    } else {
      actions.push_back({k, split ? What::rest : What::run});
    }
  }
  finish_before(plan.kernels.size());
  return actions;
}

}  // namespace nacre
