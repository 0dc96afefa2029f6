// StaleSteps: the steps of a run with bounded staleness on the host. Several batches compute beside
// each other, each on its track (Learner); updates are applied in the order of the batches. What a
// batch reads does not depend on how many of them compute at the same time.
#pragma once

#include <deque>
#include <memory>

#include "nacre/base/task_line.h"
#include "nacre/schedule/batch_loader.h"
#include "nacre/train/batch_computer.h"
#include "nacre/train/learner.h"

namespace nacre {

class StaleSteps {
 public:
  // Both must outlive the steps.
  StaleSteps(Learner& learner, Backend& backend, const GradientMemory& gradients)
      : learner_(learner), backend_(backend), gradients_(gradients) {}

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
  };
  void finish_first();

  Learner& learner_;
  Backend& backend_;
  GradientMemory gradients_;
  std::deque<std::shared_ptr<Flight>> flights_;
  TaskLine line_;
};

}  // namespace nacre
