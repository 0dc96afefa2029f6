// Draws the parts of pictures in a report: boxes in rows, the lines between them, and the figure
// around a picture. Their colours and text sizes come from the page's style.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace nacre {

// Holds a figure of the page (`html`) or, if there is none, a sentence that says why (`missing`).
// Both texts are empty if there is nothing to show.
struct Picture {
  std::string html;
  std::string missing;
};

inline constexpr double kBoxWidth = 200, kBoxHeight = 40, kMargin = 8;

struct Spot {
  double x = 0, y = 0;
};
struct Link {
  size_t from, to;  // numbers of boxes
};

// Returns the place of a box: its left upper corner.
Spot spot_at(size_t column, size_t row);

// Describes a box with two lines of text. `words` are shown when the pointer is on the box; `lines`
// are cut to the width of the box. The strip at the left of the box has the colour of kernel
// `kernel`; there is no strip if `kernel` is negative.
struct Box {
  Spot at;
  std::string words;
  std::string lines[2];
  int64_t kernel = -1;
  bool once = false;  // whether the border is dashed
};
std::string box_svg(const Box& box);

// Returns the SVG of the lines of all links. spots[i] is the place of box i.
std::string links_svg(const std::vector<Link>& links, const std::vector<Spot>& spots);

// Returns the SVG of a text; `more` holds further attributes.
std::string text_svg(double x, double y, const std::string& text, const char* more = "");

struct Drawing {
  std::string title, note;
  std::string words;  // description of the picture for people who do not see it
  double width = 0, height = 0;
  std::string svg;
  std::string below;  // HTML below the picture
};
std::string drawing_figure(const Drawing& drawing);
// Returns the figure of a drawing with these boxes and links, as wide and high as they need.
std::string boxes_figure(Drawing drawing, const std::vector<Box>& boxes, const std::vector<Link>& links);

}  // namespace nacre
