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

// 60 vertices in three communities with features that lean towards them; 30 / 15 / 15 split.
Dataset small_data(const DataText& text = {});

// A short run on small_data: `model` of two layers with dropout.
RunConfig small_run(const std::string& model, int epochs = 6);

// Every byte of every parameter.
std::string weight_bytes(const Parameters& parameters);

}  // namespace nacre::test
