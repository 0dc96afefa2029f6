// Splits that are drawn, for data sets that bring none or are to be divided another way.
#pragma once

#include <cstdint>
#include <string>

#include "nacre/data/dataset.h"

namespace nacre {

// How nodes are divided into training, validation and test nodes. Only labelled nodes are divided.
struct SplitRequest {
  enum class Way : uint8_t {
    random,      // shares of all labelled nodes
    stratified,  // shares of the nodes of every class
    per_class    // `train` nodes of every class; of the others `val` and `test` nodes in all
  };
  Way way = Way::random;
  double train = 0, val = 0, test = 0;  // shares, or numbers of nodes
};

// "random:0.6/0.2/0.2", "stratified:0.6/0.2/0.2" or "per-class:20/500/1000". Throws UserError naming --split.
SplitRequest parse_split(const std::string& text);

// Replaces the splits of `data` by those `text` asks for. The result is a function of the labels and the seed alone.
// Throws UserError where the set has no labels, or too few nodes.
void draw_split(const std::string& text, uint64_t seed, Dataset& data);

}  // namespace nacre
