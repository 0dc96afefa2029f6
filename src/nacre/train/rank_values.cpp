#include "nacre/train/rank_values.h"

namespace nacre {
namespace {

// Replaces the values at `floats` on every rank by those of rank 0.
void share_array(Communicator& ranks, float* floats, int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(float));
  auto* values = reinterpret_cast<std::byte*>(floats);
  ExchangeRequest request;
  request.name = "weights";
  if (bytes == 0) return;
  if (ranks.rank() == 0) {
    for (int r = 1; r < ranks.size(); ++r) request.sends.push_back({r, {values, 1, bytes, 0, nullptr}});
  } else {
    request.receives.push_back({0, {values, 1, bytes, 0, nullptr}});
  }
  ranks.exchange(request);
}

}  // namespace

void share_weights(Communicator& control, Learner& learner) {
  Parameters& parameters = learner.parameters();
  share_array(control, parameters.data(), parameters.size());
  learner.weights_changed();
}

void share_state(Communicator& control, Learner& learner) {
  if (learner.trains()) {
    OptimizerState& state = learner.optimizer();
    for (Tensor* moment : {&state.first(), &state.second(), &state.average()}) {
      if (moment->defined()) share_array(control, moment->data<float>(), moment->size());
    }
    state.set_steps(all_numbers(control, state.steps())[0]);
  }
  share_weights(control, learner);  // also sends the state of the optimiser to the device
}

}  // namespace nacre
