#include "nacre/kernel/rank_links.h"

#include <algorithm>

#include "nacre/base/error.h"

namespace nacre {
namespace {

class LateCommunication final : public PendingCommunication {
 public:
  LateCommunication(RankLinks& links, const Communication& what) : links_(links), what_(what) {}

  void finish() override {
    NACRE_CHECK(!what_.types.narrow && what_.types.ranks == nullptr, "these links move rows of floats only");
    const auto* from = static_cast<const float*>(what_.from);
    auto* to = static_cast<float*>(what_.to);
    if (what_.op == Op::exchange) {
      links_.exchange(from, to, what_.row_bytes(), what_.reversed);
    } else if (what_.op == Op::exchange_add) {
      links_.exchange_add(from, to, what_.width, what_.reversed);
    } else if (what_.op == Op::to_columns) {
      links_.to_columns(from, to, what_.width, sizeof(float));
    } else if (what_.op == Op::to_rows) {
      links_.to_rows(from, to, what_.width, sizeof(float));
    } else {
      const int64_t count = what_.rows * what_.width;
      if (from != to) std::copy_n(from, count, to);
      links_.all_reduce(to, count);
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
