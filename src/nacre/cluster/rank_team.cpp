#include "nacre/cluster/rank_team.h"

#include <exception>

#include "nacre/cluster/failure.h"

namespace nacre {

MpiTeam::MpiTeam(MpiRanks& ranks, double timeout)
    : ranks_(ranks), timeout_(timeout), control_(ranks.connect(timeout)) {}

void MpiTeam::connect_devices(const Open& open) {
  data_.reset();
  data_ = open(ranks_.connect(timeout_));
}

void MpiTeam::fail() {
  const std::exception_ptr own = std::current_exception();
  try {
    std::rethrow_exception(own);
  } catch (const RankFailure& failure) {
    if (data_ != nullptr) data_->pass_on(failure);
    control_->pass_on(failure);
  } catch (const std::exception& error) {
    if (data_ != nullptr) data_->abort(error.what());
    control_->abort(error.what());
  }
  std::rethrow_exception(own);
}

}  // namespace nacre
