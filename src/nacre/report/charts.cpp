#include "nacre/report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "nacre/base/printable.h"

namespace nacre {
namespace {

constexpr double kWidth = 480, kHeight = 260;
constexpr double kLeft = 70, kRight = 12, kTop = 12, kBottom = 40;
constexpr size_t kColours = 8;  // number of the colour classes c0 to c7 in style.cpp

// Maps values to coordinates in the picture: `low` to `from`, and `high` to `to`.
struct Axis {
  double low = 0, high = 1;
  double from = 0, to = 1;
  double at(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

Axis axis_over(double low, double high, double from, double to) {
  if (!(low < high)) {  // there is only one value, or none
    const double around = low == 0 ? 1 : std::abs(low) * 0.5;
    low -= around;
    high += around;
  }
  return {low, high, from, to};
}

// Returns the numbers of the points that are drawn: all finite ones or, if there are too many,
// every k-th and the last one.
std::vector<size_t> drawn_points(const ChartSeries& series, size_t most) {
  std::vector<size_t> all;
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (std::isfinite(series.x[i]) && std::isfinite(series.y[i])) all.push_back(i);
  }
  if (all.size() <= most || most == 0) return all;
  const size_t step = (all.size() + most - 1) / most;
  std::vector<size_t> some;
  for (size_t i = 0; i < all.size(); i += step) some.push_back(all[i]);
  if (some.back() != all.back()) some.push_back(all.back());
  return some;
}

std::string legend(const std::vector<std::string>& names) {
  std::string items;
  for (size_t i = 0; i < names.size(); ++i) {
    items +=
        fmt::format(R"(<li><span class="key c{}" aria-hidden="true"></span>{}</li>)", i % kColours, xml_text(names[i]));
  }
  return "<ul class=\"legend\">" + items + "</ul>";
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

std::string grid(const Axis& x, const Axis& y, const std::string& x_name) {
  std::string svg;
  for (const double mark : axis_marks(y.low, y.high, 5)) {
    svg += fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", kLeft, kWidth - kRight,
                       y.at(mark), y.at(mark));
    svg += fmt::format(R"(<text class="mark" x="{}" y="{:.1f}" text-anchor="end">{:.4g}</text>)", kLeft - 6,
                       y.at(mark) + 4, mark);
  }
  for (const double mark : axis_marks(x.low, x.high, 6)) {
    svg += fmt::format(R"(<text class="mark" x="{:.1f}" y="{}" text-anchor="middle">{:.6g}</text>)", x.at(mark),
                       kHeight - kBottom + 18, mark);
  }
  return svg + fmt::format(R"(<text class="mark" x="{}" y="{}" text-anchor="middle">{}</text>)",
                           (kLeft + kWidth - kRight) / 2, kHeight - 4, xml_text(x_name));
}

std::string series_svg(const ChartSeries& series, const std::vector<size_t>& points, const Axis& x, const Axis& y,
                       size_t number) {
  std::string places, values;
  for (const size_t i : points) {
    places += fmt::format("{}{:.1f},{:.1f}", places.empty() ? "" : " ", x.at(series.x[i]), y.at(series.y[i]));
    values += fmt::format("{}{},{}", values.empty() ? "" : " ", series.x[i], series.y[i]);
  }
  const std::string what = fmt::format(R"(class="line c{}" data-name="{}" data-values="{}")", number % kColours,
                                       xml_text(series.name), values);
  if (points.size() == 1) {  // a single point is drawn as a circle, as no line would be seen
    return fmt::format(R"(<circle {} cx="{:.1f}" cy="{:.1f}" r="3"/>)", what, x.at(series.x[points[0]]),
                       y.at(series.y[points[0]]));
  }
  return fmt::format(R"(<polyline {} points="{}"/>)", what, places);
}

// Returns the chart in words: "loss: from 1.9 at 1 to 0.4 at 200".
std::string in_words(const ChartSeries& series, const std::vector<size_t>& points, const std::string& x_name) {
  const size_t first = points.front(), last = points.back();
  return fmt::format("{}: {:.4g} at {} {:.6g}, {:.4g} at {} {:.6g}. ", series.name, series.y[first], x_name,
                     series.x[first], series.y[last], x_name, series.x[last]);
}

}  // namespace

std::vector<double> axis_marks(double low, double high, int count) {
  if (!(low < high)) return {low};
  const double rough = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power * 10;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> marks;
  for (double k = std::ceil(low / step); k * step <= high * (1 + 1e-12) && marks.size() < 50; ++k)
    marks.push_back(k == 0 ? 0 : k * step);
  return marks;
}

std::string line_chart(const LineChart& chart, size_t most_points) {
  Range xs, ys;
  std::vector<ChartSeries> shown;
  std::vector<std::vector<size_t>> points;
  for (const ChartSeries& series : chart.series) {
    std::vector<size_t> drawn = drawn_points(series, most_points);
    if (drawn.empty()) continue;
    for (const size_t i : drawn) {
      xs.add(series.x[i]);
      ys.add(series.y[i]);
    }
    shown.push_back(series);
    points.push_back(std::move(drawn));
  }
  if (shown.empty()) return "";
  const Axis x = axis_over(xs.low, xs.high, kLeft, kWidth - kRight);
  const Axis y = axis_over(ys.low, ys.high, kHeight - kBottom, kTop);
  std::string svg, words;
  std::vector<std::string> names;
  for (size_t s = 0; s < shown.size(); ++s) {
    svg += series_svg(shown[s], points[s], x, y, s);
    words += in_words(shown[s], points[s], chart.x_name);
    names.push_back(shown[s].name);
  }
  return fmt::format(
      R"(<figure class="chart"><figcaption>{0}</figcaption>
<svg viewBox="0 0 {1} {2}" role="img" tabindex="0" aria-label="{0}. {3}" data-x="{4} {5} {6} {7}">{8}{9}<line class="cursor" y1="{10}" y2="{11}" hidden="hidden"/></svg>
{12}<p class="readout" aria-live="polite"></p></figure>
)",
      xml_text(chart.title), kWidth, kHeight, xml_text(words), x.low, x.high, x.from, x.to, grid(x, y, chart.x_name),
      svg, kTop, kHeight - kBottom, legend(names));
}

double StackedBar::sum() const {
  double sum = 0;
  for (const BarPart& part : parts) sum += part.value;
  return sum;
}

std::string bar_chart(const BarChart& chart) {
  if (chart.bars.empty()) return "";
  std::vector<std::string> names;
  double longest = 0;
  for (const StackedBar& bar : chart.bars) {
    for (const BarPart& part : bar.parts) {
      if (std::find(names.begin(), names.end(), part.name) == names.end()) names.push_back(part.name);
    }
    longest = std::max(longest, bar.sum());
  }
  std::string rows;
  for (const StackedBar& bar : chart.bars) {
    std::string parts, words;
    for (const BarPart& part : bar.parts) {
      const auto colour = std::find(names.begin(), names.end(), part.name) - names.begin();
      words += part.name + " " + part.label + ", ";
      if (part.value <= 0 || longest <= 0) continue;
      parts += fmt::format(
          R"(<data class="part c{}" style="width:{:.3f}%" value="{}" data-from="{}" title="{}: {}"></data>)",
          colour % static_cast<int64_t>(kColours), 100 * part.value / longest, part.value, xml_text(part.from),
          xml_text(part.name), xml_text(part.label));
    }
    if (!words.empty()) words.resize(words.size() - 2);
    rows += fmt::format(
        R"(<dt>{}</dt><dd><span class="bar" role="img" aria-label="{}">{}</span> <data value="{}" data-from="{}">{}</data></dd>)",
        xml_text(bar.name), xml_text(words), parts, bar.sum(), xml_text(bar.from), xml_text(bar.label));
  }
  return fmt::format(R"(<figure class="bars"><figcaption>{}</figcaption><dl>{}</dl>{}</figure>)", xml_text(chart.title),
                     rows, legend(names));
}

}  // namespace nacre
