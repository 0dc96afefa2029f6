// Makes tables of results, for people and as CSV, and plots of them as SVG.
#pragma once

#include <string>
#include <vector>

namespace nacre::cli {

class Report {
 public:
  explicit Report(std::vector<std::string> columns) { rows_.push_back(std::move(columns)); }

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string csv() const;
  // Returns the table as a JSON list with an object for each row. Cells that are numbers become
  // numbers, and empty cells become null.
  std::string json() const;
  std::string text() const;  // returns the table as text with aligned columns

 private:
  std::vector<std::vector<std::string>> rows_;  // the first row holds the names of the columns
};

// Returns a number in as few digits as keep the measured precision; "" for negative numbers, which
// mean "not measured".
std::string cell(double value);

// Describes a plot with groups of bars. Every group has one bar for each series. Negative values
// are left out.
struct BarPlot {
  std::string title, unit;
  std::vector<std::string> groups, series;
  std::vector<std::vector<double>> values;  // values[group][series]
};
std::string plot_svg(const BarPlot& plot);

struct LinePlot {
  struct Series {
    std::string name;
    std::vector<double> x, y;
  };
  std::string title, x_name, y_name;
  bool log_x = false;
  std::vector<Series> series;
};
std::string plot_svg(const LinePlot& plot);

}  // namespace nacre::cli
