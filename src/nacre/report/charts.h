// Draws the charts of a report as SVG. Their colours and text sizes come from the page's style.
#pragma once

#include <string>
#include <vector>

namespace nacre {

struct ChartSeries {
  std::string name;
  std::vector<double> x, y;  // points whose y is NaN are left out
};

struct LineChart {
  std::string title;   // heading of the chart
  std::string x_name;  // for example "epoch"
  std::vector<ChartSeries> series;
};
// Returns a figure with the chart, its legend, and a summary in words for screen readers. Returns
// an empty text if no series has a point. A series with more than `most_points` points is thinned
// out: the page shows every k-th point and the last one.
std::string line_chart(const LineChart& chart, size_t most_points);

struct BarPart {
  std::string name;  // parts of the same name have the same colour in all bars
  double value = 0;
  std::string label;  // the figure as people read it
  std::string from;   // where the value comes from (page.h)
};
struct StackedBar {
  std::string name;
  std::string label;  // the sum as people read it
  std::string from;   // where the sum comes from
  std::vector<BarPart> parts;
  double sum() const;
};
struct BarChart {
  std::string title;
  std::vector<StackedBar> bars;
};
// Returns a figure with horizontal stacked bars and their legend; empty if there are no bars. Each
// bar and each part of it is an element <data>, as page.h says. Parts that are zero are not drawn.
std::string bar_chart(const BarChart& chart);

// Returns round numbers that cover [low, high], about `count` of them, for the marks of an axis.
std::vector<double> axis_marks(double low, double high, int count);

}  // namespace nacre
