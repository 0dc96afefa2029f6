#include "nacre/cluster/rank_team.h"

#include <exception>

namespace nacre {

MpiTeam::MpiTeam(MpiRanks& ranks, double timeout) : data_(ranks.connect(timeout)), control_(ranks.connect(timeout)) {}

void MpiTeam::fail() {
  const std::exception_ptr own = std::current_exception();
  try {
    std::rethrow_exception(own);
  } catch (const std::exception& error) {
    data_->abort(error.what());
    control_->abort(error.what());
  }
  std::rethrow_exception(own);
}

}  // namespace nacre
