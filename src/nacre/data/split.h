// Draws splits, for data sets that have none or that the user wants to divide in another way.
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
    per_class    // `train` nodes of every class, and `val` and `test` of the remaining nodes
  };
  Way way = Way::random;
  double train = 0, val = 0, test = 0;  // shares, or numbers of nodes
};

// Parses "random:0.6/0.2/0.2", "stratified:0.6/0.2/0.2" or "per-class:20/500/1000". Throws
// UserError naming --split.
SplitRequest parse_split(const std::string& text);

// Replaces the splits of `data` by those that `text` asks for. The result depends on the labels and
// the seed alone. Throws UserError if the set has no labels or too few nodes.
void draw_split(const std::string& text, uint64_t seed, Dataset& data);

}  // namespace nacre
