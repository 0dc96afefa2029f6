// A dot is a unit square of a path; there is one path for each colour. This takes a third of the
// bytes of separate <rect> elements, so that even a full square of 200 vertices stays under a
// megabyte.
#include "nacre/gtask/picture.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/printable.h"

namespace nacre {
namespace {

constexpr int64_t kMaxVertices = 2000;
constexpr double kSide = 800;   // side of the square on the page
constexpr double kTop = 56;     // height of the heading
constexpr double kMargin = 24;  // empty space around the picture
constexpr uint8_t kNothing = 0xFF;

// Colours that follow each other in this list differ in hue and lightness.
constexpr std::array<const char*, 24> kColours = {"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b",
                                                  "#e377c2", "#17becf", "#bcbd22", "#393b79", "#f7b6d2", "#637939",
                                                  "#843c39", "#98df8a", "#7b4173", "#aec7e8", "#8c6d31", "#ff9896",
                                                  "#006d5b", "#c5b0d5", "#d4a017", "#4d4d4d", "#00a6fb", "#a30059"};

struct Dots {
  std::vector<uint8_t> colour;  // side × side, rows are destinations
  int64_t edges = 0;
  int64_t tasks = 0;
};

// Where several edges have the same ends, the colour is that of the first edge's gTask.
Dots paint(const GTasks& tasks, int64_t first, int64_t side) {
  Dots dots;
  dots.colour.assign(side * side, kNothing);
  for (int64_t t = 0; t < tasks.num_tasks(); ++t) {
    const int64_t before = dots.edges;
    for (int64_t i = tasks.task_ptr[t]; i < tasks.task_ptr[t + 1]; ++i) {
      const int64_t x = tasks.src[i] - first;
      const int64_t y = tasks.dst[i] - first;
      if (x < 0 || x >= side || y < 0 || y >= side) continue;
      ++dots.edges;
      uint8_t& dot = dots.colour[y * side + x];
      if (dot == kNothing) dot = static_cast<uint8_t>(t % std::ssize(kColours));
    }
    dots.tasks += dots.edges > before;
  }
  return dots;
}

// Draws neighbouring dots of a row as one stroke.
std::string paths(const Dots& dots, int64_t side) {
  std::array<std::string, kColours.size()> drawn;
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side;) {
      const uint8_t* row = &dots.colour[y * side];
      int64_t end = x + 1;
      while (end < side && row[end] == row[x]) ++end;
      if (row[x] != kNothing) {
        fmt::format_to(std::back_inserter(drawn[row[x]]), "M{} {}h{}v1h-{}z", x, y, end - x, end - x);
      }
      x = end;
    }
  }
  std::string text;
  for (size_t c = 0; c < drawn.size(); ++c) {
    if (!drawn[c].empty()) text += fmt::format("<path fill=\"{}\" d=\"{}\"/>\n", kColours[c], drawn[c]);
  }
  return text;
}

}  // namespace

std::string partition_svg(const GTasks& tasks, const PictureOptions& options) {
  if (options.vertices < 1 || options.vertices > kMaxVertices) {
    throw UserError("picture", fmt::format("cannot show {} nodes", options.vertices),
                    fmt::format("show 1 to {}", kMaxVertices));
  }
  if (options.first < 0) throw UserError("picture", "the first node is negative", "use 0 or more");
  const int64_t side = options.vertices;
  const Dots dots = paint(tasks, options.first, side);
  const std::string table = tasks.table.empty() ? "no restriction" : tasks.table.text();
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kSide + 2 * kMargin, kSide + kTop + 2 * kMargin);
  svg += fmt::format("<title>{0}</title>\n<text x=\"{1}\" y=\"{2}\" font-size=\"18\">{0}</text>\n",
                     xml_text(options.title.empty() ? table : options.title), kMargin, kMargin + 14);
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" font-size=\"12\" fill=\"#555555\">{}: {} gTasks, {} edges; here {} to {}: {} gTasks, {} "
      "edges; sources across, destinations down</text>\n",
      kMargin, kMargin + 38, xml_text(table), tasks.num_tasks(), tasks.num_edges(), options.first,
      options.first + side - 1, dots.tasks, dots.edges);
  svg += fmt::format("<g transform=\"translate({} {}) scale({})\" shape-rendering=\"crispEdges\">\n", kMargin,
                     kMargin + kTop, kSide / static_cast<double>(side));
  svg += fmt::format("<rect width=\"{0}\" height=\"{0}\" fill=\"#f4f4f4\"/>\n", side);
  svg += paths(dots, side) + "</g>\n</svg>\n";
  return svg;
}

}  // namespace nacre
