#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "command.h"
#include "nacre/base/printable.h"

namespace nacre::cli {
namespace {

constexpr double kWidth = 900, kHeight = 420, kLeft = 80, kRight = 20, kTop = 70, kBottom = 60;
constexpr std::array<const char*, 8> kColours = {"#4477aa", "#ee6677", "#228833", "#ccbb44",
                                                 "#66ccee", "#aa3377", "#777777", "#222222"};

const char* colour(size_t i) { return kColours[i % kColours.size()]; }

std::string write(double x, double y, const std::string& text, const char* anchor = "middle", int size = 12) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, size,
                     anchor, xml_text(text));
}

std::string line(double x1, double y1, double x2, double y2, const char* stroke) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2, y2,
                     stroke);
}

// Returns 1, 2 or 5 times a power of ten, so that about five steps reach `top`.
double tick_step(double top) {
  const double rough = std::max(top, 1e-12) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

// Returns heading, legend and the vertical axis from 0 to `top`.
std::string frame(const std::string& title, const std::string& unit, const std::vector<std::string>& series,
                  double top) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight);
  svg += write(kLeft, 22, title, "start", 16);
  double x = kLeft;
  for (size_t s = 0; s < series.size(); ++s) {
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"34\" width=\"12\" height=\"12\" fill=\"{}\"/>\n", x, colour(s));
    svg += write(x + 16, 44, series[s], "start");
    x += 34 + 7.0 * static_cast<double>(series[s].size());
  }
  const double step = tick_step(top);
  for (double v = 0; v <= top * 1.0001; v += step) {
    const double y = kHeight - kBottom - v / top * (kHeight - kTop - kBottom);
    svg += line(kLeft, y, kWidth - kRight, y, v == 0 ? "#333333" : "#dddddd");
    svg += write(kLeft - 6, y + 4, fmt::format("{:g}", v), "end");
  }
  return svg + write(kLeft - 6, kTop - 12, unit, "end");
}

bool needs_quotes(const std::string& text) { return text.find_first_of(",\"\n") != std::string::npos; }

}  // namespace

std::string cell(double value) {
  if (value < 0 || !std::isfinite(value)) return "";
  return value >= 1e3 && value < 1e15 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::string Report::csv() const {
  std::string out;
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) {
      std::string text = row[c];
      for (size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 2)) text.insert(at, 1, '"');
      out += (c == 0 ? "" : ",") + (needs_quotes(row[c]) ? "\"" + text + "\"" : text);
    }
    out += '\n';
  }
  return out;
}

std::string Report::json() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t r = 1; r < rows_.size(); ++r) {
    nlohmann::ordered_json object;
    for (size_t c = 0; c < rows_[r].size(); ++c) {
      const std::string& text = rows_[r][c];
      double number = 0;
      nlohmann::ordered_json& value = object[rows_[0][c]];
      if (parse_double(text, number)) {
        value = number;
      } else if (!text.empty()) {
        value = text;
      }
    }
    list.push_back(std::move(object));
  }
  return list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string Report::text() const {
  std::vector<size_t> widths(rows_[0].size());
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) out += fmt::format("  {:<{}}", row[c], widths[c]);
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

std::string plot_svg(const BarPlot& plot) {
  double top = 0;
  for (const auto& group : plot.values) {
    for (const double v : group) top = std::max(top, v);
  }
  top = std::max(top * 1.05, 1e-12);
  std::string svg = frame(plot.title, plot.unit, plot.series, top);
  const double room = (kWidth - kLeft - kRight) / static_cast<double>(std::max<size_t>(1, plot.groups.size()));
  const double bar = room * 0.8 / static_cast<double>(std::max<size_t>(1, plot.series.size()));
  for (size_t g = 0; g < plot.groups.size(); ++g) {
    const double left = kLeft + room * static_cast<double>(g);
    for (size_t s = 0; s < plot.values[g].size(); ++s) {
      const double v = plot.values[g][s];
      if (v < 0) continue;
      const double height = v / top * (kHeight - kTop - kBottom);
      svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
                         left + room * 0.1 + bar * static_cast<double>(s), kHeight - kBottom - height, bar * 0.95,
                         height, colour(s));
    }
    svg += write(left + room / 2, kHeight - kBottom + (g % 2 == 0 || plot.groups.size() < 8 ? 18 : 34), plot.groups[g],
                 "middle", 11);
  }
  return svg + "</svg>\n";
}

std::string plot_svg(const LinePlot& plot) {
  const auto at = [&](double x) { return plot.log_x ? std::log10(std::max(x, 1e-12)) : x; };
  double top = 1e-12, low = INFINITY, high = -INFINITY;
  std::vector<std::string> names;
  for (const auto& s : plot.series) {
    names.push_back(s.name);
    for (const double y : s.y) top = std::max(top, y);
    for (const double x : s.x) {
      low = std::min(low, at(x));
      high = std::max(high, at(x));
    }
  }
  top *= 1.05;
  if (!(high > low)) high = low + 1;
  std::string svg = frame(plot.title, plot.y_name, names, top);
  const auto place_x = [&](double x) {
    return kLeft + 20 + (at(x) - low) / (high - low) * (kWidth - kLeft - kRight - 40);
  };
  for (size_t s = 0; s < plot.series.size(); ++s) {
    std::string points;
    for (size_t i = 0; i < plot.series[s].x.size(); ++i) {
      const double x = place_x(plot.series[s].x[i]);
      const double y = kHeight - kBottom - plot.series[s].y[i] / top * (kHeight - kTop - kBottom);
      points += fmt::format("{:.1f},{:.1f} ", x, y);
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x, y, colour(s));
      if (s == 0) svg += write(x, kHeight - kBottom + 18, fmt::format("{:.4g}", plot.series[s].x[i]), "middle", 11);
    }
    svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", points, colour(s));
  }
  return svg + write((kWidth + kLeft) / 2, kHeight - 16, plot.x_name) + "</svg>\n";
}

}  // namespace nacre::cli
