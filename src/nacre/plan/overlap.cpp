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

}  // namespace nacre
