// Solves non-negative least squares problems by the active-set method of Lawson and Hanson (Solving
// Least Squares Problems, ch. 23).
//
// A row of the system holds the amounts of a sample divided by its time, and every right side is 1,
// so that residuals are relative errors. Columns are scaled to length 1, because amounts range from
// 1 to 1e12. The inner least squares problems are solved by orthogonalising the columns themselves.
// The normal equations would square a condition number that is bad already, since features such as
// rows, edges and bytes grow together. A column that is a combination of the columns in use adds
// nothing and keeps the coefficient 0.
#include "nacre/cost/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nacre/base/log.h"

namespace nacre {
namespace {

using Column = std::vector<double>;

// A column of length 1 whose part outside the span of the other columns is shorter than this counts
// as a combination of them.
constexpr double kDependent = 1e-9;
// A column gets no coefficient if the squared error falls more slowly than this along it, relative
// to the length of the right side.
constexpr double kFlat = 1e-12;

double dot(const Column& a, const Column& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void subtract(Column& a, double factor, const Column& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] -= factor * b[i];
}

// Returns the z that minimises |Σ z_k · columns[used[k]] − 1|, by modified Gram–Schmidt. Returns an
// empty vector if a used column is a combination of those before it.
std::vector<double> least_squares(const std::vector<Column>& columns, const std::vector<size_t>& used) {
  const size_t n = used.size();
  std::vector<Column> basis;
  // r[i][k] is the component of column k along basis vector i.
  std::vector<std::vector<double>> r(n, std::vector<double>(n));
  std::vector<double> z(n);
  Column rest(columns.front().size(), 1.0);
  for (size_t k = 0; k < n; ++k) {
    Column v = columns[used[k]];
    for (size_t i = 0; i < k; ++i) {
      r[i][k] = dot(basis[i], v);
      subtract(v, r[i][k], basis[i]);
    }
    r[k][k] = std::sqrt(dot(v, v));
    if (r[k][k] < kDependent) return {};
    for (double& value : v) value /= r[k][k];
    z[k] = dot(v, rest);
    subtract(rest, z[k], v);
    basis.push_back(std::move(v));
  }
  for (size_t k = n; k-- > 0;) {
    for (size_t j = k + 1; j < n; ++j) z[k] -= r[k][j] * z[j];
    z[k] /= r[k][k];
  }
  return z;
}

// Moves x towards z, the best values of the columns in use. If the value of a column would become
// negative, the move stops where this value is zero, the column is taken out of use, and the best
// values of the other columns are computed again.
void settle(const std::vector<Column>& columns, std::vector<size_t>& used, std::vector<double> z,
            std::vector<double>& x) {
  while (!z.empty()) {
    double step = 1;
    size_t first = used.size();  // the first column to reach zero
    for (size_t k = 0; k < used.size(); ++k) {
      if (z[k] > 0) continue;
      const double at = x[used[k]];
      const double reach = at > 0 ? at / (at - z[k]) : 0;
      if (first == used.size() || reach < step) {
        first = k;
        step = reach;
      }
    }
    if (first == used.size()) {
      for (size_t k = 0; k < used.size(); ++k) x[used[k]] = z[k];
      return;
    }
    for (size_t k = 0; k < used.size(); ++k) x[used[k]] += step * (z[k] - x[used[k]]);
    x[used[first]] = 0;
    for (const size_t j : used) x[j] = std::max(x[j], 0.0);
    std::erase_if(used, [&](size_t j) { return x[j] == 0; });
    z = least_squares(columns, used);
  }
}

// Returns the x ≥ 0 that minimises |Σ x_j · columns[j] − 1|.
std::vector<double> non_negative_least_squares(const std::vector<Column>& columns) {
  const size_t n = columns.size();
  const size_t rows = columns.front().size();
  std::vector<double> x(n, 0.0);
  std::vector<size_t> used;  // columns in the order in which they came into use
  // closed[j] says whether column j is in use, or was tried without success since x last changed.
  std::vector<bool> closed(n, false);
  Column rest(rows, 1.0);
  const double flat = kFlat * std::sqrt(static_cast<double>(rows));
  // Every move lowers the error, so no set of columns comes twice. The limit only guards against
  // rounding errors.
  for (size_t round = 0; round < 100 * n; ++round) {
    size_t steepest = n;
    double slope = flat;
    for (size_t j = 0; j < n; ++j) {
      if (closed[j]) continue;
      if (const double d = dot(columns[j], rest); d > slope) {
        slope = d;
        steepest = j;
      }
    }
    if (steepest == n) break;
    closed[steepest] = true;
    used.push_back(steepest);
    std::vector<double> z = least_squares(columns, used);
    if (z.empty() || z.back() <= 0) {
      used.pop_back();
      continue;
    }
    settle(columns, used, std::move(z), x);
    std::fill(rest.begin(), rest.end(), 1.0);
    std::fill(closed.begin(), closed.end(), false);
    for (const size_t j : used) {
      subtract(rest, x[j], columns[j]);
      closed[j] = true;
    }
  }
  return x;
}

}  // namespace

std::vector<Timing> usable_samples(const std::vector<Timing>& samples) {
  std::vector<Timing> usable;
  int64_t bad_time = 0;
  int64_t bad_amount = 0;
  for (const Timing& s : samples) {
    // fit() works with amount / seconds, so this quotient must not overflow either.
    const auto bad = [&](double amount) { return !(amount >= 0) || !std::isfinite(amount / s.seconds); };
    if (!(s.seconds > 0) || !std::isfinite(s.seconds)) {
      ++bad_time;
    } else if (std::any_of(s.work.amount.begin(), s.work.amount.end(), bad)) {
      ++bad_amount;
    } else {
      usable.push_back(s);
    }
  }
  if (bad_time + bad_amount > 0) {
    log_warning(
        fmt::format("the cost model ignores {} of {} timings: {} have no positive time, {} have an amount that is "
                    "negative or not finite",
                    bad_time + bad_amount, samples.size(), bad_time, bad_amount));
  }
  return usable;
}

std::vector<double> fit_relative(const std::vector<std::vector<double>>& columns) {
  std::vector<Column> scaled;
  std::vector<size_t> used;
  std::vector<double> lengths;
  for (size_t j = 0; j < columns.size(); ++j) {
    // Every column is first divided by its largest amount, because squares of large amounts could
    // overflow.
    double most = 0;
    for (const double value : columns[j]) most = std::max(most, value);
    if (most == 0) continue;
    Column column = columns[j];
    for (double& value : column) value /= most;
    const double length = std::sqrt(dot(column, column));
    for (double& value : column) value /= length;
    scaled.push_back(std::move(column));
    used.push_back(j);
    lengths.push_back(length * most);
  }
  std::vector<double> coefficients(columns.size(), 0.0);
  if (scaled.empty()) return coefficients;
  const std::vector<double> x = non_negative_least_squares(scaled);
  for (size_t i = 0; i < x.size(); ++i) coefficients[used[i]] = x[i] / lengths[i];
  return coefficients;
}

Coefficients fit(const std::vector<Timing>& samples) {
  const std::vector<Timing> usable = usable_samples(samples);
  std::vector<std::vector<double>> columns(kFeatures);
  for (size_t f = 0; f < kFeatures; ++f) {
    columns[f].reserve(usable.size());
    for (const Timing& s : usable) columns[f].push_back(s.work.amount[f] / s.seconds);
  }
  const std::vector<double> x = fit_relative(columns);
  Coefficients coefficients{};
  std::copy(x.begin(), x.end(), coefficients.begin());
  return coefficients;
}

}  // namespace nacre
