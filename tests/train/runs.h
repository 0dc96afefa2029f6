// Small data sets and runs in memory.
#pragma once

#include <string>

#include "nacre/data/dataset.h"
#include "nacre/train/trainer.h"

namespace nacre::test {

struct DataText {
  bool weighted = false;
  bool typed = false;
  bool multilabel = false;
  bool labels = true;
  bool features = true;
};

// Returns 60 vertices in three communities, with features that lean towards them, and a 30 / 15 /
// 15 split.
Dataset small_data(const DataText& text = {});

// Returns a short run on small_data: `model` with two layers and dropout.
RunConfig small_run(const std::string& model, int epochs = 6);
// Returns small_run() with eight mini-batches in an epoch, on the host, with a plan that is the
// same on every machine.
RunConfig small_batch_run(const std::string& model, int epochs = 6);

// Returns every byte of every parameter.
std::string weight_bytes(const Parameters& parameters);

}  // namespace nacre::test
