// A partition as a picture: the adjacency matrix of a sampled square of vertices, every edge a dot
// coloured by its gTask.
#pragma once

#include <string>

#include "nacre/gtask/partition.h"

namespace nacre {

struct PictureOptions {
  int64_t vertices = 200;  // side of the square
  int64_t first = 0;       // its first vertex; edges among [first, first + vertices) are shown
  std::string title;
};

// SVG, self-contained. gTasks get one of a fixed set of distinct colours in order of their number.
std::string partition_svg(const GTasks& tasks, const PictureOptions& options);

}  // namespace nacre
