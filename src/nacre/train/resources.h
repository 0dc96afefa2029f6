// This file says how busy a mini-batch run on a GPU keeps each resource. The run waits for the
// busiest one.
#pragma once

#include <string>
#include <vector>

#include "nacre/schedule/batch_loader.h"

namespace nacre {

// Says where the seconds of the steps of a run went.
struct StepTimes {
  int64_t steps = 0;
  double waited = 0;   // waiting for batches
  double host = 0;     // computing, or queueing the work of a GPU
  double awaited = 0;  // part of `host`: waiting until few enough steps were queued
  double settled = 0;  // waiting for a GPU at the end
  // Seconds of a GPU from the beginning to the end of each step. The GPU may have been idle in
  // between.
  double device = 0;
  double all() const { return waited + host + settled; }
};

struct Resource {
  std::string name;
  double percent = 0;  // share of the time of the steps, or of the time of all threads
};

struct ResourceUse {
  int threads = 1;
  // The resources, the busiest first: "device", "host threads" (S, R, K, T and preparing), "link"
  // (if features are sent), "launching thread" (which queues the work of the device).
  std::vector<Resource> all;
  std::vector<Resource> stages;  // stages of the host threads
  // Returns one line for people; empty if there were no steps.
  std::string text() const;
  // Returns the share of a resource; negative if it is not in the list.
  double percent(const std::string& name) const;
};

// `sent` says whether features go to the device with the batches.
ResourceUse resource_use(const StepTimes& steps, const LoaderTimes& loader, int threads, bool sent);

}  // namespace nacre
