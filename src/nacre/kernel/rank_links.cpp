#include "nacre/kernel/rank_links.h"

#include <algorithm>

namespace nacre {
namespace {

class LateCommunication final : public PendingCommunication {
 public:
  LateCommunication(RankLinks& links, const Communication& what) : links_(links), what_(what) {}

  void finish() override {
    if (what_.op == Op::exchange) {
      links_.exchange(what_.from, what_.to, what_.width * static_cast<int64_t>(sizeof(float)));
    } else if (what_.op == Op::exchange_add) {
      links_.exchange_add(what_.from, what_.to, what_.width);
    } else {
      const int64_t count = what_.rows * what_.width;
      if (what_.from != what_.to) std::copy_n(what_.from, count, what_.to);
      links_.all_reduce(what_.to, count);
    }
  }

 private:
  RankLinks& links_;
  Communication what_;
};

}  // namespace

std::unique_ptr<PendingCommunication> RankLinks::start(const Communication& what) {
  return std::make_unique<LateCommunication>(*this, what);
}

}  // namespace nacre
