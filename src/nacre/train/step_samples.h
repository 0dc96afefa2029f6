// This file times training steps on parts of graphs. A performance model learns from the times
// (NU2). Parts look like those of ranks: random vertices, ranges and balls of several sizes, with
// and without a halo.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/cost/performance_model.h"
#include "nacre/graph/graph.h"
#include "nacre/train/config.h"

namespace nacre {

// Holds a graph that parts are cut from, with the widths of its features and classes. The values of
// the features do not matter for the time, so they are made up.
struct PartSource {
  std::string name;
  Graph graph;
  int64_t features = 0;
  int64_t classes = 0;
};

// Returns generated graphs of several kinds: citations, purchases, friends, proteins, roads. Each
// has at most about two million edges.
std::vector<PartSource> generated_sources(uint64_t seed);

struct PartSampling {
  double seconds = 60;             // the sampling ends after about this time
  int64_t most_vertices = 16384;   // the most vertices of a part, without its halo
  int64_t most_edges = 1'500'000;  // about the most edges of a part
  uint64_t seed = 0;
};

struct TimedPart {
  std::string graph;
  int64_t vertices = 0;
  int64_t edges = 0;
  TimedStep step;  // its group is the place of the graph among the sources
};

// Times steps of the model in `config` on its device, one part of each source after another, until
// the time is over, but at least one round, and returns the parts with their times. Plans are made
// by rules. Shows progress.
std::vector<TimedPart> time_parts(const RunConfig& config, const std::vector<PartSource>& sources,
                                  const PartSampling& sampling);

}  // namespace nacre
