#include "nacre/train/stale_steps.h"

#include <utility>

#include "nacre/base/trace.h"

namespace nacre {

void StaleSteps::free_track() {
  while (static_cast<int64_t>(flights_.size()) >= learner_.tracks()) finish_first();
}

void StaleSteps::begin(Batch batch, int64_t step, double lr) {
  auto flight = std::make_shared<Flight>();
  flight->batch = std::move(batch);
  flight->lr = lr;
  const int64_t number = flight->batch.index;
  if (placed_ != nullptr && !placed_->on_host(number)) {
    flight->in_line = false;
    flight->batch.prepared->run(flight->batch, step,
                                [&](const void* loss) { flight->loss = placed_->keep_loss(number, loss); });
    flights_.push_back(flight);
    return;
  }
  if (placed_ != nullptr) placed_->fetch_weights(number);
  flights_.push_back(flight);
  try {
    line_.add([flight, step] {
      flight->batch.prepared->run(flight->batch, step, [&](const void* loss) { flight->loss = loss; });
    });
  } catch (...) {
    flights_.pop_back();
    throw;
  }
}

void StaleSteps::finish() {
  while (!flights_.empty()) finish_first();
}

// Applies the gradients of the earliest batch, and keeps the batch's loss. A loss that the host
// computed lies in the arena of the batch's track, where no other batch has computed since. A loss
// of the device is where PlacedBatches::keep_loss() has put it.
void StaleSteps::finish_first() {
  const std::shared_ptr<Flight> flight = std::move(flights_.front());
  flights_.pop_front();
  if (flight->in_line) {
    const TraceSpan span("train", "wait for a track");
    line_.finish_first();
  }
  const int64_t batch = flight->batch.index;
  if (placed_ != nullptr && flight->in_line) {
    learner_.keep_loss(placed_->send_results(batch, flight->loss));
    return learner_.update(flight->lr, batch);
  }
  learner_.keep_loss(flight->loss);
  backend_.copy(gradients_.begin, gradients_.on_track(gradients_.begin, batch % learner_.tracks()), gradients_.bytes);
  learner_.update(flight->lr, batch);
}

}  // namespace nacre
