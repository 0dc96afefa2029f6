// What a mini-batch run on a GPU keeps busy, and how much of it: the fullest is what the run waits for.
#pragma once

#include <string>
#include <vector>

#include "nacre/schedule/batch_loader.h"

namespace nacre {

// Seconds of steps.
struct StepTimes {
  int64_t steps = 0;
  double waited = 0;   // for batches
  double host = 0;     // computing, or queueing what a GPU computes
  double awaited = 0;  // of it: until few enough steps were queued
  double settled = 0;  // waiting for a GPU at the end
  double device = 0;   // of a GPU, from the beginning to the end of each step; it may have idled in between
  double all() const { return waited + host + settled; }
};

struct Resource {
  std::string name;
  double percent = 0;  // of the steps' time, or of that of all threads
};

struct ResourceUse {
  int threads = 1;
  // The fullest first: "device", "host threads" (S, R, K, T and making ready), "link" (where features are sent),
  // "launching thread" (which queues what the device computes).
  std::vector<Resource> all;
  std::vector<Resource> stages;  // of the host threads
  // In one line, for people; empty where there were no steps.
  std::string text() const;
  // Negative where it is not among them.
  double percent(const std::string& name) const;
};

// `sent`: features go to the device with the batches.
ResourceUse resource_use(const StepTimes& steps, const LoaderTimes& loader, int threads, bool sent);

}  // namespace nacre
