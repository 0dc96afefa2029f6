// StaleSteps: the steps of a run with bounded staleness in which the host computes batches. Several
// batches compute beside each other, each on its track (Learner); updates are applied in the order
// of the batches. What a batch reads does not depend on how many of them compute at the same time.
// If a schedule places batches on a device and the host, those of the device are queued at once,
// and those of the host compute beside them.
#pragma once

#include <deque>
#include <memory>

#include "nacre/base/task_line.h"
#include "nacre/schedule/batch_loader.h"
#include "nacre/train/batch_computer.h"
#include "nacre/train/learner.h"
#include "nacre/train/placed_batches.h"

namespace nacre {

class StaleSteps {
 public:
  // `learner`, `backend`, `placed` and the memory of `gradients` must outlive this object. `placed`
  // is null if no schedule places batches; all batches then compute beside each other on the host.
  StaleSteps(Learner& learner, Backend& backend, const GradientMemory& gradients, PlacedBatches* placed = nullptr)
      : learner_(learner), backend_(backend), gradients_(gradients), placed_(placed) {}

  // Finishes steps until a track is free. Must be called before each batch is taken from the
  // loader.
  void free_track();
  // Begins the step of the next batch of the epoch.
  void begin(Batch batch, int64_t step, double lr);
  // Finishes all steps that were begun.
  void finish();

 private:
  struct Flight {
    Batch batch;
    double lr = 0;
    const void* loss = nullptr;
    bool in_line = true;  // whether line_ runs the batch on the host
  };
  void finish_first();

  Learner& learner_;
  Backend& backend_;
  GradientMemory gradients_;
  PlacedBatches* placed_;
  std::deque<std::shared_ptr<Flight>> flights_;
  TaskLine line_;
};

}  // namespace nacre
