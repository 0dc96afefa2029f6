// Draws a partition: the adjacency matrix of a square of vertices, in which every edge is a dot in
// the colour of its gTask.
#pragma once

#include <string>

#include "nacre/gtask/partition.h"

namespace nacre {

struct PictureOptions {
  int64_t vertices = 200;  // side of the square
  int64_t first = 0;       // first vertex; edges among [first, first + vertices) are drawn
  std::string title;
};

// Returns a self-contained SVG. The gTasks take the colours of a fixed set in the order of their
// numbers.
std::string partition_svg(const GTasks& tasks, const PictureOptions& options);

}  // namespace nacre
