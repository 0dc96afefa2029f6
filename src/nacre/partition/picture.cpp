#include "nacre/partition/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "nacre/base/log.h"
#include "nacre/base/printable.h"

namespace nacre {
namespace {

constexpr double kMargin = 24;
constexpr double kWidth = 800;
constexpr double kTop = 64;      // height of the heading
constexpr double kBar = 22;      // height of one bar
constexpr double kLabel = 60;    // width of the labels on the left
constexpr int kMostLabels = 40;  // parts for which there is room for text
constexpr std::array<const char*, 12> kColours = {"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b",
                                                  "#e377c2", "#17becf", "#bcbd22", "#393b79", "#637939", "#843c39"};

// Returns SVG with one bar for each part: its work, the target as a line, and the numbers of nodes,
// edges and halo nodes as text.
std::string bars(const PartitionStats& stats, double height) {
  std::string svg;
  double longest = 0;
  for (const PartStats& part : stats.parts) longest = std::max({longest, part.work, part.target});
  const double scale = longest > 0 ? (kWidth - kLabel) / longest : 0;
  const bool labels = std::ssize(stats.parts) <= kMostLabels;
  for (size_t p = 0; p < stats.parts.size(); ++p) {
    const PartStats& part = stats.parts[p];
    const double y = height * static_cast<double>(p);
    fmt::format_to(std::back_inserter(svg),
                   "<rect x=\"{}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n"
                   "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"1.5\" height=\"{:.2f}\" fill=\"#000000\"/>\n",
                   kLabel, y, part.work * scale, height * 0.8, kColours[p % kColours.size()],
                   kLabel + part.target * scale, y, height * 0.8);
    if (!labels) continue;
    fmt::format_to(
        std::back_inserter(svg),
        "<text x=\"0\" y=\"{0:.2f}\">part {1}</text><text x=\"{2}\" y=\"{0:.2f}\">{3} nodes, {4} edges, halo "
        "{5}</text>\n",
        y + height * 0.6, p, kLabel + 6, human_count(part.vertices), human_count(part.edges), human_count(part.halo));
  }
  return svg;
}

// Returns SVG of the square of parts. The darkest field off the diagonal has the most edges between
// two parts; fields on the diagonal are edges within a part and stay grey.
std::string square(const PartitionStats& stats, double side) {
  const size_t parts = stats.parts.size();
  const double field = side / static_cast<double>(parts);
  int64_t most = 0;
  for (size_t i = 0; i < stats.between.size(); ++i) {
    if (i / parts != i % parts) most = std::max(most, stats.between[i]);
  }
  std::string svg = fmt::format("<rect width=\"{0}\" height=\"{0}\" fill=\"#f4f4f4\"/>\n", side);
  for (size_t i = 0; i < stats.between.size(); ++i) {
    const size_t row = i / parts, column = i % parts;
    const int64_t edges = stats.between[i];
    if (edges == 0) continue;
    const double shade = row == column ? 0.25 : 0.15 + 0.85 * static_cast<double>(edges) / static_cast<double>(most);
    const double x = field * static_cast<double>(column), y = field * static_cast<double>(row);
    fmt::format_to(
        std::back_inserter(svg),
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" fill-opacity=\"{:.3f}\"/>\n", x,
        y, field, field, row == column ? "#888888" : "#d62728", shade);
    if (field >= 60) {
      fmt::format_to(std::back_inserter(svg), "<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"middle\">{}</text>\n",
                     x + field / 2, y + field / 2 + 4, human_count(edges));
    }
  }
  return svg;
}

}  // namespace

std::string parts_svg(const PartitionStats& stats, const std::string& title) {
  const auto parts = static_cast<double>(stats.parts.size());
  const double bar = std::min(kBar, kWidth / parts);
  const double bars_end = kMargin + kTop + bar * parts + kMargin;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kWidth + 2 * kMargin, bars_end + kMargin + kWidth + kMargin);
  svg += fmt::format("<title>{0}</title>\n<text x=\"{1}\" y=\"{2}\" font-size=\"18\">{0}</text>\n", xml_text(title),
                     kMargin, kMargin + 14);
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" fill=\"#555555\">{} of {} edges are cut ({:.2f} %); {} rows are exchanged; work is up "
      "to "
      "{:.1f} % off its target (black lines)</text>\n",
      kMargin, kMargin + 38, human_count(stats.cut_edges), human_count(stats.edges), 100 * stats.cut_share(),
      human_count(stats.volume), std::isfinite(stats.imbalance()) ? 100 * stats.imbalance() : 100);
  svg += fmt::format("<g transform=\"translate({} {})\">\n{}</g>\n", kMargin, kMargin + kTop, bars(stats, bar));
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" fill=\"#555555\">edges between parts: from the part of the column, to the "
      "part of the row</text>\n",
      kMargin, bars_end + 4);
  svg += fmt::format("<g transform=\"translate({} {})\" shape-rendering=\"crispEdges\">\n{}</g>\n</svg>\n", kMargin,
                     bars_end + kMargin - 8, square(stats, kWidth));
  return svg;
}

}  // namespace nacre
