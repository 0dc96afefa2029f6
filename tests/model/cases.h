// Models × options × graphs that the tests of this room use.
#pragma once

#include <string>
#include <vector>

#include "nacre/kernel/ref/interpreter.h"
#include "nacre/model/model.h"
#include "support/random_graphs.h"
#include "support/values.h"

namespace nacre::test {

struct ModelCase {
  std::string name;
  ModelOptions options;
};

// Widths differ everywhere, so that layers widen as well as narrow.
std::vector<ModelCase> model_cases();

struct BlocksInput {
  std::string name;
  Blocks blocks;
};

// Returns every random full graph, and every random chain of blocks.
std::vector<BlocksInput> block_inputs(uint64_t seed, int layers);

// Returns the options with the number of edge types of the graph filled in.
ModelOptions options_for(ModelOptions options, const Blocks& blocks);

// Returns the options as options_for() does, for a graph whose vertices are of up to three kinds:
// one with features, one without, and one with other features.
ModelOptions with_kinds(ModelOptions options, const Blocks& blocks);

// Returns random values of all leaves; running variances are positive.
ref::Bindings model_bindings(const Dfg& dfg, const Blocks& blocks, uint64_t seed);

}  // namespace nacre::test
